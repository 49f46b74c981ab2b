let segmenter: Intl.Segmenter | undefined;
/** Letters and digits of any script; scripts without spaces between words are parted by a dictionary. */
function wordsOf(text: string): string[] {
  // On first use: the data of a locale takes 25 ms of processor time to load.
  segmenter ??= new Intl.Segmenter('en', { granularity: 'word' });
  const segments = [...segmenter.segment(text.normalize('NFKC').toLowerCase())];
  return segments.flatMap((each) => (each.isWordLike ? each.segment : []));
}

/** English words that do not distinguish two problems. */
const fillers: ReadonlySet<string> = new Set(
  'a an the this that these those is are be been was were of in on at by to for from with and or it its as does do did has have can may'.split(
    ' ',
  ),
);
/** English words for the absence of something, which titles exchange freely. */
const absent: ReadonlySet<string> = new Set(
  'missing misses lacks lack lacking without no not never absent lacked'.split(' '),
);
/** Short words of hiragana are particles and endings. */
const isParticle = (word: string): boolean => /^\p{Script=Hiragana}{1,2}$/u.test(word);
const stemOf = (word: string): string => word.replace(/(?<=^[a-z]{4,})(?:ing|ed|es)$|(?<=^[a-z]{3,}[^s])s$/, '');

function distinctiveWords(title: string): ReadonlySet<string> {
  const words = wordsOf(title);
  const distinctive = words.filter((word) => !fillers.has(word) && !isParticle(word));
  return new Set((distinctive.length > 0 ? distinctive : words).map((word) => (absent.has(word) ? '∅' : stemOf(word))));
}

/** Visible characters of a text without words, for example of emoji. */
const marksOf = (text: string): string => text.normalize('NFKC').replace(/[\s\p{Cc}\p{Cf}]+/gu, '');
export const isBlank = (text: string): boolean => marksOf(text) === '';

/**
 * Compares the statements of two titles. One title may add words to the other; it may not replace any, because "missing length check"
 * and "missing type check" are two problems.
 *
 * @returns the share of common words, from 0 to 1; 0 when each title has a word that the other lacks
 */
export function agreement(left: string, right: string): number {
  if (marksOf(left).toLowerCase() === marksOf(right).toLowerCase()) return isBlank(left) ? 0 : 1;
  const [a, b] = [distinctiveWords(left), distinctiveWords(right)];
  const shared = [...a].filter((word) => b.has(word)).length;
  if (shared === 0 || (shared < a.size && shared < b.size)) return 0;
  return shared / Math.max(a.size, b.size);
}
