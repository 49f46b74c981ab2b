import { useEffect, useMemo, useState } from 'preact/hooks';
import { visible } from '../../../../lib/browser.ts';
import { ColouredLine } from '../code/coloured.tsx';
import { diffColours } from '../code/diff-colours.ts';
import type { Stretch } from '../code/languages.ts';
import type { DiffRow } from '../data/diff-rows.ts';
import { DiffView } from '../rows/diff-view.tsx';
import { type Pair, pairsOf } from './sections.ts';

/** Rows shown initially, and the least number that each press adds. */
const firstRows = 200;
/** Screens on which two columns would be too narrow to read. */
const narrow = '(max-width: 700px)';

/** A change of one file: before and after side by side, on a narrow screen line by line. */
export function Sides({ rows }: { readonly rows: readonly DiffRow[] }) {
  return useNarrow() ? <DiffView rows={rows} /> : <TwoColumns rows={rows} />;
}

function TwoColumns({ rows: whole }: { readonly rows: readonly DiffRow[] }) {
  const [limit, setLimit] = useState(firstRows);
  const rows = useMemo(() => whole.map((row) => ({ ...row, text: visible(row.text, { multiline: false }) })), [whole]);
  const pairs = useMemo(() => pairsOf(rows), [rows]);
  const shown = pairs.slice(0, limit);
  const colourable = useMemo(() => rowsIn(shown, rows), [rows, limit]);
  const coloured = diffColours(colourable);
  return (
    <>
      <table class="sides">
        <colgroup>
          <col class="number" />
          <col />
          <col class="number" />
          <col />
        </colgroup>
        <thead class="unseen">
          <tr>
            <th scope="col">Line before</th>
            <th scope="col">Before</th>
            <th scope="col">Line after</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ left, right }, index) =>
            left?.kind === 'hunk' ? (
              <tr key={index} class="hunk">
                <td colSpan={4}>{left.text}</td>
              </tr>
            ) : (
              <tr key={index}>
                <Side row={left} number={left?.before} colours={left ? coloured.get(left) : undefined} />
                <Side row={right} number={right?.after} colours={right ? coloured.get(right) : undefined} />
              </tr>
            ),
          )}
        </tbody>
      </table>
      {pairs.length > limit && (
        <button type="button" class="bare" onClick={() => setLimit(limit * 8)}>
          Show more ({(pairs.length - limit).toLocaleString()} lines)
        </button>
      )}
    </>
  );
}

interface SideProps {
  /** Line of this side; null: only the other side has lines here. */
  readonly row: DiffRow | null;
  readonly number: number | null | undefined;
  readonly colours: readonly Stretch[] | undefined;
}

const words: Readonly<Partial<Record<DiffRow['kind'], string>>> = { added: 'Added: ', removed: 'Removed: ' };

function Side({ row, number, colours }: SideProps) {
  if (!row) return <td class="gap" colSpan={2} />;
  const word = words[row.kind];
  return (
    <>
      <td class={`at ${row.kind}`}>{number ?? ''}</td>
      <td class={row.kind}>
        {word !== undefined && <span class="unseen">{word}</span>}
        <code>{colours ? <ColouredLine line={colours} /> : row.text}</code>
      </td>
    </>
  );
}

/** The rows of these pairs in the order of the diff, with the name of the file, which says the language. */
function rowsIn(pairs: readonly Pair[], rows: readonly DiffRow[]): readonly DiffRow[] {
  const shown = new Set(pairs.flatMap(({ left, right }) => [left, right]));
  return rows.filter((row) => row.kind === 'file' || shown.has(row));
}

function useNarrow(): boolean {
  const [query] = useState(() => matchMedia(narrow));
  const [isNarrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const follow = () => setNarrow(query.matches);
    query.addEventListener('change', follow);
    return () => query.removeEventListener('change', follow);
  }, [query]);
  return isNarrow;
}
