import { type Span, tolerantPlacesOf } from './edit-match.ts';

/** Characters that a composition may join: a letter with its marks, and the parts of a Korean syllable. */
const clusters =
  /[\u1100-\u115f][\u1160-\u11a7]*[\u11a8-\u11ff]*\p{M}*|[\uac00-\ud7a3][\u11a8-\u11ff]*\p{M}*|\P{M}\p{M}*|\p{M}+/gu;

/** A cluster whose composed form has another length or other characters. */
interface Composition {
  /** Position in the composed text. */
  readonly at: number;
  readonly length: number;
  /** Start in the original text. */
  readonly start: number;
  readonly end: number;
}

/** A text in the composed form of Unicode (NFC), and the way back. */
class ComposedText {
  readonly text: string;
  readonly #compositions: readonly Composition[];

  constructor(original: string) {
    const compositions: Composition[] = [];
    let composed = '';
    let copied = 0;
    for (const { 0: cluster, index: start } of original.matchAll(clusters)) {
      const form = cluster.normalize('NFC');
      if (form === cluster) continue;
      composed += original.slice(copied, start);
      copied = start + cluster.length;
      compositions.push({ at: composed.length, length: form.length, start, end: copied });
      composed += form;
    }
    this.text = composed + original.slice(copied);
    this.#compositions = compositions;
  }

  /** The span of the original; undefined: it begins or ends within a cluster. */
  original({ start, end }: Span): Span | undefined {
    const [from, to] = [this.#originalOf(start), this.#originalOf(end)];
    return from === undefined || to === undefined ? undefined : { start: from, end: to };
  }

  #originalOf(place: number): number | undefined {
    const before = this.#compositions.findLast(({ at }) => at <= place);
    if (!before || before.at === place) return before?.start ?? place;
    const behind = place - before.at - before.length;
    return behind < 0 ? undefined : before.end + behind;
  }
}

/**
 * Places of `piece` where only the form of its characters may differ, as in names and texts from macOS: é is one code point, or e and a
 * mark. Line ends and spaces before them may differ, too.
 */
export function composedPlacesOf(text: string, piece: string): readonly Span[] {
  const wanted = piece.normalize('NFC');
  const isComposed = wanted === piece && text.normalize('NFC') === text;
  if (isComposed) return [];
  const composed = new ComposedText(text);
  return tolerantPlacesOf(composed.text, wanted).flatMap((span) => composed.original(span) ?? []);
}
