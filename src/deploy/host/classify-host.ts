import { isIP, isIPv6 } from 'node:net';
import { bareHost } from './bare-host.ts';
import { classifyAddress } from './classify-address.ts';
import { classifyName } from './classify-name.ts';
import type { HostOptions, HostVerdict } from './host.ts';
import { codePoint, quoted } from './quoted.ts';
import { refuse } from './refusals.ts';
import { shapeFault } from './shapes.ts';

/**
 * Judges what was given as `--public-host` (specification §4.4, gateway rule 3): a DNS name or a globally routable address
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

/** What looks like the host inside something URL-shaped, quoted, if it would be accepted; otherwise empty. */
function suggestion(bare: string, options: HostOptions): string {
  if (addressIn(bare) === undefined && shapeFault(bare)) return '';
  const verdict = classifyHost(bare, options);
  return verdict.ok ? quoted(verdict.host.display) : '';
}
