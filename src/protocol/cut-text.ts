let segmenter: Intl.Segmenter | undefined;
/** Code units around a cut that are read: no grapheme that people write is longer. */
const aroundCut = 64;

/** The first `max` code units of a text, or fewer: a visible character, such as an emoji of several parts, is not divided. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text;
  const from = Math.max(0, max - aroundCut);
  // On first use: the data of a locale takes 25 ms of processor time to load.
  segmenter ??= new Intl.Segmenter();
  const { index = max - from } = segmenter.segment(text.slice(from, max + aroundCut)).containing(max - from) ?? {};
  return text.slice(0, from + index);
}
