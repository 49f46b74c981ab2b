import { signal } from '@preact/signals';
import { type Backoff, exponentialBackoffMs, jitters, messageOf } from '../../lib/browser.ts';
import type { InspectorRecords } from '../../protocol/index.ts';
import { ApiError } from '../app/api.ts';
import type { Connection, Live, StreamListener, StreamName } from '../app/live.ts';
import type { Transport } from './transport.ts';

/** Pauses between requests to a program that does not answer. */
const pauses: Backoff = { firstMs: 300, capMs: 2_000, jitter: jitters.quarterAround };

/** Records of the program as a stream. The page requests the next records when it has processed the last ones. */
export function createProgramLive(transport: Transport, onMachine: (json: string) => void): Live {
  const inspect = signal<Connection>({ state: 'connecting' });
  const listened = signal<readonly StreamName[]>([]);
  const viewer = crypto.getRandomValues(new Uint32Array(4)).join('-');

  async function follow(listener: StreamListener, abort: AbortSignal): Promise<void> {
    let after: string | null = null;
    let attempt = 0;
    let heardAt: number | null = null;
    while (!abort.aborted) {
      try {
        const answer: InspectorRecords = await transport.ask<InspectorRecords>(
          { ask: 'records', viewer, after },
          abort,
        );
        attempt = 0;
        heardAt = Date.now();
        inspect.value = { state: 'live' };
        if (answer.isReset) listener.onReset?.();
        for (const { data } of answer.records.filter(({ event }) => event === 'machine')) onMachine(data);
        const records = answer.records.filter(({ event }) => event !== 'machine');
        if (records.length > 0) listener.onEvents(records.map((record) => ({ id: answer.cursor, ...record })));
        after = answer.cursor;
      } catch (error) {
        if (abort.aborted) return;
        if (error instanceof ApiError && error.status === 401) {
          inspect.value = { state: 'refused' };
          return;
        }
        attempt += 1;
        const wait = exponentialBackoffMs(attempt - 1, pauses, Math.random());
        const retryAt = Date.now() + wait;
        inspect.value = { state: 'reconnecting', attempt, error: messageOf(error), retryAt, since: heardAt };
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  }

  return {
    connections: { inspect, events: signal<Connection>({ state: 'absent' }) },
    listened,
    listen(name, listener) {
      if (name !== 'inspect') return () => {};
      const abort = new AbortController();
      listened.value = ['inspect'];
      void follow(listener, abort.signal);
      return () => abort.abort();
    },
  };
}
