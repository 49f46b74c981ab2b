import t, { type Test } from 'tap';
import { TraceRetention } from '../../../src/agent/index.ts';
import type { RetentionClock } from '../../../src/agent/store/index.ts';
import type { TraceStore } from '../../../src/agent/thread-store.ts';
import { defaults } from '../../../src/protocol/index.ts';
import { event, opened } from './helpers.ts';

const day = 86_400_000;
const start = Date.parse('2026-03-01T00:00:00.000Z');

/** A clock that goes when the test says so. */
class TestClock implements RetentionClock {
  #now = start;
  #due: { readonly at: number; readonly work: () => void } | undefined;

  now(): number {
    return this.#now;
  }

  after(ms: number, work: () => void): () => void {
    const own = { at: this.#now + ms, work };
    this.#due = own;
    return () => {
      if (this.#due === own) this.#due = undefined;
    };
  }

  get isWaiting(): boolean {
    return this.#due !== undefined;
  }

  /** Lets all happen that is due by then. */
  go(ms: number): void {
    const until = this.#now + ms;
    for (let due = this.#due; due && due.at <= until; due = this.#due) {
      this.#due = undefined;
      this.#now = due.at;
      due.work();
    }
    this.#now = until;
  }
}

const ago = (days: number): string => new Date(start - days * day).toISOString();
const keysOf = (traces: TraceStore) => traces.sessions({ limit: 1_000 }).map(({ sessionKey }) => sessionKey);

function put(traces: TraceStore, sessionKey: string, daysAgo: number, count = 1): void {
  for (let number = 0; number < count; number += 1) traces.append(event(sessionKey, { at: ago(daysAgo) }));
  traces.flush();
}

function retaining(t: Test, limits: { readonly days?: number; readonly maxEvents?: number }) {
  const { traces } = opened(t);
  const clock = new TestClock();
  const retention = new TraceRetention({
    traces,
    clock,
    days: limits.days ?? 0,
    maxEvents: limits.maxEvents ?? 0,
    onFault: (error) => t.fail('a fault', { error }),
  });
  t.teardown(() => retention.stop());
  return { traces, clock, retention };
}

t.test('sessions inactive for the configured days are deleted, at the start and later', async (t) => {
  const { traces, clock, retention } = retaining(t, { days: 30 });
  put(traces, 'old', 31);
  put(traces, 'just not', 29.9);
  put(traces, 'new', 0);
  t.equal(keysOf(traces).length, 3, 'nothing happens before it is started');
  retention.start();
  retention.start();
  clock.go(1_000);
  t.strictSame(keysOf(traces), ['new', 'just not']);
  clock.go(day);
  t.strictSame(keysOf(traces), ['new']);
  put(traces, 'new', -30);
  clock.go(30 * day);
  t.strictSame(keysOf(traces), ['new'], 'one that was active since stays');
  clock.go(60 * day);
  t.strictSame(keysOf(traces), [], 'even if it is the last');
  retention.stop();
  t.notOk(clock.isWaiting);
});

t.test('above the event limit the sessions that were inactive longest are deleted', async (t) => {
  const { traces, clock, retention } = retaining(t, { maxEvents: 100 });
  put(traces, 'a', 4, 40);
  put(traces, 'b', 3, 40);
  put(traces, 'c', 2, 40);
  put(traces, 'd', 1, 40);
  retention.start();
  clock.go(1_000);
  t.strictSame(keysOf(traces), ['d', 'c'], 'until no more are left, and no further');
  put(traces, 'e', 0, 500);
  clock.go(defaults.tracing.sweepEveryMs);
  t.strictSame(keysOf(traces), ['e'], 'the newest does not go for its length');
});

t.test('without limits nothing is deleted', async (t) => {
  const { traces, clock, retention } = retaining(t, {});
  put(traces, 'ancient', 10_000, 200);
  retention.start();
  clock.go(100 * day);
  t.strictSame(keysOf(traces), ['ancient']);
});

t.test('a session with a running turn is retained, also before that turn is written', async (t) => {
  const { traces, clock, retention } = retaining(t, { days: 1, maxEvents: 1 });
  put(traces, 'idle', 9, 5);
  put(traces, 'running', 9, 5);
  put(traces, 'begins', 9, 5);
  put(traces, 'newest', 0, 5);
  traces.append(event('running', { type: 'turn.started', at: ago(8) }));
  traces.flush();
  traces.append(event('begins', { type: 'turn.started', at: ago(8) }));
  retention.start();
  clock.go(1_000);
  t.strictSame(keysOf(traces).sort(), ['begins', 'newest', 'running']);
  traces.append(event('running', { type: 'turn.completed', at: ago(8) }));
  clock.go(defaults.tracing.sweepEveryMs);
  t.strictSame(keysOf(traces).sort(), ['begins', 'newest']);
});

t.test('many sessions are deleted in small steps', async (t) => {
  const { traces, clock, retention } = retaining(t, { days: 1 });
  for (let number = 0; number < 500; number += 1) traces.append(event(`s${number}`, { at: ago(2) }));
  put(traces, 'new', 0);
  retention.start();
  clock.go(defaults.agent.traceSweepPauseMs);
  const left = keysOf(traces).length;
  t.ok(left > 400 && left < 500, `${left} are left after one step`);
  clock.go(60_000);
  t.strictSame(keysOf(traces), ['new']);
});

t.test('a failed deletion is reported and retried after an hour', async (t) => {
  const clock = new TestClock();
  const faults: unknown[] = [];
  let asked = 0;
  const retention = new TraceRetention({
    traces: {
      expire() {
        asked += 1;
        throw new Error('full');
      },
    },
    days: 1,
    maxEvents: 1,
    clock,
    onFault: (error) => faults.push(error),
  });
  retention.start();
  clock.go(1_000);
  t.equal(asked, 1);
  t.match(faults, [{ message: 'full' }]);
  clock.go(defaults.tracing.sweepEveryMs);
  t.equal(asked, 2);
  retention.stop();
});
