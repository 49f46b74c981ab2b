import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { openStore } from '../../../src/agent/store/index.ts';
import type { TraceStore } from '../../../src/agent/thread-store.ts';
import { defaults, type TraceEvent } from '../../../src/protocol/index.ts';
import { event, opened, temporaryDirectory, thread } from './helpers.ts';

/** Resolves when `count` more events have been published. */
function published(traces: TraceStore, count: number): Promise<readonly TraceEvent[]> {
  const all: TraceEvent[] = [];
  // The timers of the store do not keep the process alive; the test has to.
  const alive = setInterval(() => {}, 1_000);
  return new Promise((resolve) => {
    const end = traces.subscribe((events) => {
      all.push(...events);
      if (all.length < count) return;
      end();
      clearInterval(alive);
      resolve(all);
    });
  });
}

function appended(traces: TraceStore, count: number, sessionKey = 'a'): void {
  for (let number = 0; number < count; number += 1) traces.append(event(sessionKey, { data: { number } }));
}

const idsOf = (events: readonly TraceEvent[]) => events.map(({ id }) => id);

/** Lets another connection hold the database, so that ours is refused. */
function holding(t: Test, directory: string): DatabaseSync {
  const other = new DatabaseSync(join(directory, 'state.db'));
  t.teardown(() => other.isOpen && other.close());
  other.exec('BEGIN IMMEDIATE');
  return other;
}

t.test('appended events are written, then published, with ascending ids', async (t) => {
  const { traces } = opened(t);
  const hearing = published(traces, 3);
  const sent = [
    event('a', { type: 'turn.started', turnId: 'turn_001' }),
    event('b', {
      type: 'tool.completed',
      tool: 'Exec',
      callId: 'c',
      durationMs: 1.5,
      data: { result: '"ok"\0', list: [1, null] },
    }),
    event('a', { type: 'thinking', itemId: 'item_1', data: { text: 'hm \ud83d' } }),
  ];
  for (const each of sent) traces.append(each);
  t.equal(traces.session('a'), undefined, 'not at once');
  const heard = await hearing;
  t.strictSame(
    heard.map(({ id: _, ...rest }) => rest),
    sent,
  );
  t.strictSame(idsOf(heard), [1, 2, 3]);
  t.strictSame(traces.events('a', { limit: 9 }), {
    events: [heard[0], { ...heard[2], data: { text: 'hm \ufffd' } }],
    next: undefined,
  });
  t.strictSame(traces.events('b', { limit: 9 }), { events: [heard[1]], next: undefined });
  t.strictSame(traces.events('nobody', { limit: 9 }), { events: [], next: undefined });
});

t.test('a session counts its events', async (t) => {
  const directory = temporaryDirectory(t);
  const { traces, close } = opened(t, directory);
  const second = (number: number) => `2026-01-01T00:00:0${number}.000Z`;
  traces.append(
    event('a', { type: 'session.started', at: second(1), data: { displayName: 'Talk', channelName: 'cli' } }),
  );
  traces.append(event('a', { type: 'turn.started', at: second(2), data: { text: 'Go on.' } }));
  traces.append(event('a', { type: 'thinking', at: second(2) }));
  traces.append(event('a', { type: 'thinking', at: second(2) }));
  traces.append(event('a', { type: 'response', at: second(2) }));
  traces.flush();
  traces.append(event('a', { type: 'tool.started', at: second(3) }));
  traces.append(event('a', { type: 'tool.failed', at: second(3), durationMs: 40.4 }));
  traces.append(event('a', { type: 'tool.started', at: second(3) }));
  traces.append(event('a', { type: 'tool.completed', at: second(3), durationMs: 2 }));
  traces.append(event('a', { type: 'tool.failed', at: second(3), data: { outcome: 'declined' } }));
  traces.append(event('a', { type: 'approval.requested', at: second(3) }));
  traces.append(event('a', { type: 'approval.completed', at: second(3), durationMs: 9 }));
  traces.append(
    event('a', { type: 'tokens.used', at: second(4), data: { inputTokens: 70, outputTokens: 7, model: 'small' } }),
  );
  const costs = { cachedInputTokens: 40, reasoningTokens: 3, costUsd: 0.25 };
  traces.append(event('a', { type: 'tokens.used', at: second(4), data: { ...costs, inputTokens: 0 } }));
  traces.append(event('a', { type: 'model.failed', at: second(4), data: { code: 'upstreamFailed', pausedMs: 700 } }));
  traces.append(
    event('a', { type: 'tokens.used', at: second(4), data: { inputTokens: 30, outputTokens: Number.NaN } }),
  );
  traces.append(event('a', { type: 'tokens.used', at: second(4), data: { inputTokens: -5, outputTokens: '3' } }));
  traces.append(event('a', { type: 'context.compacted', at: second(5) }));
  traces.append(event('a', { type: 'error', at: second(5) }));
  traces.append(event('a', { type: 'turn.completed', at: second(4), durationMs: 2_000, data: { status: 'failed' } }));
  traces.flush();
  const session = {
    sessionKey: 'a',
    startedAt: second(1),
    lastActivityAt: second(5),
    displayName: 'Talk',
    channelName: 'cli',
    firstInput: 'Go on.',
    model: 'small',
    lastStatus: 'failed',
    turnCount: 1,
    failedTurnCount: 1,
    thinkingCount: 2,
    responseCount: 1,
    toolCallCount: 2,
    toolFailureCount: 1,
    approvalCount: 1,
    compactionCount: 1,
    errorCount: 1,
    inputTokens: 100,
    outputTokens: 7,
    cachedInputTokens: 40,
    reasoningTokens: 3,
    costUsd: 0.25,
    unpricedCount: 3,
    modelFailureCount: 1,
    turnDurationMs: 2_000,
    toolDurationMs: 42,
    approvalWaitMs: 9,
    pauseMs: 700,
    eventCount: 20,
    maxToolDurationMs: 40,
  };
  t.strictSame(traces.session('a'), session);
  traces.append(event('a', { type: 'session.started', at: second(6), data: { displayName: 'Renamed' } }));
  close();
  const again = opened(t, directory).traces;
  t.strictSame(again.session('a'), { ...session, displayName: 'Renamed', lastActivityAt: second(6), eventCount: 21 });
});

t.test('regression: the sums of all sessions contain each request once, before and after it is written', async (t) => {
  const { traces } = opened(t);
  const used = () => traces.append(event('a', { type: 'tokens.used', data: { inputTokens: 5, costUsd: 0.25 } }));
  used();
  traces.flush();
  used();
  t.match(traces.totals(), { costUsd: 0.5, inputTokens: 10, eventCount: 2 }, 'the last request is not written yet');
  traces.flush();
  t.match(traces.totals(), { costUsd: 0.5, inputTokens: 10, eventCount: 2 });
});

t.test('sessions are paged by activity', async (t) => {
  const { traces } = opened(t);
  for (const [key, second] of Object.entries({ a: 3, b: 1, c: 5, d: 3 })) {
    traces.append(event(key, { at: `2026-01-01T00:00:0${second}.000Z` }));
  }
  traces.flush();
  const keys = (range: { limit: number; before?: string }) =>
    traces.sessions(range).map(({ sessionKey }) => sessionKey);
  t.strictSame(keys({ limit: 9 }), ['c', 'd', 'a', 'b']);
  t.strictSame(keys({ limit: 2 }), ['c', 'd']);
  t.strictSame(keys({ limit: 2, before: 'd' }), ['a', 'b']);
  t.strictSame(keys({ limit: 2, before: 'b' }), []);
  t.strictSame(keys({ limit: 2, before: 'nobody' }), []);
  t.strictSame(keys({ limit: 0 }), []);
});

t.test('events are paged by a cursor, and filtered by type', async (t) => {
  const { traces } = opened(t);
  for (let number = 0; number < 10; number += 1) {
    traces.append(event('a', { type: number % 2 ? 'thinking' : 'response' }));
    traces.append(event('b', { type: 'error' }));
  }
  traces.flush();
  const first = traces.events('a', { limit: 4 });
  t.strictSame(idsOf(first.events), [1, 3, 5, 7]);
  const second = traces.events('a', { limit: 4, after: first.next });
  t.strictSame(idsOf(second.events), [9, 11, 13, 15]);
  const third = traces.events('a', { limit: 4, after: second.next });
  t.strictSame(idsOf(third.events), [17, 19]);
  t.equal(third.next, undefined);
  t.equal(traces.events('a', { limit: 10 }).next, undefined, 'a page that is just full is the last');
  t.strictSame(idsOf(traces.events('a', { limit: 3, types: ['thinking', 'no such type'] }).events), [3, 7, 11]);
  t.equal(traces.events('a', { limit: 3, types: ['thinking'] }).next, 11);
  t.strictSame(traces.events('a', { limit: 3, types: [] }), { events: [], next: undefined });
});

t.test('long texts are cut in every field, with the number of characters', async (t) => {
  const { traces } = opened(t);
  const limit = defaults.agent.traceTextChars;
  const heard = published(traces, 1);
  const given = {
    text: 'x'.repeat(limit + 7),
    fits: 'y'.repeat(limit),
    deep: { list: ['short', `${'z'.repeat(limit - 1)}😀`] },
    n: 1,
  };
  const copy = structuredClone(given);
  traces.append(event('a', { data: given }));
  const [stored] = await heard;
  t.strictSame(stored?.data, {
    text: `${'x'.repeat(limit)}… [7 characters left out]`,
    fits: given.fits,
    deep: { list: ['short', `${'z'.repeat(limit - 1)}… [2 characters left out]`] },
    n: 1,
  });
  t.strictSame(traces.events('a', { limit: 1 }).events[0], stored);
  t.strictSame(given, copy, 'what was handed in is not changed');
});

t.test('many events are written in slices that let other work run', async (t) => {
  const { traces } = opened(t);
  const slices: number[] = [];
  let turnsOfLoop = 0;
  const turning = setInterval(() => (turnsOfLoop += 1), 0);
  t.teardown(() => clearInterval(turning));
  traces.subscribe((events) => slices.push(events.length));
  const heard = published(traces, 10_500);
  appended(traces, 10_500);
  t.strictSame(slices, []);
  const all = await heard;
  t.strictSame(
    idsOf(all),
    Array.from({ length: 10_500 }, (_, index) => index + 1),
  );
  t.strictSame(slices, [...Array(10).fill(1_000), 500]);
  t.ok(turnsOfLoop > 0);
  t.equal(traces.session('a')?.eventCount, 10_500);
});

t.test('long events make short slices', async (t) => {
  const { traces } = opened(t);
  const heard = published(traces, 200);
  let longest = 0;
  traces.subscribe((events) => (longest = Math.max(longest, events.length)));
  for (let number = 0; number < 200; number += 1) traces.append(event('a', { data: { text: 'x'.repeat(20_000) } }));
  t.equal((await heard).length, 200);
  t.ok(longest < 100);
});

t.test('a full buffer is written at once, without a loss', async (t) => {
  const { traces } = opened(t);
  const count = defaults.agent.traceBufferEvents + 2_500;
  let stored = 0;
  traces.subscribe((events) => (stored += events.length));
  appended(traces, count);
  t.ok(stored >= 2_500, 'what was over it is on disk before the loop has turned');
  traces.flush();
  t.equal(stored, count);
  t.equal(traces.dropped, 0);
  t.equal(traces.session('a')?.eventCount, count);
});

t.test('events appended in a transaction are written after it, also when it fails', async (t) => {
  const { threads, traces } = opened(t);
  const count = defaults.agent.traceBufferEvents + 100;
  t.throws(() =>
    threads.transaction(() => {
      threads.putThread(thread('a'));
      appended(traces, count);
      traces.flush();
      throw new Error('taken back');
    }),
  );
  t.equal(threads.thread('a'), undefined);
  traces.flush();
  t.equal(traces.session('a')?.eventCount, count);
  t.equal(traces.dropped, 0);
});

t.test('a throwing listener does not affect others; events that a listener appends arrive in order', async (t) => {
  const faults: unknown[] = [];
  const store = openStore(temporaryDirectory(t), { onFault: (error) => faults.push(error) });
  t.teardown(() => store.close());
  const { traces } = store;
  const failure = new Error('mine');
  traces.subscribe(() => {
    throw failure;
  });
  traces.subscribe((events) => {
    if (events.some(({ type }) => type === 'error')) return;
    traces.append(event('a', { type: 'error' }));
    traces.flush();
  });
  const last: number[] = [];
  const end = traces.subscribe((events) => last.push(...idsOf(events)));
  traces.append(event('a'));
  traces.append(event('a'));
  traces.flush();
  t.strictSame(last, [1, 2, 3]);
  t.strictSame(faults, [failure, failure]);
  end();
  appended(traces, 1);
  traces.flush();
  t.strictSame(last, [1, 2, 3], 'who has left is told nothing');
});

t.test('a listener that subscribes twice receives each event twice and can leave once', async (t) => {
  const { traces } = opened(t);
  let count = 0;
  const listener = () => (count += 1);
  const end = traces.subscribe(listener);
  traces.subscribe(listener);
  appended(traces, 1);
  traces.flush();
  t.equal(count, 2);
  end();
  appended(traces, 1);
  traces.flush();
  t.equal(count, 3);
});

t.test('deleting a session drops its pending events; ids are not reused', async (t) => {
  const directory = temporaryDirectory(t);
  const { traces, close } = opened(t, directory);
  appended(traces, 3, 'a');
  appended(traces, 3, 'b');
  traces.flush();
  appended(traces, 3, 'a');
  appended(traces, 1, 'only waiting');
  t.equal(traces.deleteSession('a'), true);
  t.equal(traces.deleteSession('a'), false);
  t.equal(traces.deleteSession('only waiting'), true);
  traces.flush();
  t.strictSame(
    traces.sessions({ limit: 9 }).map(({ sessionKey }) => sessionKey),
    ['b'],
  );
  t.strictSame(traces.events('a', { limit: 9 }).events, []);
  t.equal(traces.events('b', { limit: 9 }).events.length, 3);
  appended(traces, 2, 'c');
  t.equal(traces.deleteAllSessions(), 2, 'also those that wait');
  t.equal(traces.deleteAllSessions(), 0);
  close();
  const again = opened(t, directory).traces;
  appended(again, 1, 'a');
  again.flush();
  t.strictSame(idsOf(again.events('a', { limit: 9 }).events), [9], 'after six and two');
});

t.test('events of a deleted session are removed in steps, also after a restart', async (t) => {
  const directory = temporaryDirectory(t);
  const { traces, close } = opened(t, directory);
  appended(traces, 2_000, 'long');
  appended(traces, 10, 'other');
  traces.flush();
  traces.deleteSession('long');
  close();
  const rows = () => {
    const reader = new DatabaseSync(join(directory, 'state.db'), { readOnly: true });
    const count = reader.prepare('SELECT count(*) AS count FROM traceEvents').get()?.['count'];
    reader.close();
    return count;
  };
  t.equal(rows(), 2_010);
  const again = opened(t, directory).traces;
  while (rows() !== 10) await sleep(5);
  t.equal(again.events('other', { limit: 100 }).events.length, 10);
});

t.test('events wait while the disk fails and are written once it works', { timeout: 100_000 }, async (t) => {
  const directory = temporaryDirectory(t);
  const faults: unknown[] = [];
  const store = openStore(directory, { onFault: (error) => faults.push(error) });
  t.teardown(() => store.close());
  const { traces } = store;
  const other = holding(t, directory);
  appended(traces, 5);
  traces.flush();
  traces.flush();
  t.match(faults, [{ name: 'StorageError', code: 'busy' }], 'once');
  t.equal(faults.length, 1);
  t.equal(traces.dropped, 0);
  const heard = published(traces, 5);
  other.close();
  t.equal((await heard).length, 5, 'without anybody asking');
});

t.test('when too many events wait, the oldest are dropped and counted', { timeout: 100_000 }, async (t) => {
  const directory = temporaryDirectory(t);
  const store = openStore(directory, { onFault: () => {} });
  t.teardown(() => store.close());
  const { traces } = store;
  const other = holding(t, directory);
  appended(traces, 10, 'old');
  traces.flush();
  appended(traces, defaults.agent.traceBufferEvents, 'new');
  t.equal(traces.dropped, 10);
  other.close();
  traces.flush();
  t.equal(traces.session('old'), undefined);
  t.equal(traces.session('new')?.eventCount, defaults.agent.traceBufferEvents);
  t.equal(traces.dropped, 10);
});

t.test('closing writes the pending events; later ones are counted as lost', async (t) => {
  const directory = temporaryDirectory(t);
  const { traces, close } = opened(t, directory);
  appended(traces, 1_234);
  close();
  appended(traces, 2);
  t.equal(traces.dropped, 2);
  t.equal(opened(t, directory).traces.session('a')?.eventCount, 1_234);
});
