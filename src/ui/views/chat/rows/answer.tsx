import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { CopyButton } from '../../../parts/copy.tsx';
import { isPrinted } from '../data/printing.ts';
import type { TextRow } from '../data/rows.ts';
import { maxMarkdownChars } from '../markdown/blocks.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { LongText } from './long-text.tsx';

/** Blocks that are drawn in one frame. */
const sliceBlocks = 60;

/** An answer of the agent. A long one is parsed and drawn in slices, one per frame, so that the page stays responsive. */
export function Answer({ row, version }: { readonly row: TextRow; readonly version: number }) {
  const isProse = row.markdown.chars <= maxMarkdownChars;
  return (
    <div class={row.isWithdrawn ? 'answer withdrawn' : 'answer'} aria-busy={row.isStreaming} tabIndex={-1}>
      {row.isWithdrawn && <p class="quiet">Withdrawn: the answer broke off and was requested again.</p>}
      {isProse ? <Prose row={row} version={version} /> : <LongText text={row.text} />}
      {!row.isStreaming && <CopyButton label="Copy as Markdown" text={() => row.text} />}
    </div>
  );
}

function Prose({ row }: { readonly row: TextRow; readonly version: number }) {
  const box = useRef<HTMLDivElement>(null);
  const [chosen, setLimit] = useState(sliceBlocks);
  const blocks = isPrinted.value ? row.markdown.blocks() : row.markdown.read();
  const limit = isPrinted.value ? blocks.length : chosen;
  const isWhole = blocks.length <= limit && row.markdown.isRead;
  useEffect(() => {
    if (isWhole) return;
    const frame = requestAnimationFrame(() => setLimit(Math.min(limit, blocks.length) + sliceBlocks));
    return () => cancelAnimationFrame(frame);
  });
  useLayoutEffect(() => {
    if (isWhole && blocks.length > sliceBlocks && !row.isStreaming) row.drawnPx = box.current?.offsetHeight ?? null;
  }, [isWhole, row.isStreaming]);
  const minHeight = isWhole || row.drawnPx === null ? undefined : `${row.drawnPx}px`;
  return (
    <div ref={box} style={{ minHeight }}>
      <Markdown blocks={blocks.slice(0, limit)} />
    </div>
  );
}
