import * as v from 'valibot';
import {
  type InspectionRecord,
  type InspectorFact,
  InspectorQuestion,
  type InspectorRecords,
} from '../protocol/index.ts';
import { limits } from './limits.ts';
import { randomId } from './random-id.ts';
import type { Watch } from './watch.ts';

/** Answers requests of pages. Queues nothing, so a page that sends no request costs nothing. */
export interface Outlet {
  /** Answers one request. An answer to `records` waits for new records or for `signal`. @throws TypeError for an invalid request */
  ask(question: unknown, signal?: AbortSignal): Promise<InspectorRecords | InspectorFact>;
  /** Answers all waiting requests. */
  close(): void;
}

interface Viewer {
  cursor: string;
  sequence: number;
  /** Records that were not sent yet, at most those in the recorder. */
  rest: InspectionRecord[];
  /** Machines that were already sent. */
  readonly machines: Set<string>;
  /** Ends the wait of the latest request. */
  wake: () => void;
}

interface Timers {
  setTimeout(callback: () => void, milliseconds: number): unknown;
  clearTimeout(timer: unknown): void;
}

export function createOutlet(watch: Watch, encode: (record: InspectionRecord) => string, timers: Timers): Outlet {
  const { recorder } = watch;
  /** Viewers in the order of their latest requests. */
  const viewers = new Map<string, Viewer>();
  const epoch = randomId();
  let answers = 0;
  let isClosed = false;

  function viewerOf(id: string): Viewer {
    const viewer = viewers.get(id) ?? { cursor: '', sequence: 0, rest: [], machines: new Set(), wake: () => {} };
    viewers.delete(id);
    viewers.set(id, viewer);
    for (const [oldest, { wake }] of viewers) {
      if (viewers.size <= limits.viewers) break;
      viewers.delete(oldest);
      wake();
    }
    return viewer;
  }

  function restart(viewer: Viewer): void {
    viewer.rest = recorder.snapshot();
    viewer.sequence = recorder.sequence;
    viewer.machines.clear();
  }

  /** Adds the new records to `rest`. @returns whether some records were lost, so that all must be sent again */
  function refill(viewer: Viewer): boolean {
    if (viewer.rest.length > 0) return false;
    const news = recorder.since(viewer.sequence);
    if (news) viewer.rest = news.map(({ record }) => record);
    else restart(viewer);
    viewer.sequence = recorder.sequence;
    return news === undefined;
  }

  /** Takes the next records of a viewer, up to the size limit of an answer. */
  function take(viewer: Viewer): InspectorRecords['records'] {
    const records: { event: string; data: string }[] = [];
    let chars = 0;
    let count = 0;
    const put = (event: string, data: string) => {
      records.push({ event, data });
      chars += data.length;
    };
    for (const record of viewer.rest) {
      if (chars > limits.answerChars) break;
      const graph = record.type === 'actor' && !viewer.machines.has(record.machine) && watch.graphOf(record.machine);
      if (graph) {
        viewer.machines.add(graph.name);
        put('machine', JSON.stringify(graph));
      }
      put(record.type, encode(record));
      count += 1;
    }
    viewer.rest.splice(0, count);
    return records;
  }

  /** Resolves when new records exist, when `viewer.wake` or `signal` ends the wait, or after `waitMs`. */
  function news(viewer: Viewer, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        unsubscribe();
        timers.clearTimeout(timer);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      const unsubscribe = recorder.subscribe(end, end);
      const timer = timers.setTimeout(end, limits.waitMs);
      signal?.addEventListener('abort', end, { once: true });
      viewer.wake = end;
    });
  }

  async function records(id: string, after: string | null, signal?: AbortSignal): Promise<InspectorRecords> {
    const viewer = viewerOf(id);
    // The last answer was lost, or came from another program: the page starts over.
    let isReset = after === null || after !== viewer.cursor;
    viewer.wake();
    if (isReset) restart(viewer);
    answers += 1;
    viewer.cursor = `${epoch}-${answers}`;
    const { cursor } = viewer;
    if (!isReset && refill(viewer)) isReset = true;
    if (!isReset && viewer.rest.length === 0 && !isClosed) {
      await news(viewer, signal);
      // A later request of the same page takes the records.
      if (viewer.cursor !== cursor) return { cursor, isReset: false, records: [] };
      isReset = refill(viewer);
    }
    return { cursor, isReset, records: take(viewer) };
  }

  return {
    async ask(question, signal) {
      const asked = v.safeParse(InspectorQuestion, question);
      if (!asked.success) throw new TypeError('The request is invalid: reload the page of the inspector.');
      if (asked.output.ask === 'records') return records(asked.output.viewer, asked.output.after, signal);
      const { actor, fact } = asked.output;
      return { text: watch.facts.whole(recorder.context(actor), fact) };
    },
    close() {
      isClosed = true;
      recorder.close();
      for (const { wake } of viewers.values()) wake();
    },
  };
}
