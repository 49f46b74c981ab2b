import { domainToASCII, domainToUnicode } from 'node:url';
import { codePoint, type HostOptions, type HostRefusalCode, type HostVerdict, quoted, refuse } from './refusals.ts';

/** A domain that, with everything below it, is not for public hosts. */
export interface SpecialUseName {
  readonly domain: string;
  readonly source: string;
  /** May be used with an internal certificate authority: tests, examples, private networks. */
  readonly forTests: boolean;
}

const names = (source: string, list: string, forTests = false): SpecialUseName[] =>
  list.split(' ').map((domain) => ({ domain, source, forTests }));

/** IANA Special-Use Domain Names; then names that no public DNS will ever delegate, by decision of others. */
export const specialUseNames: readonly SpecialUseName[] = [
  ...names('RFC 6761', 'test example example.com example.net example.org', true),
  ...names('RFC 6761', 'localhost invalid 10.in-addr.arpa 168.192.in-addr.arpa'),
  ...names('RFC 6761', Array.from({ length: 16 }, (_, at) => `${16 + at}.172.in-addr.arpa`).join(' ')),
  ...names('RFC 6762', 'local 254.169.in-addr.arpa 8.e.f.ip6.arpa 9.e.f.ip6.arpa a.e.f.ip6.arpa b.e.f.ip6.arpa'),
  ...names('RFC 7686', 'onion'),
  ...names('RFC 8375', 'home.arpa'),
  ...names('RFC 8880', 'ipv4only.arpa 170.0.0.192.in-addr.arpa 171.0.0.192.in-addr.arpa'),
  ...names('RFC 9031', '6tisch.arpa'),
  ...names('RFC 9140', 'eap-noob.arpa'),
  ...names('RFC 9462', 'resolver.arpa'),
  ...names('RFC 9476', 'alt'),
  ...names('RFC 9665', 'service.arpa'),
  ...names('ICANN resolution 2024.07.29.06', 'internal', true),
  ...names('RFC 3172', 'arpa'),
  ...names('RFC 6762, appendix G', 'intranet private corp home lan'),
];

/** A label that the WHATWG URL standard holds to be a number, or people do: digits of any script, or hexadecimal after `0x`. */
const number = /^(?:\p{Nd}+|0x[0-9a-f]*)$/iu;

/** Whether browsers would read a name as an IPv4 address (WHATWG URL, “ends in a number”). */
export function endsInNumber(name: string): boolean {
  return number.test(name.slice(name.lastIndexOf('.') + 1));
}

/** Whether a text is nothing but one to four numbers, as in `127.1`, `0x7f.0.0.1` or `2130706433`. */
export function isLegacyIpv4(name: string): boolean {
  const labels = name.split('.');
  return labels.length <= 4 && labels.every((label) => number.test(label));
}

/** The address that `inet_aton` and browsers make of such a text, dotted; empty if they too make none of it. */
export function legacyReading(name: string): string {
  const parts = name.split('.').map(numberOf);
  const last = parts.pop() ?? Number.NaN;
  const limit = 256 ** (4 - parts.length);
  // Written so that NaN fails.
  if (!(last < limit && parts.every((part) => part < 256))) return '';
  const rest = Array.from({ length: 4 - parts.length }, (_, at) => Math.floor(last / 256 ** at) % 256).reverse();
  return [...parts, ...rest].join('.');
}

function numberOf(part: string): number {
  if (/^0x/i.test(part)) return part.length === 2 ? 0 : Number(part);
  if (!/^0\d/.test(part)) return Number(part);
  return /^[0-7]+$/.test(part) ? Number.parseInt(part, 8) : Number.NaN;
}

export interface NameFault {
  readonly code: HostRefusalCode;
  readonly detail: string;
}

/**
 * Finds a fault in the labels of a DNS name without its last dot: the rules of RFC 1035, 1123 and 5890 for ASCII, and
 * nothing about characters above it. Called twice, with the typed name and with its xn-- form: the conversion lets `a..b`,
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

// Not UTF-16 units: a typed name may have more of them than its xn-- form has characters.
function codePoints(text: string): number {
  return Array.from(text).length;
}

export type AsciiName = { readonly ok: true; readonly name: string } | ({ readonly ok: false } & NameFault);

/** All but letters, marks, digits and the punctuation of RFC 5892, appendix A; the middle dot is for Catalan `l·l` alone. */
const outsideIdn = /[^\p{L}\p{M}\p{Nd}\u00b7\u05f3\u05f4\u30fb.-]|(?<![lL])\u00b7|\u00b7(?![lL])/u;

/**
 * The xn-- form of a DNS name. Only a name in its displayed spelling is converted: UTS 46 would make `1.com` of `①.com`, and
 * a name that the user did not type must not become the public host.
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

/** A DNS name as people write it: its Unicode, if typing that leads back to the name and nothing in it is unseen. */
export function displayName(name: string): string {
  const unicode = domainToUnicode(name);
  if (nameFault(unicode)) return name;
  const back = toAscii(unicode);
  return back.ok && back.name === name ? unicode : name;
}

const byDomain: ReadonlyMap<string, SpecialUseName> = new Map(specialUseNames.map((entry) => [entry.domain, entry]));

/** The most specific special-use domain that a lower case ASCII name is or lies under, if one. */
export function specialName(name: string): SpecialUseName | undefined {
  const labels = name.split('.');
  for (const at of labels.keys()) {
    const entry = byDomain.get(labels.slice(at).join('.'));
    if (entry) return entry;
  }
  return undefined;
}

/** Judges a text without URL syntax that is not an IP address: is it a name of the public DNS? */
export function classifyName(text: string, { allowTestNames = false }: HostOptions): HostVerdict {
  const typed = text.replace(/\.$/, '');
  const typedFault = nameFault(typed);
  if (typedFault) return refuse(typedFault.code, text, typedFault.detail);
  const ascii = toAscii(typed);
  if (!ascii.ok) return refuse(ascii.code, text, ascii.detail);
  const { name } = ascii;
  const fault = nameFault(name);
  if (fault) return refuse(fault.code, text, fault.detail);
  const special = specialName(name);
  if (special && !(allowTestNames && special.forTests)) {
    return refuse('specialUseName', text, `${special.domain} (${special.source})`);
  }
  if (!name.includes('.')) return refuse('singleLabel', text);
  return { ok: true, host: { kind: 'dns', name, display: displayName(name), origin: `https://${name}` } };
}
