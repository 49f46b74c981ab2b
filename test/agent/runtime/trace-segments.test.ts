import { deepStrictEqual } from 'node:assert';
import fc from 'fast-check';
import t from 'tap';
import { type ModelEvent, openHistory } from '../../../src/agent/index.ts';
import type { TraceEvent } from '../../../src/protocol/index.ts';
import { answers, call, say, service, settings, talk, tool } from '../helpers.ts';
import { opened, temporaryDirectory } from '../store/helpers.ts';

const think = (text: string): ModelEvent => ({ type: 'thinking', text });
const writes = (callId: string, argumentsDelta: string): ModelEvent => ({
  type: 'toolCallDelta',
  index: 0,
  callId,
  name: 'Look',
  argumentsDelta,
});

/** Next part of a model's answer; calls get ids of their own later, so that each is unique. */
const piece = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('a', 'b', '').map(say) },
  { weight: 4, arbitrary: fc.constantFrom('x', 'y', '').map(think) },
  { weight: 1, arbitrary: fc.constantFrom('', '{').map((text) => writes('', text)) },
  { weight: 2, arbitrary: fc.constant(call('', 'Look')) },
  { weight: 1, arbitrary: fc.constant<ModelEvent>({ type: 'usage', inputTokens: 3, outputTokens: 2 }) },
);
const rounds = fc.array(fc.array(piece, { maxLength: 12 }), { minLength: 1, maxLength: 4 });

/** Gives every call an id, and lets the turn run to the last answer and end there. */
function asAnswers(given: readonly (readonly ModelEvent[])[]): ModelEvent[][] {
  let number = 0;
  const numbered = given.map((events) =>
    events.map((event) => {
      if (event.type !== 'toolCall') return event;
      number += 1;
      return call(`c${number}`, 'Look', { number });
    }),
  );
  const last = [...(numbered.at(-1) ?? []).filter(({ type }) => type !== 'toolCall'), say('Done.')];
  const before = numbered.slice(0, -1).map((events, index) => [...events, call(`go on ${index}`, 'Look', { index })]);
  return [...before, last];
}

/** Specification §2.8: a contiguous stretch of one kind is a segment; a call ends it, and so does the end of the stream. */
function segmentsOf(events: readonly ModelEvent[]): string[] {
  const found: { readonly kind: string; text: string }[] = [];
  let open: { readonly kind: string; text: string } | undefined;
  for (const event of events) {
    if (event.type === 'toolCall' || event.type === 'toolCallDelta') open = undefined;
    if ((event.type !== 'text' && event.type !== 'thinking') || event.text === '') continue;
    const kind = event.type === 'text' ? 'response' : 'thinking';
    if (open?.kind !== kind) {
      open = { kind, text: '' };
      found.push(open);
    }
    open.text += event.text;
  }
  return found.map(({ kind, text }) => `${kind} ${text}`);
}

function expected(given: readonly (readonly ModelEvent[])[]): string[] {
  return given.flatMap((events) => [
    ...segmentsOf(events),
    ...(events.some(({ type }) => type === 'usage') ? ['tokens.used'] : []),
    ...events.flatMap((event) =>
      event.type === 'toolCall' ? [`tool.started ${event.call.callId}`, `tool.completed ${event.call.callId}`] : [],
    ),
  ]);
}

const described = ({ type, callId, data }: TraceEvent): string =>
  [type, callId ?? data['text']].filter((word) => word !== undefined && type !== 'tokens.used').join(' ') || type;

t.test('segments and calls are counted exactly, in any order of the answer', { timeout: 250_000 }, async (t) => {
  const directory = temporaryDirectory(t);
  const store = opened(t, directory);
  const history = openHistory(directory);
  t.teardown(() => history.close());
  const published: TraceEvent[] = [];
  store.traces.subscribe((events) => {
    for (const event of events) {
      deepStrictEqual(store.traces.event(event.sessionKey, event.id), event, 'who is told finds it stored');
      deepStrictEqual(history.traces.event(event.sessionKey, event.id), event, 'from outside too');
      published.push(event);
    }
  });
  await fc.assert(
    fc.asyncProperty(rounds, async (given) => {
      const script = asAnswers(given);
      const { runtime, bugs } = service(answers(...script), {
        store: store.threads,
        traces: store.traces,
        tools: () => [tool({ name: 'Look' })],
        settings,
      });
      const { thread } = runtime.threads.start({});
      published.length = 0;
      const { turn } = await talk(runtime, thread.id, 'go');
      store.traces.flush();
      deepStrictEqual([turn.status, bugs], ['completed', []]);
      const want = expected(script);
      const own = published.filter(({ turnId, type }) => turnId !== undefined && !type.startsWith('turn.'));
      deepStrictEqual(own.map(described), want);
      deepStrictEqual(store.traces.events(thread.id, { limit: 1_000 }).events, published);
      const count = (kind: string) => want.filter((each) => each.startsWith(kind)).length;
      const session = store.traces.session(thread.id);
      deepStrictEqual(
        [session?.thinkingCount, session?.responseCount, session?.toolCallCount, session?.toolFailureCount],
        [count('thinking'), count('response'), count('tool.started'), 0],
      );
    }),
    { numRuns: 150 },
  );
  t.pass('in all cases');
});

t.test('a segment ended by an error or an interrupt is traced', async (t) => {
  const store = opened(t);
  const { runtime } = service(
    {
      ...answers([]),
      async stream(_, emit) {
        emit(think('hm'));
        emit(say('So'));
        emit(say(' far'));
        throw new Error('the line is dead');
      },
    },
    { store: store.threads, traces: store.traces },
  );
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'go');
  store.traces.flush();
  t.match(store.traces.session(thread.id), { thinkingCount: 1, responseCount: 1, errorCount: 1, lastStatus: 'failed' });
  const { events } = store.traces.events(thread.id, { limit: 99 });
  t.strictSame(
    events.map(({ type }) => type),
    ['session.started', 'turn.started', 'thinking', 'response', 'model.failed', 'error', 'turn.completed'],
  );
  t.match(events[3], { data: { text: 'So far' }, itemId: 'item_003' });
});
