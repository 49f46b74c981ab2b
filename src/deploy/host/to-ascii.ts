import { domainToASCII, domainToUnicode } from 'node:url';
import type { NameFault } from './name-fault.ts';
import { codePoint, quoted } from './quoted.ts';

export type AsciiName = { readonly ok: true; readonly name: string } | ({ readonly ok: false } & NameFault);

/** All but letters, marks, digits and the punctuation of RFC 5892, appendix A; the middle dot is for Catalan `l·l` alone. */
const outsideIdn = /[^\p{L}\p{M}\p{Nd}\u00b7\u05f3\u05f4\u30fb.-]|(?<![lL])\u00b7|\u00b7(?![lL])/u;

/**
 * The xn-- form of a DNS name. Only a name typed as it is shown is converted: UTS 46 would make `1.com` of `①.com`, and
 * what somebody did not type must not become their public host.
 */
export function toAscii(typed: string): AsciiName {
  const symbol = outsideIdn.exec(typed)?.[0];
  if (symbol !== undefined) return { ok: false, code: 'symbol', detail: `${quoted(symbol)} (${codePoint(symbol)})` };
  const name = domainToASCII(typed);
  const labels = typed.split('.');
  const converted = name.split('.');
  if (name === '' || converted.length !== labels.length) return { ok: false, code: 'idn', detail: '' };
  const canonical = converted.map(decoded);
  if (converted.some((label, at) => isEncoded(label) && domainToASCII(canonical[at] ?? '') !== label)) {
    return { ok: false, code: 'idn', detail: '' };
  }
  if (labels.some((label, at) => !isAscii(label) && !isSpelled(label, canonical[at] ?? ''))) {
    return { ok: false, code: 'notCanonical', detail: quoted(canonical.join('.')) };
  }
  return { ok: true, name };
}

/** A label as people read it. Others than xn-- ones are left alone: alone, `1` would be an address and become `0.0.0.1`. */
function decoded(label: string): string {
  return isEncoded(label) ? domainToUnicode(label) : label;
}

function isEncoded(label: string): boolean {
  return label.startsWith('xn--');
}

/** Whether a label differs from its canonical form by case and composition only, and no character turns into ASCII. */
function isSpelled(label: string, canonical: string): boolean {
  const lower = Array.from(label, (point) => point.toLowerCase());
  const becomesAscii = Array.from(label).some(
    (point, at) => !isAscii(point) && /[\0-\x7f]/.test((lower[at] ?? '').normalize('NFKC')),
  );
  return !becomesAscii && lower.join('').normalize('NFC') === canonical;
}

function isAscii(text: string): boolean {
  return !/[^\0-\x7f]/u.test(text);
}
