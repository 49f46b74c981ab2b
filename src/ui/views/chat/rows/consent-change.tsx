import { EndMark } from '../../../parts/consent.tsx';
import type { AskedChange } from '../data/diff-rows.ts';
import { DiffView } from './diff-view.tsx';

interface ConsentChangeProps {
  readonly change: AskedChange;
  readonly onSeen: () => void;
}

/** A change that a person is asked to allow: its lines wrap, so that no end of a line is out of view. */
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
