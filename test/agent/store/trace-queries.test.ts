import { deepStrictEqual } from 'node:assert';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { openStore } from '../../../src/agent/index.ts';
import type { TraceStore } from '../../../src/agent/thread-store.ts';
import type { NewTraceEvent, TraceEvent, TraceTotals } from '../../../src/protocol/index.ts';
import { event, opened, temporaryDirectory } from './helpers.ts';

const idsOf = (events: readonly TraceEvent[]) => events.map(({ id }) => id);
const keysOf = (traces: TraceStore, range: Partial<Parameters<TraceStore['sessions']>[0]>) =>
  traces.sessions({ limit: 99, ...range }).map(({ sessionKey }) => sessionKey);
const second = (number: number) => `2026-01-01T00:00:${String(number).padStart(2, '0')}.000Z`;

function filled(traces: TraceStore, events: readonly NewTraceEvent[]): void {
  for (const each of events) traces.append(each);
  traces.flush();
}

t.test('events of all sessions are read newest first, or in order after an id', async (t) => {
  const { traces } = opened(t);
  t.equal(traces.newestId, 0);
  t.strictSame(traces.recent(9), []);
  t.strictSame(traces.since(0, 9), []);
  filled(traces, [event('a'), event('b', { data: { text: 'hi' } }), event('a'), event('c')]);
  t.equal(traces.newestId, 4);
  t.strictSame(idsOf(traces.recent(3)), [4, 3, 2]);
  t.strictSame(idsOf(traces.since(1, 2)), [2, 3]);
  t.strictSame(traces.since(1, 1), traces.events('b', { limit: 1 }).events);
  t.strictSame(traces.since(4, 9), []);
  t.strictSame(traces.recent(0), []);
  traces.deleteSession('a');
  t.strictSame(idsOf(traces.recent(9)), [4, 2], 'what is deleted is out of sight');
  t.strictSame(idsOf(traces.since(0, 9)), [2, 4]);
  traces.deleteAllSessions();
  t.equal(traces.newestId, 4, 'and its ids are not used again');
});

t.test('an event is found by id in its own session only', async (t) => {
  const { traces } = opened(t);
  filled(traces, [event('a'), event('b', { tool: 'Exec', data: { result: 'long' } })]);
  t.strictSame(traces.event('b', 2), traces.events('b', { limit: 1 }).events[0]);
  t.equal(traces.event('a', 2), undefined);
  t.equal(traces.event('b', 3), undefined);
  t.equal(traces.event('nobody', 1), undefined);
});

t.test('events can be read in descending order', async (t) => {
  const { traces } = opened(t);
  filled(
    traces,
    Array.from({ length: 7 }, (_, index) => event('a', { type: index % 2 ? 'thinking' : 'response' })),
  );
  const first = traces.events('a', { limit: 3, order: 'desc' });
  t.strictSame([idsOf(first.events), first.next], [[7, 6, 5], 5]);
  const second = traces.events('a', { limit: 9, order: 'desc', after: first.next });
  t.strictSame([idsOf(second.events), second.next], [[4, 3, 2, 1], undefined]);
  t.strictSame(idsOf(traces.events('a', { limit: 2, order: 'desc', types: ['thinking'] }).events), [6, 4]);
});

t.test('events are filtered by turn, tool and text, alone and combined', async (t) => {
  const { traces } = opened(t);
  const found = (range: Partial<Parameters<TraceStore['events']>[1]>) =>
    idsOf(traces.events('a', { limit: 99, ...range }).events);
  filled(traces, [
    event('a', { type: 'turn.started', turnId: 'turn_001', data: { text: 'Grüße an "Ånne"\nund mehr' } }),
    event('a', {
      type: 'tool.started',
      turnId: 'turn_001',
      tool: 'Exec',
      callId: 'call_X',
      data: { arguments: '{"n":1}' },
    }),
    event('a', { type: 'response', turnId: 'turn_002', data: { text: '"turnId":"turn_001","tool":"Exec"' } }),
    event('a', {
      type: 'tool.failed',
      turnId: 'turn_0011',
      tool: 'Execute',
      data: { list: ['a', { deep: 'NeedLE' }] },
    }),
    event('b', { type: 'tool.started', turnId: 'turn_001', tool: 'Exec' }),
  ]);
  t.strictSame(found({ turnId: 'turn_001' }), [1, 2], 'a text that looks like it is none');
  t.strictSame(found({ tool: 'Exec' }), [2]);
  t.strictSame(found({ tool: 'exec' }), []);
  t.strictSame(found({ text: 'GRÜSSE' }), [1]);
  t.strictSame(found({ text: 'ånNE"\nUND' }), [1], 'with what JSON writes otherwise');
  t.strictSame(found({ text: 'needle' }), [4], 'however deep');
  t.strictSame(found({ text: 'call_x' }), [2]);
  t.strictSame(found({ text: '{"n":1}' }), [2]);
  t.strictSame(found({ text: 'arguments' }), [], 'a name of a member is no text');
  t.strictSame(found({ text: '\\n' }), [], 'nor is what JSON needs');
  t.strictSame(found({ text: 'n', order: 'desc' }), [4, 3, 2, 1]);
  t.strictSame(found({ text: '' }), [1, 2, 3, 4]);
  t.strictSame(found({ text: 'e', turnId: 'turn_001', types: ['tool.started'], tool: 'Exec' }), [2]);
  t.strictSame(found({ turnId: 'turn_001', after: 1 }), [2]);
  t.strictSame(found({ turnId: 'turn_001', after: 2, order: 'desc' }), [1]);
  t.strictSame(traces.events('a', { limit: 1, turnId: 'turn_001' }).next, 1);
  t.strictSame(traces.events('a', { limit: 2, turnId: 'turn_001' }).next, undefined);
  t.strictSame(traces.events('nobody', { limit: 1, text: 'x' }), { events: [], next: undefined });
});

t.test('a search through many events takes several pages and finds each event once', async (t) => {
  const { traces } = opened(t);
  const count = 45_000;
  for (let number = 1; number <= count; number += 1) {
    traces.append(event('a', { data: { text: number % 22_222 === 0 ? 'needle' : 'hay' } }));
  }
  traces.flush();
  for (const order of ['asc', 'desc'] as const) {
    const found: number[] = [];
    let goes = 0;
    for (let after: number | undefined, isMore = true; isMore; goes += 1) {
      const { events, next } = traces.events('a', { limit: 10, text: 'NEEDLE', order, after });
      found.push(...idsOf(events));
      after = next;
      isMore = next !== undefined;
    }
    t.strictSame(
      found.sort((a, b) => a - b),
      [22_222, 44_444],
    );
    t.ok(goes > 1, `${goes} goes`);
  }
});

t.test('sessions are filtered by text and status', async (t) => {
  const { traces } = opened(t);
  filled(traces, [
    event('thread_1', { type: 'session.started', at: second(1), data: { displayName: 'Über Tests' } }),
    event('thread_2', { type: 'turn.started', at: second(2), data: { text: 'Mend the ROOF' } }),
    event('thread_3', { type: 'turn.started', at: second(3), data: {} }),
    event('thread_3', { type: 'error', at: second(3) }),
    event('thread_3', { type: 'turn.completed', at: second(3), data: { status: 'failed' } }),
    event('thread_4', { type: 'turn.started', at: second(4), data: { text: 'first words' } }),
    event('thread_4', { type: 'turn.completed', at: second(4), data: { status: 'completed' } }),
    event('thread_4', { type: 'turn.started', at: second(5), data: { text: 'mend' } }),
  ]);
  t.strictSame(keysOf(traces, { text: 'über' }), ['thread_1']);
  t.strictSame(keysOf(traces, { text: 'roof' }), ['thread_2']);
  t.strictSame(keysOf(traces, { text: 'mend' }), ['thread_2'], 'only what was said first is remembered');
  t.strictSame(keysOf(traces, { text: 'THREAD_' }), ['thread_4', 'thread_3', 'thread_2', 'thread_1']);
  t.strictSame(keysOf(traces, { text: 'thread_', before: 'thread_3', limit: 1 }), ['thread_2']);
  t.strictSame(keysOf(traces, { text: '%' }), [], 'no character is special');
  t.strictSame(keysOf(traces, { status: 'running' }), ['thread_4', 'thread_2']);
  t.strictSame(keysOf(traces, { status: 'running', before: 'thread_4' }), ['thread_2']);
  t.strictSame(keysOf(traces, { status: 'failed' }), ['thread_3']);
  t.strictSame(keysOf(traces, { status: 'failed', text: 'roof' }), []);
  t.match(traces.session('thread_4'), { firstInput: 'first words', lastStatus: 'running', turnCount: 2 });
  t.notHas(traces.session('thread_3'), { firstInput: '' });
});

/** Sums of all sessions, added up by hand. */
function addedUp(traces: TraceStore): TraceTotals {
  const sessions = traces.sessions({ limit: 1_000 });
  const totals = Object.fromEntries(Object.keys(traces.totals()).map((name) => [name, 0])) as TraceTotals;
  for (const session of sessions) {
    for (const name of Object.keys(totals) as (keyof TraceTotals)[]) {
      if (name === 'sessionCount') totals.sessionCount += 1;
      else if (name === 'maxToolDurationMs') totals[name] = Math.max(totals[name], session[name]);
      else totals[name] += session[name];
    }
  }
  return totals;
}

const someKey = fc.constantFrom('a', 'b', 'c', 'd');
const someEvent = fc
  .tuple(
    someKey,
    fc.constantFrom<NewTraceEvent['type']>('turn.started', 'turn.completed', 'tool.failed', 'tokens.used', 'thinking'),
    fc.integer({ min: -5, max: 1_000 }),
    fc.constantFrom('completed', 'failed'),
  )
  .map(([key, type, number, status]) =>
    event(key, { type, durationMs: number, data: { inputTokens: number, status } }),
  );
type Step = (traces: TraceStore) => void;
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: someEvent.map(
      (each): Step =>
        (traces) =>
          traces.append(each),
    ),
  },
  { weight: 2, arbitrary: fc.constant<Step>((traces) => traces.flush()) },
  {
    weight: 1,
    arbitrary: someKey.map(
      (key): Step =>
        (traces) =>
          traces.deleteSession(key),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.array(someKey).map(
      (keep): Step =>
        (traces) =>
          traces.deleteAllSessions(keep),
    ),
  },
);

t.test('totals equal the sums of the sessions after any writes and deletions', { timeout: 200_000 }, async (t) => {
  const parent = temporaryDirectory(t);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const directory = mkdtempSync(join(parent, 'case-'));
      const store = openStore(directory);
      for (const each of steps) each(store.traces);
      store.traces.flush();
      const totals = store.traces.totals();
      const sums = addedUp(store.traces);
      store.close();
      deepStrictEqual(totals, sums);
      const again = openStore(directory);
      deepStrictEqual(again.traces.totals(), totals);
      again.close();
    }),
    { numRuns: 50 },
  );
  t.pass('in all cases');
});
