import { createHash } from 'node:crypto';

/** Facts that identify a finding. */
export interface FindingIdentity {
  readonly path: string;
  /** Former path of a renamed file: in the base, or when the other finding was reported. */
  readonly oldPath?: string | null | undefined;
  readonly title: string;
  readonly oldText?: string | undefined;
}

/** Removes white space: line breaks and indentation are the formatter's choice. */
const bare = (text: string): string => text.normalize('NFC').replace(/\s+/g, '');
const worded = (text: string): string => wordsOf(text).join(' ');

/**
 * Computes the same value for a remark about the same text, wherever the text has moved to, however it is indented or wrapped,
 * and under whatever name the file was before (`oldPath`): a reported finding is not reported again. The words of a remark do not count,
 * because a model words it differently each time; a remark without a text is known by its title.
 */
export function fingerprintOf({ path, oldPath, title, oldText = '' }: FindingIdentity): string {
  const subject = bare(oldText) || `title:${worded(title)}`;
  return createHash('sha256')
    .update(`${oldPath ?? path}\0${subject}`)
    .digest('hex')
    .slice(0, 24);
}

const segmenter = new Intl.Segmenter('en', { granularity: 'word' });
/** Letters and digits of any script; scripts that put no spaces between words are parted, too. */
const wordsOf = (text: string): string[] =>
  [...segmenter.segment(text.normalize('NFKC').toLowerCase())].flatMap((each) => (each.isWordLike ? each.segment : []));
const namesIn = (text: string): Set<string> => new Set(text.match(/[\p{L}\p{N}_$]+/gu) ?? []);

function common(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  return [...a].filter((word) => b.has(word)).length;
}

/** Words of a title that distinguish remarks: without `a`, `is` and the like. */
const tellingWords = (title: string): Set<string> =>
  new Set(wordsOf(title).filter((word) => word.length > 2 || /[^a-z0-9]/.test(word)));

/** Share of words that two titles have in common, from 0 to 1 (Jaccard). */
export function similarity(left: string, right: string): number {
  if (worded(left) === worded(right)) return 1;
  const [a, b] = [tellingWords(left), tellingWords(right)];
  const shared = common(a, b);
  const all = a.size + b.size - shared;
  return all === 0 ? 0 : shared / all;
}

/** From here on two remarks say the same, if they can be about the same place. */
const sameTitle = 0.7;
/** Share of its names that the shorter text has in common with the longer: less, and they are different places. */
const sameText = 0.5;

/** Whether a text may be what has become of the other: more or less of it was quoted, or it was changed in part. */
function related(left = '', right = ''): boolean {
  const [a, b] = [namesIn(left), namesIn(right)];
  const fewer = Math.min(a.size, b.size);
  return fewer === 0 || common(a, b) / fewer >= sameText;
}

/**
 * True when a finding repeats another one, reported at an earlier push: the same text, or the same remark about a text that has
 * become another or was quoted otherwise. The same remark about some other place of the file is a finding of its own.
 */
export function repeats(finding: FindingIdentity, known: FindingIdentity): boolean {
  const names = [finding.path, finding.oldPath ?? finding.path];
  const isSameFile = names.includes(known.path) || names.includes(known.oldPath ?? known.path);
  if (!isSameFile) return false;
  const path = known.path;
  if (fingerprintOf({ ...finding, path, oldPath: null }) === fingerprintOf({ ...known, oldPath: null })) return true;
  return similarity(finding.title, known.title) >= sameTitle && related(finding.oldText, known.oldText);
}
