import { isIP, isIPv6 } from 'node:net';
import type { HostRefusalCode } from './refusals.ts';

interface Shape {
  readonly code: HostRefusalCode;
  readonly pattern: RegExp;
  /** What the message says more of: the character found, or the host that may be inside. */
  readonly about: 'nothing' | 'character' | 'host';
}

export interface ShapeFault {
  readonly code: HostRefusalCode;
  readonly about: Shape['about'];
  /** The piece of the text that is at fault. */
  readonly found: string;
}

/** A name of 253 characters in its xn-- form is shorter in Unicode, and at most two UTF-16 units for each. */
const longest = 2 * 254;

/** What is no bare host, the most telling first. */
const shapes: readonly Shape[] = [
  { code: 'empty', pattern: /^$/, about: 'nothing' },
  { code: 'whitespace', pattern: /[\s\p{Z}]/u, about: 'nothing' },
  { code: 'control', pattern: /\p{Cc}/u, about: 'nothing' },
  { code: 'invisible', pattern: /[\p{Cf}\p{Default_Ignorable_Code_Point}]/u, about: 'character' },
  {
    code: 'urlShaped',
    pattern: /\/\/|^(?:https?|wss?|ftp|ssh|git|file|data|javascript|mailto):(?!\d*$)/i,
    about: 'host',
  },
  { code: 'userinfo', pattern: /@/, about: 'host' },
  { code: 'query', pattern: /^[^/\\#]*\?/, about: 'host' },
  { code: 'fragment', pattern: /^[^/\\]*#/, about: 'host' },
  { code: 'path', pattern: /\//, about: 'host' },
  { code: 'backslash', pattern: /\\/, about: 'host' },
  { code: 'wildcard', pattern: /\*/, about: 'host' },
  { code: 'percent', pattern: /%/, about: 'host' },
  { code: 'port', pattern: /^(?:\[[^\]]*\]|[^:[\]]*):\d*$/, about: 'host' },
  { code: 'brackets', pattern: /[[\]]/, about: 'host' },
  { code: 'ipv6Syntax', pattern: /:/, about: 'nothing' },
  { code: 'lookalikeDot', pattern: /[\u3002\uff0e\uff61]/, about: 'character' },
];

/** Why a text that is no IP address cannot be a DNS name either, before anything is known of its labels. */
export function shapeFault(text: string): ShapeFault | undefined {
  if (text.length > longest) return { code: 'tooLong', about: 'nothing', found: text };
  if (isNetwork(text)) return { code: 'prefixLength', about: 'host', found: text };
  if (isZoned(text)) return { code: 'zoneId', about: 'nothing', found: text };
  for (const { code, pattern, about } of shapes) {
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) return { code, about, found };
  }
  return undefined;
}

function isNetwork(text: string): boolean {
  const [address = '', length = '', ...more] = text.split('/');
  return isIP(address) !== 0 && /^\d{1,3}$/.test(length) && more.length === 0;
}

function isZoned(text: string): boolean {
  const [address = ''] = text.replace(/^\[/, '').split('%');
  return text.includes('%') && !/[/\\@?#\s]/.test(text) && isIPv6(address);
}
