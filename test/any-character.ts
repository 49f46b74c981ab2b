/** Characters, paths and URLs for properties about any text. */
import fc from 'fast-check';

const firstSurrogate = 0xd800;
const surrogates = 0x800;
const characters = 0x110000 - surrogates;

const toCharacter = (index: number): string =>
  String.fromCodePoint(index < firstSurrogate ? index : index + surrogates);

/** Inverse of `toCharacter`. @throws for anything but one character, as fast-check wants it */
function toIndex(text: unknown): number {
  const code = typeof text === 'string' ? text.codePointAt(0) : undefined;
  if (code === undefined || text !== String.fromCodePoint(code)) throw new Error('not one character');
  if (code < firstSurrogate) return code;
  if (code < firstSurrogate + surrogates) throw new Error('half of a surrogate pair');
  return code - surrogates;
}

/**
 * Any character of Unicode, as a unit of `fc.string`. The unit `binary` of fast-check means the same, but first makes a table of
 * all of them: more than a second of processor time in each process.
 */
export const anyCharacter = fc.integer({ min: 0, max: characters - 1 }).map(toCharacter, toIndex);

const plainInPath = fc.constantFrom(..."abcxyzABCXYZ0189-._~!$&'()*+,;=:@");

function percentEncoded(character: string): string {
  const encoded = encodeURIComponent(character);
  return encoded === character ? `%${character.codePointAt(0)?.toString(16).padStart(2, '0')}` : encoded;
}

const segment = fc.string({
  unit: fc.oneof({ weight: 8, arbitrary: plainInPath }, { weight: 2, arbitrary: anyCharacter.map(percentEncoded) }),
});

/** Path of a URL. In place of `fc.webPath`, which makes the table of all characters, too. */
export const anyWebPath = fc.array(segment, { maxLength: 8 }).map((parts) => parts.map((part) => `/${part}`).join(''));

/** Absolute URL, as `fc.webUrl` makes it. */
export const anyWebUrl = fc
  .tuple(fc.constantFrom('http', 'https'), fc.webAuthority(), anyWebPath)
  .map(([scheme, authority, path]) => `${scheme}://${authority}${path}`);
