/** Measures the language of the project: rule 29 of the style guide in CONTRIBUTING.md. */
import { roomOf } from './budgets.ts';
import type { Finding } from './findings.ts';
import { partsOfDocument, partsOfSource } from './texts.ts';

const isDocument = (file: string): boolean => file.endsWith('.md');
const wordsOf = (text: string): number => [...text.matchAll(/[A-Za-z][A-Za-z'’-]*/g)].length;

const commentsOf = (file: string, source: string): { readonly content: string; readonly line: number }[] =>
  /\.(?:tsx?|m[jt]s|js)$/.test(file) ? partsOfSource(file, source).filter(({ kind }) => kind === 'comment') : [];

/** Words and findings of a room or of a document. */
interface Row {
  words: number;
  /** “What” clauses in the comments or sentences that the words are counted in. */
  clauses: number;
  /** “What” clauses in titles of tests and in texts of the program. */
  inTexts: number;
  /** Findings of the other patterns. */
  others: number;
}

/**
 * A table of words, “what” clauses and other findings.
 *
 * @param texts by file, from the root
 * @param findings of these texts
 */
export function measure(texts: ReadonlyMap<string, string>, findings: readonly Finding[]): string {
  const rows = new Map<string, Row>();
  const nameOf = (file: string): string => (isDocument(file) ? file : roomOf(file));
  const rowOf = (name: string): Row => {
    const row = rows.get(name) ?? { words: 0, clauses: 0, inTexts: 0, others: 0 };
    rows.set(name, row);
    return row;
  };
  for (const [file, source] of texts) {
    const parts = isDocument(file) ? partsOfDocument(source) : commentsOf(file, source);
    for (const { content } of parts) rowOf(nameOf(file)).words += wordsOf(content);
  }
  for (const { file, id, kind } of findings) {
    const row = rowOf(nameOf(file));
    if (id !== 'what-clause') row.others += 1;
    else if (kind === 'comment' || isDocument(file)) row.clauses += 1;
    else row.inTexts += 1;
  }
  const named = [...rows].filter(([, { words }]) => words > 0).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const sumOf = (title: string, chosen: [string, Row][]): [string, Row] => {
    const sum = { words: 0, clauses: 0, inTexts: 0, others: 0 };
    for (const [, row] of chosen) for (const key of Object.keys(sum) as (keyof Row)[]) sum[key] += row[key];
    return [title, sum];
  };
  const table = [
    ...named,
    sumOf(
      'All comments',
      named.filter(([name]) => !isDocument(name)),
    ),
    sumOf(
      'All documents',
      named.filter(([name]) => isDocument(name)),
    ),
  ];
  const lines = table.map(([name, { words, clauses, inTexts, others }]) => {
    const rate = words === 0 ? 0 : (clauses * 10_000) / words;
    return [name.padEnd(44), words, clauses, rate.toFixed(1), inTexts, others].map((cell) => `${cell}`.padStart(10));
  });
  const head = ['Room or document'.padEnd(44), 'words', '“what”', 'per 10,000', 'in texts', 'others'];
  return [head.map((cell) => cell.padStart(10)), ...lines].map((cells) => cells.join('  ')).join('\n');
}

/**
 * Comments with their places, drawn without repetition.
 *
 * @param texts by file, from the root
 * @param seed the same seed draws the same comments of the same texts
 */
export function sample(texts: ReadonlyMap<string, string>, count: number, seed: number): string[] {
  const comments = [...texts].flatMap(([file, source]) => {
    const lines = source.split('\n');
    return commentsOf(file, source).map(({ content, line }) =>
      [`${file}:${line}`, ...lines.slice(line - 1, line - 1 + content.split('\n').length)].join('\n'),
    );
  });
  let state = seed;
  // Numerical Recipes, section 7.1: a linear congruential generator of 32 bits.
  const next = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const drawn: string[] = [];
  while (drawn.length < count && comments.length > 0) drawn.push(...comments.splice(next(comments.length), 1));
  return drawn;
}
