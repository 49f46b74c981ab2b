let segmenter: Intl.Segmenter | undefined;
/** Code units to read around a cut, longer than any grapheme in real text. */
const aroundCut = 64;

/** Returns at most the first `max` code units of a text, without splitting a visible character such as a multi-part emoji. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text;
  const from = Math.max(0, max - aroundCut);
  // Created on first use, because the locale data takes 25 ms of processor time to load.
  segmenter ??= new Intl.Segmenter();
  const { index = max - from } = segmenter.segment(text.slice(from, max + aroundCut)).containing(max - from) ?? {};
  return text.slice(0, from + index);
}
