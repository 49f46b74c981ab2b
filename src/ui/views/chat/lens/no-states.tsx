import { href } from '../../../app/router.ts';
import { Empty } from '../../../parts/empty.tsx';
import { lensAt } from './cursor.ts';

/** Placeholder of the chart of a turn whose states are gone, with the way to its stored trace. */
export const NoStates = ({ threadId }: { readonly threadId: string }) => (
  <Empty title="The states of this turn are not stored">
    <p>
      An agent server holds the states of its latest turns until it stops. The trace has their steps, times and cost.
    </p>
    <a class="button" href={href(lensAt(threadId, 'trace'))}>
      Open the trace
    </a>
  </Empty>
);
