import type { DiffRow } from '../data/diff-rows.ts';
import { type ColouredLines, coloursOf, isColourable } from './colours.ts';
import { type LanguageName, languageOfFile } from './language-names.ts';
import type { Stretch } from './languages.ts';

type Colour = (code: string, language: LanguageName) => ColouredLines | null;

/** Colours of the rows of a diff: each side of a hunk is coloured like a code of its own. */
export function diffColours(
  rows: readonly DiffRow[],
  colour: Colour = coloursOf,
): ReadonlyMap<DiffRow, readonly Stretch[]> {
  const found = new Map<DiffRow, readonly Stretch[]>();
  let language: LanguageName | null = null;
  let part: DiffRow[] = [];
  const end = () => {
    if (language !== null) {
      colourSide(part, 'removed', language, colour, found);
      colourSide(part, 'added', language, colour, found);
    }
    part = [];
  };
  for (const row of rows) {
    if (row.kind === 'file' || row.kind === 'hunk') end();
    else part.push(row);
    if (row.kind === 'file') language = languageOfFile(row.text);
  }
  end();
  return found;
}

function colourSide(
  part: readonly DiffRow[],
  side: 'added' | 'removed',
  language: LanguageName,
  colour: Colour,
  found: Map<DiffRow, readonly Stretch[]>,
): void {
  const own = part.filter(({ kind }) => kind === 'same' || kind === side);
  const code = own.map(({ text }) => text).join('\n');
  if (!own.some(({ kind }) => kind === side) || !isColourable(code)) return;
  const lines = colour(code, language);
  for (const [index, row] of own.entries()) {
    const line = lines?.[index];
    if (line) found.set(row, line);
  }
}
