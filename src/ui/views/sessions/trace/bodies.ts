import { type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { messageOf } from '../../../../lib/browser.ts';
import type { TraceEvent } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { paths } from '../paths.ts';

/** A whole event, or the reason why it is missing. */
export type Body =
  | { readonly is: 'loading' }
  | { readonly is: 'there'; readonly event: TraceEvent }
  | { readonly is: 'failed'; readonly message: string };

/** Whole events that are cached: more than a screen shows. */
const most = 200;
/** A browser has six connections to a server, and the streams need theirs. */
const atOnce = 3;

/** Cache of whole events, fetched on demand; the oldest are removed. */
export function createBodies(app: App, sessionKey: string) {
  const known = new Map<number, Signal<Body>>();
  const queue: (() => Promise<void>)[] = [];
  let running = 0;

  function next(): void {
    const work = queue.pop();
    if (!work || running >= atOnce) {
      if (work) queue.push(work);
      return;
    }
    running += 1;
    void work().finally(() => {
      running -= 1;
      next();
    });
  }

  function fetchInto(id: number, body: Signal<Body>): void {
    body.value = { is: 'loading' };
    // The last request comes first: the user is reading it.
    queue.push(async () => {
      try {
        body.value = { is: 'there', event: await app.api.get<TraceEvent>(paths.event(sessionKey, id)) };
      } catch (error) {
        body.value = { is: 'failed', message: messageOf(error) };
      }
    });
    next();
  }

  function fetchOne(id: number): Signal<Body> {
    const body = signal<Body>({ is: 'loading' });
    fetchInto(id, body);
    return body;
  }

  return {
    /** Returns the body of an event: always the same signal while it is cached. */
    of(id: number): ReadonlySignal<Body> {
      const body = known.get(id) ?? fetchOne(id);
      known.delete(id);
      known.set(id, body);
      const [oldest] = known.keys();
      if (known.size > most && oldest !== undefined) known.delete(oldest);
      return body;
    },
    retry(id: number): void {
      const failed = known.get(id);
      if (failed?.peek().is !== 'failed') return;
      fetchInto(id, failed);
    },
    /** Forgets waiting requests, which are no longer needed. */
    forgetQueue(): void {
      queue.length = 0;
      for (const [id, body] of known) if (body.peek().is === 'loading') known.delete(id);
    },
  };
}

export type Bodies = ReturnType<typeof createBodies>;
