/** Every message that docs/troubleshooting.md quotes is one that the sources can print. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

/** Stands for an inserted value in the sources. */
const value = '\u0000';

/** Texts of the sources as one string: without comments, with `value` for each insertion, and with joined literals as one. */
const corpus = globSync(['src/**/*.{ts,tsx}', 'machines/**/*.ts', 'bin/*.js', 'scripts/toolchain.mjs'], { cwd: root })
  .map((file) => readFileSync(join(root, file), 'utf8'))
  .join('\n')
  .replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/ .*$/gm, '')
  .replace(/(['"`])\s*\+\s*(['"`])/g, '')
  .replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, value)
  .replace(/\{'([^'\n]*)'\}/g, '$1')
  .replace(/\\(['"`])/g, '$1')
  .replace(/\s+/g, ' ');

/** Spaces of the corpus by the characters beside them. Looking through the whole corpus for each run of words takes seconds. */
const spaces = new Map<string, number[]>();
for (let at = corpus.indexOf(' '); at !== -1; at = corpus.indexOf(' ', at + 1)) {
  const beside = `${corpus[at - 1]}${corpus[at + 1]}`;
  const known = spaces.get(beside);
  if (known) known.push(at);
  else spaces.set(beside, [at]);
}

/** True when the corpus contains these words, of which there are at least two. */
function isInCorpus(words: readonly string[]): boolean {
  const [first = '', second = ''] = words;
  if (first === '' || second === '') return corpus.includes(words.join(' '));
  const text = words.join(' ');
  const found = spaces.get(`${first.at(-1)}${second[0]}`) ?? [];
  return found.some((at) => corpus.startsWith(text, at - first.length));
}

/** Words that a reader sees in place of an inserted value: numbers, paths, addresses, names. */
const isValue = (word: string): boolean =>
  /[\d/…]|^[A-Z_]{2,}|\w\.\w|^"/.test(word) || /^(?:npx|EndPoint|ApiKey)\b/.test(word);

/** Inserted values of several words. */
const phrases = /\b(?:npm test|database is locked)\b/g;

/** Runs of words between inserted values, without the short ones. */
function fixedParts(message: string): string[][] {
  const parts: string[][] = [[]];
  for (const word of message
    .replace(/^[✖!] /, '')
    .replace(phrases, '…')
    .split(/\s+/)) {
    if (isValue(word)) parts.push([]);
    else parts.at(-1)?.push(word);
  }
  return parts.filter(({ length }) => length > 2);
}

/**
 * Most pieces of one part: texts of the sources in a row, and words between them. Inserted values can look like words: `npm test`,
 * `dashboard`, a message of SQLite.
 */
const mostPieces = 4;

/** Least number of pieces that make up these words: runs of two words or more of the sources, and single words. */
function piecesOf(words: readonly string[]): number {
  const bare = words.map((word) => word.replace(/^\(|[.:,;)]+$/g, ''));
  const has = (from: number, to: number) =>
    [words, bare].some((ends) =>
      isInCorpus([bare[from]?.replace(/^\(/, '') ?? '', ...words.slice(from + 1, to - 1), ends[to - 1] ?? '']),
    );
  // Ends of the runs that begin at each word. The sources that have a run have each shorter one, too.
  const ends = words.map((_, from) => {
    let to = from + 1;
    while (to < words.length && has(from, to + 1)) to += 1;
    return to;
  });
  const least = [0];
  for (let to = 1; to <= words.length; to += 1) {
    const before = ends.flatMap((end, from) => (from < to && to <= end ? [least[from] ?? 0] : []));
    least[to] = 1 + Math.min(...before);
  }
  return least[words.length] ?? 0;
}

const isInSources = (words: readonly string[]): boolean => piecesOf(words) <= mostPieces;

const commands =
  /^(?:oratorio |sudo |npm |npx |kill |ps |ss |echo |grep |fuser |sqlite3 |git |chmod |chown |unset |systemctl |timedatectl |ORATORIO_)/;

/** Quotes of a page, with their lines: blocks without a language, and code of three words or more that is not a command. */
function quotesOf(page: string): { readonly message: string; readonly line: number }[] {
  const lines = page.split('\n');
  let fence: string | undefined;
  return lines.flatMap((text, at) => {
    const [, mark] = /^```(\w*)$/.exec(text) ?? [];
    if (mark !== undefined) {
      fence = fence === undefined ? mark : undefined;
      return [];
    }
    if (fence !== undefined) return fence === '' ? [{ message: text, line: at + 1 }] : [];
    const inline = [...text.matchAll(/(`+) ?(.+?) ?\1(?!`)/g)].map(([, , code = '']) => code);
    return inline
      .filter((code) => code.split(' ').length > 2 && !commands.test(code))
      .map((message) => ({ message, line: at + 1 }));
  });
}

t.test('each quoted message occurs in the sources', async (t) => {
  const quotes = quotesOf(readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8'));
  t.ok(quotes.length > 80, `${quotes.length} quotes are found`);
  for (const { message, line } of quotes) {
    const missing = fixedParts(message).filter((words) => !isInSources(words));
    t.strictSame(
      missing.map((words) => words.join(' ')),
      [],
      `line ${line}: ${message}`,
    );
  }
});

t.test('a message that no source prints is found', async (t) => {
  t.notOk(fixedParts('✖ The Hub has gone for a walk at /home/me.').every(isInSources));
  t.ok(fixedParts('✖ There is no /home/me/.oratorio/hub/hub.lock: no Hub is running.').every(isInSources));
});
