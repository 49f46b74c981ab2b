import { EndMark } from '../../../parts/consent.tsx';
import type { AskedChange } from '../data/diff-rows.ts';
import { DiffView } from './diff-view.tsx';

interface ConsentChangeProps {
  readonly change: AskedChange;
  readonly onSeen: () => void;
}

/** A change that waits for approval. Its lines wrap, so that the end of every line is visible. */
export function ConsentChange({ change: { rows, unshown }, onSeen }: ConsentChangeProps) {
  return (
    <>
      {rows && <DiffView rows={rows} isWrapped end={<EndMark onSeen={onSeen} />} />}
      {unshown !== null && (
        <p class="quiet" role="status">
          Not shown: {unshown}. Read the whole change in its conversation, or decline.
        </p>
      )}
    </>
  );
}
