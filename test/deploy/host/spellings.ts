/** Every way people and programs write one address, the right ones and the wrong ones. */

/** A text for the name of an assertion: the test runner splits its lines at U+2028 as well. */
export function inAscii(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** All ways to take one element of each list, in order. */
function combinations<T>(lists: readonly (readonly T[])[]): T[][] {
  return lists.reduce<T[][]>((made, list) => made.flatMap((head) => list.map((item) => [...head, item])), [[]]);
}

const bases = (value: number): string[] => [`${value}`, `0${value.toString(8)}`, `0x${value.toString(16)}`];

/** Spellings that `inet_aton` reads as the address of these four bytes: one to four parts, each decimal, octal or hexadecimal. */
export function legacySpellings(bytes: readonly number[]): string[] {
  return [4, 3, 2, 1].flatMap((count) => {
    const head = bytes.slice(0, count - 1);
    const rest = bytes.slice(count - 1).reduce((sum, byte) => sum * 256 + byte, 0);
    return combinations([...head, rest].map(bases)).map((parts) => parts.join('.'));
  });
}

const digitsFrom = (zero: number) => (text: string) =>
  text.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)));

/** Unusual spellings of an address: none of these is an IPv4 address by the rules of today. */
export function dressedIpv4(bytes: readonly number[]): string[] {
  const dotted = bytes.join('.');
  const pair = (at: number) => (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16);
  const low = `${pair(0)}:${pair(2)}`;
  return [
    bytes.map((byte) => `${byte}`.padStart(3, '0')).join('.'),
    bytes.map((byte) => `0X${byte.toString(16).toUpperCase().padStart(4, '0')}`).join('.'),
    ...bytes.map((_, at) => bytes.map((byte, place) => (place === at ? `0${byte}` : `${byte}`)).join('.')),
    ...bytes.map((_, at) => bytes.map((byte, place) => (place === at ? byte + 256 : byte)).join('.')),
    ...[0xff10, 0x0660, 0x06f0, 0x0966, 0x1d7ce, 0x1d7f6].map((zero) => digitsFrom(zero)(dotted)),
    ...['\u3002', '\uff0e', '\uff61', '%2e', '..', ',', ' . '].map((dot) => bytes.join(dot)),
    ...[
      `[${dotted}]`,
      `${dotted}.`,
      `.${dotted}`,
      `${dotted}.1`,
      `+${dotted}`,
      `-${dotted}`,
      `${dotted}:443`,
      `${dotted}/32`,
    ],
    ...[
      ` ${dotted}`,
      `${dotted}\n`,
      `${dotted}\u200b`,
      `${dotted}\u0000`,
      `${dotted}%eth0`,
      `http://${dotted}/`,
      `a@${dotted}`,
    ],
    ...[
      `::ffff:${dotted}`,
      `::ffff:${low}`,
      `[::ffff:${dotted}]`,
      `::${dotted}`,
      `::ffff:0:${dotted}`,
      `64:ff9b::${low}`,
    ],
    ...[
      `2002:${low}::1`,
      `64:ff9b:1::${dotted}`,
      `2600::5efe:${dotted}`,
      `0x${low.replace(':', '')}.`,
      `foo.${bytes[0]}`,
    ],
  ];
}

/** Every notation of RFC 4291 for eight groups: with `::` in each place it may stand, digits padded or not, both cases, the end dotted. */
export function ipv6Spellings(groups: readonly number[]): string[] {
  const compressed = runsOfZeros(groups).flatMap(([from, to]) =>
    forms(groups.slice(0, from)).flatMap((head) =>
      (to <= 6 ? [...forms(groups.slice(to)), ...dottedForms(groups.slice(to))] : forms(groups.slice(to))).map(
        (tail) => `${head}::${tail}`,
      ),
    ),
  );
  const all = [...forms(groups), ...dottedForms(groups), ...compressed];
  return all.flatMap((text) => [text, `[${text}]`]);
}

function forms(groups: readonly number[]): string[] {
  const plain = groups.map((group) => group.toString(16)).join(':');
  const padded = groups.map((group) => group.toString(16).padStart(4, '0')).join(':');
  return [...new Set([plain, plain.toUpperCase(), padded, padded.toUpperCase()])];
}

function dottedForms(groups: readonly number[]): string[] {
  const dotted = groups
    .slice(-2)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.');
  return forms(groups.slice(0, -2)).map((head) => (head === '' ? dotted : `${head}:${dotted}`));
}

/** Where `::` may stand: from which group to before which. */
function runsOfZeros(groups: readonly number[]): [number, number][] {
  const ends = groups.flatMap((_, from) => groups.map((_, to): [number, number] => [from, to + 1]));
  return ends.filter(([from, to]) => from < to && groups.slice(from, to).every((group) => group === 0));
}

/** Additions to a right spelling that make it invalid. */
export function dressedIpv6(text: string): string[] {
  return [
    ...[
      `${text}%eth0`,
      `${text}%25eth0`,
      `${text}%1`,
      `[${text}%eth0]`,
      `[${text}]:443`,
      `[${text}]:`,
      `${text}/64`,
      `[${text}`,
    ],
    ...[
      `${text}]`,
      `[[${text}]]`,
      `[${text}].`,
      `${text}.`,
      `${text}::`,
      `::${text}::`,
      `:${text}`,
      `${text}:12345`,
      `0x${text}`,
    ],
    ...[
      ` ${text}`,
      `${text}\t`,
      `https://[${text}]/`,
      `user@[${text}]`,
      `${text.replaceAll(':', '\uff1a')}`,
      `${text}\u200d`,
    ],
    ...[
      `v1.${text}`,
      `[v1.${text}]`,
      `${text}#`,
      `${text}?`,
      `*.${text}`,
      `${text.replaceAll(':', '-')}.ipv6-literal.net:80`,
    ],
  ];
}
