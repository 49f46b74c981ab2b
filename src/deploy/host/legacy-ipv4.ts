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
