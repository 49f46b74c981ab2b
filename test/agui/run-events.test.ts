/** Properties of the translation: the protocol's own client understands any events of a turn. */
import { HttpAgent, type Message } from '@ag-ui/client';
import fc from 'fast-check';
import t from 'tap';
import type { ThreadEvent } from '../../src/agent/index.ts';
import { type AguiEvent, frameOf } from '../../src/agui/events.ts';
import type { RunInput } from '../../src/agui/input.ts';
import { messagesOf } from '../../src/agui/messages.ts';
import { RunEvents } from '../../src/agui/run-events.ts';
import type { Item, Turn } from '../../src/protocol/index.ts';

type Spoken = { readonly type: 'agentMessage' | 'reasoningContent'; readonly pieces: readonly string[] };
type Called = {
  readonly type: 'call';
  readonly args: string;
  /** Where the pieces end in which the model wrote the arguments; none: they came whole. */
  readonly cuts: readonly number[];
  readonly result: string;
};

const steps = fc.array(
  fc.oneof(
    fc.record({
      type: fc.constantFrom('agentMessage' as const, 'reasoningContent' as const),
      pieces: fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({
      type: fc.constant('call' as const),
      args: fc.json(),
      cuts: fc.array(fc.nat(20), { maxLength: 3 }),
      result: fc.string(),
    }),
  ),
  { maxLength: 8 },
);

const about = { threadId: 'thread', turnId: 'turn' };

/** The model has written a piece of a call. */
const written = ({ callId, tool }: { readonly callId: string; readonly tool: string }, delta: string): ThreadEvent => ({
  method: 'item/toolCall/argumentsDelta',
  params: { ...about, itemId: callId, deltaKind: 'toolCallArguments', delta, tool },
});

/** The items of a turn, and all of their events. */
function happen(what: readonly (Spoken | Called)[]): { items: Item[]; events: ThreadEvent[] } {
  const items: Item[] = [];
  const events: ThreadEvent[] = [];
  const base = () => ({ id: `item_${items.length}`, turnId: 'turn', status: 'completed' as const, createdAt: '' });
  const whole = (item: Item) => {
    items.push(item);
    events.push({ method: 'item/started', params: { ...about, item: { ...item, status: 'started' } } });
    events.push({ method: 'item/completed', params: { ...about, item } });
  };
  whole({ ...base(), type: 'userMessage', input: [{ type: 'text', text: 'hi' }] });
  for (const [index, step] of what.entries()) {
    if (step.type === 'call') {
      const call = { callId: `call_${index}`, tool: 'Look' };
      const ends = [...step.cuts.toSorted((one, other) => one - other), step.args.length];
      for (const [nth, end] of step.cuts.length > 0 ? ends.entries() : []) {
        const delta = step.args.slice(nth === 0 ? 0 : ends[nth - 1], end);
        if (delta !== '') events.push(written(call, delta));
      }
      whole({ ...base(), ...call, type: 'toolCall', source: 'builtin', arguments: step.args });
      whole({ ...base(), ...call, type: 'toolResult', outcome: 'completed', text: step.result });
      continue;
    }
    const item = { ...base(), type: step.type, text: step.pieces.join('') } satisfies Item;
    items.push(item);
    events.push({
      method: 'item/started',
      params: { ...about, item: { ...item, status: 'started', text: '' } as Item },
    });
    const method = step.type === 'agentMessage' ? 'item/agentMessage/delta' : 'item/reasoning/delta';
    for (const delta of step.pieces) {
      events.push({ method, params: { ...about, itemId: item.id, deltaKind: 'text', delta } });
    }
    events.push({ method: 'item/completed', params: { ...about, item } });
  }
  return { items, events };
}

/** The items as they stand after the first events. */
function standing(events: readonly ThreadEvent[]): Item[] {
  const items = new Map<string, Item>();
  for (const { method, params } of events) {
    if (method === 'item/started' || method === 'item/completed') items.set(params.item.id, params.item);
    if (method !== 'item/agentMessage/delta' && method !== 'item/reasoning/delta') continue;
    const item = items.get(params.itemId);
    if (item && 'text' in item) items.set(item.id, { ...item, status: 'streaming', text: item.text + params.delta });
  }
  return [...items.values()];
}

const user = { id: 'u', role: 'user', content: 'hi' } as const;
const input: RunInput = {
  threadId: 't',
  runId: 'r',
  protocolVersion: '1.0',
  parentRunId: undefined,
  messages: [user],
  tools: [],
  context: [],
  resume: [],
};

/** Messages of the protocol's client after these events; it throws when they break a rule. */
async function heard(events: readonly AguiEvent[], before: readonly Message[] = [user]): Promise<Message[]> {
  const body = Buffer.concat(events.map(frameOf));
  const headers = { 'content-type': 'text/event-stream' };
  const agent = new HttpAgent({ url: 'http://unused', fetch: async () => new Response(body, { headers }) });
  agent.setMessages([...before]);
  await agent.runAgent();
  return agent.messages;
}

const ended = (items: Item[]): Turn => ({ id: 'turn', threadId: 'thread', status: 'completed', items, startedAt: '' });

/** The protocol's client writes down an empty text where we have none. */
const shape = (messages: readonly Message[]) =>
  messages.map(({ id, role, content, ...rest }) => ({
    id,
    role,
    content: content ?? '',
    calls: 'toolCalls' in rest ? rest.toolCalls : undefined,
  }));

t.test('the client has all messages, from any start of the events', async (t) => {
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(), async (what, seed) => {
      const { items, events } = happen(what);
      const cut = seed % (events.length + 1);
      const emitted: AguiEvent[] = [];
      const run = new RunEvents({ input, answeredCalls: new Set(), emit: (event) => emitted.push(event) });
      run.start();
      if (cut > 0) run.restate({ id: 'turn', items: standing(events.slice(0, cut)) });
      for (const event of events.slice(cut)) run.hear(event);
      run.end(ended(items));
      t.strictSame(shape(await heard(emitted)), shape([user, ...messagesOf(items)]));
    }),
    { numRuns: 60 },
  );
});

t.test('messages that were missed are sent at the end', async (t) => {
  await fc.assert(
    fc.asyncProperty(steps, async (what) => {
      const { items } = happen(what);
      const emitted: AguiEvent[] = [];
      const run = new RunEvents({ input, answeredCalls: new Set(), emit: (event) => emitted.push(event) });
      run.start();
      run.end(ended(items));
      t.strictSame(shape(await heard(emitted)), shape([user, ...messagesOf(items)]));
    }),
    { numRuns: 30 },
  );
});

t.test('a client that was disconnected gets the same messages in another run', async (t) => {
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(), async (what, seed) => {
      const { items, events } = happen(what);
      const cut = 2 + (seed % (events.length - 1));
      const before = events.slice(0, cut);
      const first: AguiEvent[] = [];
      const lost = new RunEvents({ input, answeredCalls: new Set(), emit: (event) => first.push(event) });
      lost.start();
      for (const event of before) lost.hear(event);
      const messages = await heard(first);
      const emitted: AguiEvent[] = [];
      const run = new RunEvents({
        input: { ...input, messages: messages as RunInput['messages'] },
        answeredCalls: new Set(),
        emit: (event) => emitted.push(event),
      });
      run.start();
      run.restate({ id: 'turn', items: standing(before) });
      for (const event of events.slice(cut)) run.hear(event);
      run.end(ended(items));
      t.strictSame(shape(await heard(emitted, messages)), shape([user, ...messagesOf(items)]));
    }),
    { numRuns: 60 },
  );
});

t.test('an unfinished call is withdrawn when the turn ends', async (t) => {
  const { items, events } = happen([
    { type: 'agentMessage', pieces: ['I will look.'] },
    { type: 'call', args: '{"a":1}', cuts: [3], result: 'seen' },
  ]);
  for (const status of ['cancelled', 'completed'] as const) {
    const emitted: AguiEvent[] = [];
    const run = new RunEvents({ input, answeredCalls: new Set(), emit: (event) => emitted.push(event) });
    run.start();
    for (const event of [...events, written({ callId: 'call_9', tool: 'Change' }, '{"pa')]) run.hear(event);
    run.end({ ...ended(items), status });
    t.match(emitted.slice(-4), [
      { type: 'TOOL_CALL_ARGS', toolCallId: 'call_9', delta: '{"pa' },
      { type: 'TOOL_CALL_END', toolCallId: 'call_9' },
      { type: 'MESSAGES_SNAPSHOT' },
      { type: 'RUN_FINISHED' },
    ]);
    t.strictSame(shape(await heard(emitted)), shape([user, ...messagesOf(items)]));
  }
});

t.test('a call that changed is corrected when the turn ends', async (t) => {
  const { items, events } = happen([{ type: 'call', args: '{"a":1}', cuts: [], result: 'seen' }]);
  const emitted: AguiEvent[] = [];
  const run = new RunEvents({ input, answeredCalls: new Set(), emit: (event) => emitted.push(event) });
  run.start();
  for (const event of [written({ callId: 'call_0', tool: 'Lo' }, '{"a'), ...events]) run.hear(event);
  run.end(ended(items));
  t.strictSame(shape(await heard(emitted)), shape([user, ...messagesOf(items)]));
});
