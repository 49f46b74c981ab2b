import { useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import type { DashboardSession, DashboardSummary } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { Confirm, Dialog } from '../../parts/dialog.tsx';
import type { Deletions } from './deletions.ts';
import { paths } from './paths.ts';
import { amount, counted, titleOf } from './words.ts';

interface RemoveOneProps {
  readonly session: DashboardSession;
  readonly deletions: Deletions;
  readonly onClose: () => void;
}

/** Asks before the trace of one session is deleted. */
export function RemoveOne({ session, deletions, onClose }: RemoveOneProps) {
  return (
    <Confirm
      title="Delete this trace?"
      action="Delete trace"
      onClose={onClose}
      onConfirm={() => {
        deletions.remove(session);
        onClose();
      }}
    >
      <p>
        {counted(session.eventCount, 'event')} of “{titleOf(session)}” will be gone: times, tool calls, texts of this
        trace.
      </p>
      <p>The conversation itself stays, and can be continued. For 8 seconds this can be taken back.</p>
    </Confirm>
  );
}

interface RemoveAllProps {
  readonly app: App;
  readonly deletions: Deletions;
  readonly onClose: () => void;
}

/** Asks before all traces are deleted: the user must type their number. */
export function RemoveAll({ app, deletions, onClose }: RemoveAllProps) {
  const summary = useResource((signal) => app.api.get<DashboardSummary>(paths.summary, signal));
  const typed = useSignal('');
  const label = useId();
  const count = summary.data.value?.sessionCount;
  const isMeant = count !== undefined && typed.value.trim() === String(count);
  return (
    <Dialog title="Delete all traces?" onClose={onClose}>
      <form
        class="inside"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isMeant) return;
          void deletions.clear();
          onClose();
        }}
      >
        <p>
          {count === undefined ? 'Counting…' : `The traces of ${counted(count, 'conversation')} will be gone for good.`}{' '}
          Those in which a turn runs are kept. Conversations themselves stay.
        </p>
        {summary.error.value !== null && (
          <p class="danger" role="alert">
            {summary.error.value}
          </p>
        )}
        <label for={label}>Type {count === undefined ? 'their number' : amount(count)} to delete them:</label>
        <input
          id={label}
          inputMode="numeric"
          autocomplete="off"
          value={typed.value}
          onInput={(event) => {
            typed.value = event.currentTarget.value;
          }}
        />
        <footer>
          <button type="button" onClick={onClose}>
            Keep them
          </button>
          <button type="submit" class="danger" disabled={!isMeant}>
            Delete all traces
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
