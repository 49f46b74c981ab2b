import { isIP, isIPv4, isIPv6, SocketAddress } from 'node:net';
import { type AddressBlock, embeddedIpv4, findBlock, isIsatap } from '../../addresses/index.ts';
import { classifyName } from './names.ts';
import { codePoint, type HostOptions, type HostRefusalCode, type HostVerdict, quoted, refuse } from './refusals.ts';

/** Judges a text that `net.isIP` holds to be an address, by the IANA registries. */
export function classifyAddress(text: string): HostVerdict {
  if (text.includes('%')) return refuse('zoneId', text);
  return isIPv4(text) ? classifyIpv4(text) : classifyIpv6(text);
}

function classifyIpv4(name: string): HostVerdict {
  const block = findBlock(name);
  if (block?.refused) return refuse(block.refused, name, describeBlock(block));
  return { ok: true, host: { kind: 'ipv4', name, display: name, origin: `https://${name}` } };
}

function classifyIpv6(text: string): HostVerdict {
  const block = findBlock(text);
  if (block?.refused) {
    const carried = block.embeds ? `${embeddedIpv4(text, block.embeds)} in ` : '';
    return refuse(block.refused, text, `${carried}${describeBlock(block)}`);
  }
  if (isIsatap(text)) return refuse('isatap', text, `${embeddedIpv4(text, 'low32')} in ISATAP (RFC 5214)`);
  const name = new SocketAddress({ address: text, family: 'ipv6' }).address;
  return { ok: true, host: { kind: 'ipv6', name, display: name, origin: `https://[${name}]` } };
}

function describeBlock({ prefix, name, source }: AddressBlock): string {
  return `${prefix}, ${name} (${source})`;
}

/**
 * The part of a URL-shaped text where a host would be; only ever a suggestion, and judged like anything typed. Empty where an
 * `@` comes after the first `/`, `?` or `#`: the text before it might be a password with such a character.
 */
export function bareHost(text: string): string {
  const rest = text.replace(/^[a-z][a-z0-9+.-]*:(?=\/\/)/i, '').replace(/^\/\//, '');
  if (/[/\\?#].*@/su.test(rest)) return '';
  return rest
    .replace(/[/\\?#].*$/su, '')
    .replace(/^.*@/su, '')
    .replace(/^\*\./, '')
    .replace(/^(\[[^\]]*\]|[^:]*):\d*$/u, '$1');
}

interface Shape {
  readonly code: HostRefusalCode;
  readonly pattern: RegExp;
  /** Detail of the message: the character found, or the host that may be inside. */
  readonly about: 'nothing' | 'character' | 'host';
}

export interface ShapeFault {
  readonly code: HostRefusalCode;
  readonly about: Shape['about'];
  /** The piece of the text that is at fault. */
  readonly found: string;
}

/** A name of 253 characters in its xn-- form is shorter in Unicode, and at most two UTF-16 units for each. */
const longestText = 2 * 254;

/** Shapes of texts that are not a bare host, the most specific first. */
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

/** Reason why a text that is not an IP address cannot be a DNS name, either; its labels are not checked. */
export function shapeFault(text: string): ShapeFault | undefined {
  if (text.length > longestText) return { code: 'tooLong', about: 'nothing', found: text };
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

/**
 * Judges the value of `--public-host` (specification §4.4, gateway rule 3): a DNS name or a globally routable address
 * comes back in its one canonical spelling, everything else is refused with a code and a message for people. Never throws,
 * asks no network. `[2600::1]` is taken without its brackets and `name.` without its dot; nothing else is repaired.
 */
export function classifyHost(text: string, options: HostOptions = {}): HostVerdict {
  const address = addressIn(text);
  if (address !== undefined) return classifyAddress(address);
  const fault = shapeFault(text);
  if (!fault) return classifyName(text, options);
  return refuse(fault.code, text, detail[fault.about](fault.found, text, options));
}

const detail = {
  nothing: () => '',
  character: (found: string) => codePoint(found),
  host: (_found: string, text: string, options: HostOptions) => suggestion(bareHost(text), options),
} as const;

/** The address that a text is, with or without brackets around IPv6. */
function addressIn(text: string): string | undefined {
  if (isIP(text) !== 0) return text;
  const inside = /^\[(.*)\]$/.exec(text)?.[1];
  return inside !== undefined && isIPv6(inside) ? inside : undefined;
}

/** Finds an acceptable host inside of a URL-like text; returns it quoted, otherwise an empty text. */
function suggestion(bare: string, options: HostOptions): string {
  if (addressIn(bare) === undefined && shapeFault(bare)) return '';
  const verdict = classifyHost(bare, options);
  return verdict.ok ? quoted(verdict.host.display) : '';
}
