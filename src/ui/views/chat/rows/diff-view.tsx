import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { visible } from '../../../../lib/browser.ts';
import { ColouredLine } from '../code/coloured.tsx';
import { diffColours } from '../code/diff-colours.ts';
import type { Stretch } from '../code/languages.ts';
import type { DiffRow } from '../data/diff-rows.ts';
import './diff.css';

/** Rows shown initially, and the least number that each press adds. */
const firstRows = 200;

const signs: Readonly<Record<DiffRow['kind'], string>> = { file: '', hunk: '', same: ' ', added: '+', removed: '−' };
const words: Readonly<Partial<Record<DiffRow['kind'], string>>> = { added: 'Added: ', removed: 'Removed: ' };
const elements: Readonly<Partial<Record<DiffRow['kind'], 'ins' | 'del'>>> = { added: 'ins', removed: 'del' };

interface DiffViewProps {
  readonly rows: readonly DiffRow[];
  /** Long lines continue on the next one. */
  readonly isWrapped?: boolean;
  /** Follows the last row, once all rows are shown. */
  readonly end?: ComponentChildren;
}

/** A change line by line, readable by its signs without colours. */
export function DiffView({ rows: whole, isWrapped = false, end }: DiffViewProps) {
  const [limit, setLimit] = useState(firstRows);
  const rows = useMemo(
    () => whole.map((row) => ({ ...row, text: visible(row.text, { multiline: false, strict: isWrapped }) })),
    [whole],
  );
  const shown = rows.slice(0, limit);
  const colours = diffColours(shown);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1)
    <div class={isWrapped ? 'diff lines-diff wrapped' : 'diff lines-diff'} tabIndex={0}>
      {shown.map((row, index) => (
        <Line key={index} row={row} colours={colours.get(row)} />
      ))}
      {rows.length > limit && (
        <button type="button" class="bare" onClick={() => setLimit(limit * 8)}>
          Show more ({(rows.length - limit).toLocaleString()} lines)
        </button>
      )}
      {rows.length <= limit && end}
    </div>
  );
}

function Line({ row, colours }: { readonly row: DiffRow; readonly colours: readonly Stretch[] | undefined }) {
  const { kind, text, before, after } = row;
  const Text = elements[kind] ?? 'span';
  return (
    <div class={kind}>
      {kind !== 'file' && (
        <span class="at" aria-hidden="true">
          {before ?? ''} {after ?? ''}
        </span>
      )}
      <span aria-hidden="true">{signs[kind]}</span>
      {words[kind] !== undefined && <span class="unseen">{words[kind]}</span>}
      <Text>
        <code>{colours ? <ColouredLine line={colours} /> : text}</code>
      </Text>
    </div>
  );
}
