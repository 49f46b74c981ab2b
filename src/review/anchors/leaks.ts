import { shortestUncertainSecret } from '../../lib/index.ts';
import { credentialIn } from './credentials.ts';
import { invisible } from './hidden-text.ts';

/** Letters and digits of the shortest secret that is searched for between other characters. */
const shortestBare = 16;
/** Length of a part of a longer secret, in letters and digits: so many in a row are not an accident. */
const partLength = 24;
/** Length of the pieces that are looked up first. */
const seedLength = 8;
/** Pieces of a text are looked up at multiples of this number: one of them lies within any part. */
const seedStep = partLength - seedLength + 1;

/**
 * Names the kind of secret in a text; undefined when it holds none. Searches the unchanged text, and the text without white
 * space, marks and invisible characters, decoded from percent signs, character references, base64 and hexadecimal digits.
 *
 * @param secrets secrets of this process: whole, or any part of them of 24 letters and digits
 */
export function leakIn(text: string, secrets: readonly string[]): string | undefined {
  const views = viewsOf(text);
  // A find blocks the publication: a short secret would block every text that uses the word.
  const known = secrets.filter((secret) => secret.length >= shortestUncertainSecret);
  if (known.length > 0 && hasSecret(views, known)) return 'a secret of this server';
  for (const view of views) {
    const found = credentialIn(view);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Forms of the text in which a reader could read it. */
function viewsOf(text: string): string[] {
  const plain = text
    .normalize('NFKC')
    .replace(invisible, '')
    .replace(/[\u200c\u200d]/g, '');
  const decoded = [percentDecoded(plain), referencesDecoded(plain), plain.replaceAll('\\n', '\n')];
  const hidden = [
    ...[...plain.matchAll(/[A-Za-z0-9+/_-]{16,}/g)].flatMap(([run]) => decodedFrom(run, 'base64', 4)),
    ...[...plain.matchAll(/[0-9a-f]{16,}/gi)].flatMap(([run]) => decodedFrom(run, 'hex', 2)),
  ];
  return [...new Set([plain, ...decoded, hidden.join('\n')])];
}

const percentDecoded = (text: string): string =>
  text.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

const referencesDecoded = (text: string): string =>
  text.replace(/&#(?:x([0-9a-f]{1,6})|(\d{1,7}));/gi, (all: string, hex?: string, decimal?: string) => {
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });

/** Decodes a run from each of its first few letters, because the encoded text may begin anywhere within it. */
function decodedFrom(run: string, encoding: 'base64' | 'hex', shifts: number): string[] {
  const decoded = Array.from({ length: shifts }, (_, shift) =>
    Buffer.from(run.slice(shift), encoding).toString('latin1'),
  );
  return decoded.flatMap((text) => text.match(/[ -~]{8,}/g) ?? []);
}

const squashed = (text: string): string => text.replace(/[^\p{L}\p{N}]+/gu, '');

/** Forms of secrets in which a text may hold them. */
interface Sought {
  readonly secrets: readonly string[];
  /** Letters and digits of the secrets that have enough of them. */
  readonly wholes: readonly string[];
  /** Pieces of the secrets that are long enough to have parts. */
  readonly seeds: ReadonlySet<string>;
}

let sought: Sought = { secrets: [], wholes: [], seeds: new Set() };

/** Returns the forms of the secrets, prepared once for equal secrets: a review scans dozens of texts for them. */
function soughtOf(secrets: readonly string[]): Sought {
  const isSame = secrets.length === sought.secrets.length && secrets.every((each, at) => each === sought.secrets[at]);
  if (isSame) return sought;
  const bares = secrets.map((secret) => squashed(secret.normalize('NFKC')));
  const seeds = new Set<string>();
  for (const bare of bares.filter(({ length }) => length >= partLength)) {
    for (let at = 0; at + seedLength <= bare.length; at += 1) seeds.add(bare.slice(at, at + seedLength));
  }
  sought = { secrets: [...secrets], wholes: bares.filter(({ length }) => length >= shortestBare), seeds };
  return sought;
}

function hasSecret(views: readonly string[], secrets: readonly string[]): boolean {
  const { wholes, seeds } = soughtOf(secrets);
  return views.some((view) => {
    if (secrets.some((secret) => view.includes(secret))) return true;
    const bare = squashed(view);
    return wholes.some((whole) => bare.includes(whole)) || hasPart(bare, wholes, seeds);
  });
}

/** Looks up pieces of the text, and the parts around a piece only if a secret has the piece. */
function hasPart(text: string, wholes: readonly string[], seeds: ReadonlySet<string>): boolean {
  if (seeds.size === 0) return false;
  for (let at = 0; at + seedLength <= text.length; at += seedStep) {
    if (!seeds.has(text.slice(at, at + seedLength))) continue;
    const last = Math.min(at, text.length - partLength);
    for (let from = Math.max(0, at - seedStep + 1); from <= last; from += 1) {
      const part = text.slice(from, from + partLength);
      if (wholes.some((whole) => whole.includes(part))) return true;
    }
  }
  return false;
}
