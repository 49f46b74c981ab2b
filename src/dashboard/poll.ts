import type { TraceReader } from '../agent/index.ts';
import type { TraceEvent } from '../protocol/index.ts';
import type { TraceFeed } from './options.ts';

const pollMs = 500;
/** Rows of one read: enough to fill a page soon, too few to block the event loop. */
const batchEvents = 1_000;

/** Polls a database that another process writes for new events, while there are listeners. */
export function polledFeed(
  traces: Pick<TraceReader, 'since' | 'newestId'>,
  onFault: (error: unknown) => void,
  everyMs = pollMs,
): TraceFeed {
  return {
    subscribe(listener: (events: readonly TraceEvent[]) => void) {
      let seen = traces.newestId;
      const look = () => {
        try {
          const events = traces.since(seen, batchEvents);
          const last = events.at(-1);
          if (!last) return;
          seen = last.id;
          listener(events);
        } catch (error) {
          onFault(error);
        }
      };
      const timer = setInterval(look, everyMs);
      return () => clearInterval(timer);
    },
  };
}
