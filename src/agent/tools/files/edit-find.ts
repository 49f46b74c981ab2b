import { composedPlacesOf } from './edit-composed.ts';
import { lineEndOf, toLineEnd } from './edit-line-ends.ts';
import { type Change, distinctiveChars, type Edit, linePlaces, plain } from './edit-lines.ts';
import { placesOf, type Span, tolerantPlacesOf } from './edit-match.ts';
import { readingsOf } from './edit-unwrap.ts';

export interface FoundEdit {
  readonly changes: readonly Change[];
  /** Difference between the old text and the file's text, in words; undefined: no difference. */
  readonly differs: string | undefined;
}

type Texts = Pick<Edit, 'oldText' | 'newText'>;

/** One way of comparing, each more tolerant than the one before it. */
interface Pass {
  /** Completes “matched but for …”. */
  readonly differs: string;
  /** Both texts mean the same, so short texts and `replaceAll` may use this pass. */
  readonly isSafe?: true;
  places(text: string, texts: Texts): readonly Change[];
}

const same = (line: string): string => line;
const spans = (places: readonly Span[], { newText }: Texts): readonly Change[] =>
  places.map((span) => ({ ...span, replacement: newText }));

/** The new text; lines that it repeats keep the characters of the file. */
function withLinesOf(found: string, { oldText, newText }: Texts): string {
  const [own, wanted] = [found.split(/\r?\n/), oldText.split(/\r?\n/)];
  if (own.length !== wanted.length) return newText;
  const repeated = new Map(wanted.map((line, index) => [line, own[index] ?? line]));
  return newText
    .split(/\r?\n/)
    .map((line) => repeated.get(line) ?? line)
    .join('\n');
}

const withOwnLines = (text: string, places: readonly Span[], texts: Texts): readonly Change[] =>
  places.map((span) => ({ ...span, replacement: withLinesOf(text.slice(span.start, span.end), texts) }));

const passes: readonly Pass[] = [
  {
    differs: 'spaces at line ends',
    isSafe: true,
    places: (text, texts) => withOwnLines(text, tolerantPlacesOf(text, texts.oldText), texts),
  },
  {
    differs: 'forms of accented letters',
    isSafe: true,
    places: (text, texts) => withOwnLines(text, composedPlacesOf(text, texts.oldText), texts),
  },
  {
    differs: 'quotes, dashes or odd blanks',
    places: (text, texts) => withOwnLines(text, tolerantPlacesOf(plain(text), plain(texts.oldText)), texts),
  },
  { differs: 'indentation', places: (text, texts) => linePlaces(text, texts, same) },
  {
    differs: 'indentation, quotes, dashes or odd blanks',
    places: (text, texts) => linePlaces(text, texts, plain),
  },
];

/**
 * Finds the old text of an edit: exactly, then by passes that forgive slips of models: spaces at line ends, decomposed and typographic characters,
 * indentation that maps one to one; each also without blank lines, a code fence or line numbers around. The first that finds
 * anything decides. Nothing is found by similarity.
 */
export function findEdit(text: string, { oldText, newText, replaceAll }: Edit): FoundEdit {
  const exact = (piece: string) =>
    replaceAll ? placesOf(text, piece, piece.length, Number.POSITIVE_INFINITY) : placesOf(text, piece);
  const asGiven = exact(oldText);
  if (asGiven.length > 0) return { changes: spans(asGiven, { oldText, newText }), differs: undefined };
  // Models are shown no CR: in a file of CR LF their line ends mean those.
  const asInFile = exact(toLineEnd(oldText, lineEndOf(text)));
  if (asInFile.length > 0) return { changes: spans(asInFile, { oldText, newText }), differs: undefined };
  const readings = readingsOf({ oldText, newText });
  // Text that is only similar is never replaced everywhere.
  for (const { differs, isSafe, places } of replaceAll ? passes.filter((pass) => pass.isSafe) : passes) {
    for (const [index, texts] of readings.entries()) {
      const isDistinctive = texts.oldText.replaceAll(/\s/g, '').length >= distinctiveChars;
      const changes = isDistinctive || (index === 0 && isSafe) ? places(text, texts) : [];
      if (changes.length > 0) return { changes, differs: index === 0 ? differs : `${differs}, and the text around it` };
    }
  }
  return { changes: [], differs: undefined };
}
