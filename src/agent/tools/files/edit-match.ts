/** Finds the places of a piece in a text, exactly or but for line ends and spaces before them. Never guesses. */

/** Range from `start` up to, not including, `end`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** More places than this are not counted. */
export const maxPlaces = 1_000;

/** All places of `piece` in `text`, first to last. Overlapping ones count, so that one is unique or it is not. */
export function placesOf(text: string, piece: string, step = 1, most = maxPlaces): Span[] {
  const places: Span[] = [];
  for (let at = text.indexOf(piece); at !== -1 && places.length < most; at = text.indexOf(piece, at + step)) {
    places.push({ start: startOf(text, at), end: at + piece.length });
  }
  return places;
}

/** Start of the line end at `at`: a match that takes a line feed also takes the CR before it. */
const startOf = (text: string, at: number): number => (text[at] === '\n' && text[at - 1] === '\r' ? at - 1 : at);

/**
 * Places of `piece` where only line ends (CR LF, LF) and spaces or tabs at the ends of lines may differ. Spaces in the text
 * that follow the last line of `piece` stay out of the span, unless `piece` itself ends in some.
 */
export function tolerantPlacesOf(text: string, piece: string): Span[] {
  const stripped = new StrippedText(text);
  const { text: wanted } = new StrippedText(piece);
  const tail = /(?<![ \t])[ \t]+$/.exec(piece)?.[0] ?? '';
  const withTail = wanted === '' ? [] : placesOf(stripped.text, wanted + tail);
  if (tail === '') return withTail.map(({ start, end }) => stripped.original(start, end));
  // In the stripped text the tail is only within a line; at the end of one it has been taken away.
  const atLineEnd = (wanted === '' ? [] : placesOf(stripped.text, wanted)).filter(({ end }) => stripped.isLineEnd(end));
  return [
    ...withTail.map(({ start, end }) => stripped.original(start, end)),
    ...atLineEnd.map(({ start, end }) => stripped.original(start, end, true)),
  ];
}

interface Line {
  /** Position in the stripped text. */
  readonly at: number;
  /** Positions in the original: start of the line, end of its compared part, start of its line end. */
  readonly start: number;
  readonly keptEnd: number;
  readonly lineEnd: number;
}

/** A text without spaces before line ends, which are LF, and the way back. */
class StrippedText {
  readonly text: string;
  readonly #lines: readonly Line[];

  constructor(original: string) {
    const lines: Line[] = [];
    const kept: string[] = [];
    for (let start = 0, at = 0; ; ) {
      const feed = original.indexOf('\n', start);
      const end = feed === -1 ? original.length : feed;
      const lineEnd = feed > start && original[feed - 1] === '\r' ? feed - 1 : end;
      const keptEnd = withoutSpaces(original, start, lineEnd);
      lines.push({ at, start, keptEnd, lineEnd });
      kept.push(original.slice(start, keptEnd));
      at += keptEnd - start + 1;
      if (feed === -1) break;
      start = feed + 1;
    }
    this.text = kept.join('\n');
    this.#lines = lines;
  }

  isLineEnd(at: number): boolean {
    return at === this.text.length || this.text[at] === '\n';
  }

  /** The span of the original; `withSpaces`: with the spaces that follow it. */
  original(start: number, end: number, withSpaces = false): Span {
    const first = this.#lineAt(start);
    const last = this.#lineAt(end);
    const startsAtLineEnd =
      start - first.at === first.keptEnd - first.start && start < end && this.text[start] === '\n';
    return {
      start: startsAtLineEnd ? first.lineEnd : first.start + start - first.at,
      end: withSpaces ? last.lineEnd : last.start + end - last.at,
    };
  }

  #lineAt(at: number): Line {
    let low = 0;
    let high = this.#lines.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#lines[middle]?.at ?? 0) <= at) low = middle;
      else high = middle - 1;
    }
    return this.#lines[low] ?? { at: 0, start: 0, keptEnd: 0, lineEnd: 0 };
  }
}

function withoutSpaces(text: string, start: number, end: number): number {
  let at = end;
  while (at > start && (text[at - 1] === ' ' || text[at - 1] === '\t')) at -= 1;
  return at;
}
