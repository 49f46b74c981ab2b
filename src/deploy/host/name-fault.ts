import { endsInNumber, isLegacyIpv4, legacyReading } from './legacy-ipv4.ts';
import { quoted } from './quoted.ts';
import type { HostRefusalCode } from './refusals.ts';

export interface NameFault {
  readonly code: HostRefusalCode;
  readonly detail: string;
}

/**
 * What is wrong with the labels of a DNS name without its last dot: the rules of RFC 1035, 1123 and 5890 for ASCII, and
 * nothing about characters above it. Asked twice, of what was typed and of its xn-- form: the conversion lets `a..b`,
 * `-a` and `a_b` pass, and makes `1.2.0.3` of `1.2.3`.
 */
export function nameFault(name: string): NameFault | undefined {
  if (isLegacyIpv4(name)) return { code: 'legacyIpv4', detail: legacyReading(name) };
  const labels = name.split('.');
  const label = labels.map(labelFault).find((fault) => fault !== undefined);
  if (label) return label;
  if (codePoints(name) > 253) return { code: 'tooLong', detail: '' };
  return endsInNumber(name) ? { code: 'numericName', detail: '' } : undefined;
}

function labelFault(label: string): NameFault | undefined {
  const outside = /[^a-z0-9\u0080-\u{10ffff}-]/iu.exec(label)?.[0];
  if (label === '') return { code: 'emptyLabel', detail: '' };
  if (outside !== undefined) return { code: 'labelCharacter', detail: quoted(outside) };
  if (codePoints(label) > 63) return { code: 'labelTooLong', detail: quoted(label) };
  if (/^-|-$/.test(label)) return { code: 'labelHyphen', detail: quoted(label) };
  return /^(?!xn).{2}--/iu.test(label) ? { code: 'reservedLabel', detail: quoted(label) } : undefined;
}

// Not UTF-16 units: what was typed may be longer in those than its xn-- form is in characters.
function codePoints(text: string): number {
  return Array.from(text).length;
}
