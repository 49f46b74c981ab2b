import t from 'tap';
import type { ThreadEvent } from '../../../src/agent/index.ts';
import { ModelError } from '../../../src/agent/index.ts';
import { MemoryStore } from '../../../src/agent/store/memory.ts';
import { answers, call, listening, neverEnds, say, says, scripted, service, talk, text, tool } from '../helpers.ts';

t.test('a turn publishes its events in the order of the protocol', async (t) => {
  const { runtime } = service(
    scripted(async function* () {
      yield { type: 'thinking', text: 'hm' };
      yield { type: 'text', text: '' };
      yield { type: 'text', text: 'Good ' };
      yield { type: 'text', text: 'day' };
      yield { type: 'usage', inputTokens: 2, outputTokens: 3 };
    }),
  );
  const ear = listening();
  const { thread } = runtime.threads.start({ displayName: 'A talk' });
  const { turn, begin } = runtime.turns.start(thread.id, text('hi'), ear.listener);
  t.match(turn, { id: 'turn_001', threadId: thread.id, status: 'running', items: [] });
  t.same(ear.events, [], 'nothing happens before it is let happen');
  begin();
  const completed = await ear.until('turn/completed');
  t.same(ear.methods(), [
    'turn/started',
    'item/started',
    'item/completed',
    'item/started',
    'item/reasoning/delta',
    'item/completed',
    'item/started',
    'item/agentMessage/delta',
    'item/agentMessage/delta',
    'item/usage/delta',
    'item/completed',
    'turn/completed',
  ]);
  t.match(completed.params, {
    threadId: thread.id,
    tokenUsage: { inputTokens: 2, outputTokens: 3, totalTokens: 5 },
    turn: {
      status: 'completed',
      items: [
        { id: 'item_001', type: 'userMessage', status: 'completed', input: text('hi') },
        { id: 'item_002', type: 'reasoningContent', status: 'completed', text: 'hm' },
        { id: 'item_003', type: 'agentMessage', status: 'completed', text: 'Good day' },
      ],
    },
  });
  t.match(runtime.threads.read(thread.id, { includeTurns: true }).turns, [{ status: 'completed' }]);
  t.notOk('turns' in runtime.threads.read(thread.id, { includeTurns: false }));
  t.equal(runtime.turns.count, 0);
});

t.test('`ended` resolves after the last event, when the thread is free', async (t) => {
  const { runtime } = service(says('x'));
  const { thread } = runtime.threads.start({});
  t.equal(runtime.turns.running(thread.id), undefined);
  const ear = listening();
  const { turn, begin, ended } = runtime.turns.start(thread.id, text('x'), ear.listener);
  t.match(runtime.turns.running(thread.id), { turnId: turn.id, ended });
  begin();
  const end = await ended;
  t.match(ear.events.at(-1), { method: 'turn/completed', params: { turn: end } });
  t.equal(runtime.turns.running(thread.id), undefined);
});

t.test('ids continue across turns, and the model receives the earlier conversation', async (t) => {
  const heard: unknown[] = [];
  const { runtime } = service(
    scripted(async function* ({ messages, model }) {
      heard.push([...messages], model);
      yield { type: 'text', text: `answer ${messages.length}` };
    }),
  );
  const { thread } = runtime.threads.start({ config: { model: 'special' } });
  for (const words of ['one', 'two']) {
    const ear = listening();
    runtime.turns.start(thread.id, text(words), ear.listener).begin();
    await ear.until('turn/completed');
  }
  t.same((heard[2] as unknown[]).slice(1), [
    { role: 'user', content: text('one'), itemId: 'item_001' },
    { role: 'assistant', text: 'answer 2', toolCalls: [] },
    { role: 'user', content: text('two'), itemId: 'item_003' },
  ]);
  t.equal(heard[3], 'special');
  const [, second] = runtime.threads.read(thread.id, { includeTurns: true }).turns ?? [];
  t.match(second, { id: 'turn_002', items: [{ id: 'item_003' }, { id: 'item_004' }] });
});

t.test('a second turn of a thread is refused; other threads run in parallel', async (t) => {
  const { runtime } = service(neverEnds());
  const { thread: a } = runtime.threads.start({});
  const { thread: b } = runtime.threads.start({});
  runtime.turns.start(a.id, text('x'), undefined).begin();
  t.throws(() => runtime.turns.start(a.id, text('y'), undefined), { name: 'AgentError', reason: 'turnInProgress' });
  runtime.turns.start(b.id, text('x'), undefined).begin();
  t.equal(runtime.turns.count, 2);
  t.match(runtime.threads.list({}), [{ runtime: { running: true } }, { runtime: { running: true } }]);
  await runtime.close();
  t.equal(runtime.turns.count, 0);
  t.throws(() => runtime.turns.start(a.id, text('z'), undefined), { name: 'AgentError', reason: 'overloaded' });
});

t.test('a reserved thread is busy before its turn begins', async (t) => {
  const { runtime } = service(says('x'));
  const { thread } = runtime.threads.start({});
  const { begin } = runtime.turns.start(thread.id, text('x'), undefined);
  t.throws(() => runtime.turns.start(thread.id, text('y'), undefined), {
    name: 'AgentError',
    reason: 'turnInProgress',
  });
  begin();
  await runtime.close();
});

t.test('an interrupt cancels the turn and keeps its items', async (t) => {
  const { runtime } = service(neverEnds());
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  await ear.until('item/agentMessage/delta');
  t.match(runtime.threads.read(thread.id, { includeTurns: true }).turns?.[0], {
    status: 'running',
    items: [{}, { status: 'streaming', text: 'thinking about it' }],
  });
  const interrupt = runtime.turns.interrupt(thread.id, turn.id);
  interrupt();
  interrupt();
  const cancelled = await ear.until('turn/cancelled');
  t.same(ear.methods().slice(-2), ['item/completed', 'turn/cancelled'], 'what was said so far is kept');
  t.match(cancelled.params, {
    turn: { status: 'cancelled', items: [{}, { status: 'completed', text: 'thinking about it' }] },
  });
  t.throws(() => runtime.turns.interrupt(thread.id, turn.id), { name: 'AgentError', reason: 'turnNotRunning' });
  t.throws(() => runtime.turns.interrupt(thread.id, 'turn_009'), { name: 'AgentError', reason: 'turnNotFound' });
  t.throws(() => runtime.turns.interrupt('nope', turn.id), { name: 'AgentError', reason: 'threadNotFound' });
});

t.test('an interrupt before the first request cancels the turn', async (t) => {
  const { runtime } = service(neverEnds());
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  runtime.turns.interrupt(thread.id, turn.id)();
  await ear.until('turn/cancelled');
  t.equal(ear.methods().filter((method) => method.startsWith('turn/')).length, 2);
});

t.test('tokens of an interrupted answer are counted', async (t) => {
  const { runtime } = service(
    scripted(async function* (_, signal) {
      yield { type: 'text', text: 'half' };
      yield { type: 'usage', inputTokens: 7, outputTokens: 2 };
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    }),
  );
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  await ear.until('item/usage/delta');
  runtime.turns.interrupt(thread.id, turn.id)();
  t.match((await ear.until('turn/cancelled')).params.turn, {
    interruptedBy: 'user',
    tokenUsage: { inputTokens: 7, outputTokens: 2, totalTokens: 9 },
  });
});

t.test('a fault of the machine fails the turn, is logged once and frees the thread', async (t) => {
  const { runtime, bugs } = service(says('x'), {
    observe: () => {
      throw new Error('broken');
    },
  });
  const ear = listening();
  const { thread } = runtime.threads.start({});
  runtime.turns.start(thread.id, text('x'), ear.listener).begin();
  const { error, turn } = (await ear.until('turn/failed')).params;
  t.match(error, { code: 'internalError', message: /see the log of the agent server/ });
  t.match(turn.items, [{ type: 'userMessage' }, { type: 'error', error }]);
  t.equal(bugs.length, 1);
  t.equal(runtime.turns.count, 0);
  t.match(runtime.threads.read(thread.id, { includeTurns: true }).turns, [{ status: 'failed' }]);
});

t.test(
  'a model that ignores the interrupt is left behind after the grace period; its late text is dropped',
  async (t) => {
    let release: () => void = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { runtime } = service(
      scripted(async function* () {
        yield { type: 'text', text: 'early' };
        await released;
        yield { type: 'text', text: 'late' };
      }),
    );
    const { thread } = runtime.threads.start({});
    const ear = listening();
    const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
    begin();
    await ear.until('item/agentMessage/delta');
    runtime.turns.interrupt(thread.id, turn.id)();
    await ear.until('turn/cancelled');
    const before = ear.events.length;
    release();
    await new Promise(setImmediate);
    t.equal(ear.events.length, before);
    // Without the id of the thread, which may hold any letters.
    const items = runtime.threads.read(thread.id, { includeTurns: true }).turns?.flatMap((each) => each.items);
    t.match(items, [{}, { text: 'early' }]);
    t.notMatch(JSON.stringify(items), /late/);
  },
);

t.test('a failure ends the turn with an error item and a code', async (t) => {
  const cases: [unknown, string][] = [
    [new ModelError('upstreamUnauthorized', 'The upstream answered 401.'), 'upstreamUnauthorized'],
    [new Error('oops'), 'internalError'],
    ['thrown text', 'internalError'],
  ];
  for (const [thrown, code] of cases) {
    const { runtime } = service(
      scripted(async function* () {
        yield { type: 'text', text: 'half' };
        throw thrown;
      }),
    );
    const { thread } = runtime.threads.start({});
    const ear = listening();
    runtime.turns.start(thread.id, text('x'), ear.listener).begin();
    const failed = await ear.until('turn/failed');
    t.match(failed.params, {
      error: { code },
      turn: {
        status: 'failed',
        error: { code },
        items: [{}, { type: 'agentMessage', text: 'half', status: 'completed' }, { type: 'error', error: { code } }],
      },
    });
    t.equal(runtime.turns.count, 0, 'the thread is free again');
  }
});

t.test('an unavailable provider fails the turn', async (t) => {
  const { runtime } = service(async () => {
    throw new ModelError('upstreamUnreachable', 'no');
  });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.turns.start(thread.id, text('x'), ear.listener).begin();
  t.match((await ear.until('turn/failed')).params, { error: { code: 'upstreamUnreachable' } });
  t.same(await runtime.models(), { success: false, errorCode: 'upstreamUnreachable', errorMessage: 'no' });
});

t.test('the caller and each subscriber receive every event once', async (t) => {
  const { runtime } = service(says('a', 'b'));
  const { thread } = runtime.threads.start({});
  const [asker, subscriber, both, nobody, gone] = [listening(), listening(), listening(), listening(), listening()];
  runtime.feed.join(nobody.listener);
  const leave = runtime.feed.join(gone.listener);
  for (const { listener } of [subscriber, both, gone]) runtime.threads.subscribe(thread.id, listener);
  leave();
  runtime.threads.unsubscribe(thread.id, listening().listener);
  runtime.turns.start(thread.id, text('x'), both.listener).begin();
  await both.until('turn/completed');
  t.same(subscriber.events, both.events);
  t.equal(new Set<ThreadEvent>(both.events).size, both.events.length);
  t.same(gone.events, []);
  t.same(
    new Set(nobody.methods()),
    new Set(['thread/runtimeChanged']),
    'whether a thread is busy is told to everybody',
  );
  runtime.threads.unsubscribe(thread.id, both.listener);
  runtime.turns.start(thread.id, text('x'), asker.listener).begin();
  await asker.until('turn/completed');
  t.equal(asker.events.length, subscriber.events.length - both.events.length);
});

t.test('a late subscriber receives the running turn and every later delta', async (t) => {
  let next: () => void = () => {};
  const { runtime } = service(
    scripted(async function* () {
      yield { type: 'text', text: 'one ' };
      await new Promise<void>((resolve) => {
        next = resolve;
      });
      yield { type: 'text', text: 'two' };
    }),
  );
  const { thread } = runtime.threads.start({});
  const [early, late] = [listening(), listening()];
  runtime.turns.start(thread.id, text('x'), early.listener).begin();
  await early.until('item/agentMessage/delta');
  runtime.threads.subscribe(thread.id, late.listener).replay();
  t.match(late.events, [
    { method: 'turn/started', params: { turn: { items: [{}, { text: 'one ', status: 'streaming' }] } } },
  ]);
  await new Promise(setImmediate);
  next();
  await late.until('turn/completed');
  t.match(late.events[1], { method: 'item/agentMessage/delta', params: { delta: 'two' } });
});

t.test('a throwing listener is logged and does not affect others', async (t) => {
  const { runtime, bugs } = service(says('x'));
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.threads.subscribe(thread.id, () => {
    throw new Error('bad listener');
  });
  runtime.turns.start(thread.id, text('x'), ear.listener).begin();
  await ear.until('turn/completed');
  t.ok(bugs.length > 0);
});

t.test('threads are listed newest first and by identity; a new thread is broadcast', async (t) => {
  const { runtime } = service(says('x'));
  const everybody = listening();
  runtime.feed.join(everybody.listener);
  const a = runtime.threads.start({ identity: { channelName: 'cli', userId: 'u1' } });
  const b = runtime.threads.start({ identity: { channelName: 'web', userId: 'u1' } });
  const c = runtime.threads.start({});
  a.announce();
  t.match(everybody.events, [{ method: 'thread/started', params: { thread: { id: a.thread.id } } }]);
  const ids = (list: readonly { id: string }[]) => list.map(({ id }) => id).sort();
  t.same(ids(runtime.threads.list({})), ids([a.thread, b.thread, c.thread]));
  t.same(ids(runtime.threads.list({ identity: { channelName: 'cli', userId: 'u1' } })), [a.thread.id]);
  t.same(ids(runtime.threads.list({ identity: { userId: 'u1' } })), ids([a.thread, b.thread]));
  t.same(ids(runtime.threads.list({ identity: { channelName: 'cli' }, channelName: 'web' })), [b.thread.id]);
  const ear = listening();
  runtime.turns.start(a.thread.id, text('x'), ear.listener).begin();
  await ear.until('turn/completed');
  const [first] = runtime.threads.list({});
  t.ok(first && first.lastActiveAt >= a.thread.lastActiveAt);
  for (const { thread } of [a, b, c]) t.match(thread.id, /^thread_\d{8}_[0-9a-z]{6}$/);
});

t.test('an unknown thread is refused with `threadNotFound`', async (t) => {
  const { runtime } = service(says('x'));
  const { listener } = listening();
  const refusal = { name: 'AgentError', reason: 'threadNotFound', data: { threadId: 'nope' } };
  t.throws(() => runtime.threads.read('nope', { includeTurns: true }), refusal);
  t.throws(() => runtime.threads.resume('nope', listener), refusal);
  t.throws(() => runtime.threads.subscribe('nope', listener), refusal);
  t.throws(() => runtime.threads.unsubscribe('nope', listener), refusal);
  t.throws(() => runtime.turns.start('__proto__', text('x'), undefined), {
    name: 'AgentError',
    reason: 'threadNotFound',
  });
});

const spawns = tool({
  name: 'SpawnSubagent',
  run: (_, { spawnSubagent }) => spawnSubagent({ task: 'work', label: undefined, type: undefined }),
});

for (const kind of ['isEphemeral', 'isTransient'] as const) {
  t.test(
    `clients are not notified of a thread that ${kind}; its deletion deletes the threads of its sub-agents`,
    async (t) => {
      const provider = answers([call('1', 'SpawnSubagent')], [say('child')], [say('parent')]);
      const deleted: string[] = [];
      const store = new MemoryStore();
      const { runtime } = service(provider, { tools: () => [spawns], store, onDeleted: (id) => deleted.push(id) });
      const methods: string[] = [];
      runtime.feed.join(({ method }) => methods.push(method));
      const { thread, announce } = runtime.threads.start({ [kind]: true });
      announce();
      const { turn } = await talk(runtime, thread.id, 'x');
      t.equal(turn.status, 'completed');
      t.same(runtime.threads.list({}), []);
      t.notOk('isTransient' in runtime.threads.read(thread.id, { includeTurns: false }));
      (await runtime.threads.delete(thread.id))();
      t.equal(deleted.length, 2);
      t.same(store.threads(), []);
      t.same(methods, []);
    },
  );
}

t.test('a sweep deletes transient threads without a turn, and their sub-agents', async (t) => {
  const store = new MemoryStore();
  const first = service(answers([call('1', 'SpawnSubagent')], [say('child')], [say('parent')]), {
    ...{ tools: () => [spawns], store },
  }).runtime;
  const { thread: stays } = first.threads.start({});
  await talk(first, first.threads.start({ isTransient: true }).thread.id, 'x');
  t.equal(store.threads().length, 3);
  const next = service(neverEnds(), { store }).runtime;
  const { thread: works } = next.threads.start({ isTransient: true });
  next.turns.start(works.id, text('x'), undefined).begin();
  await next.threads.sweepTransient();
  t.same(new Set(store.threads().map(({ id }) => id)), new Set([stays.id, works.id]));
  await next.close();
});

t.test('the deletion of a thread is reported, of one in memory as well', async (t) => {
  const deleted: string[] = [];
  const { runtime } = service(says('x'), { onDeleted: (threadId) => deleted.push(threadId) });
  const ids = [runtime.threads.start({}), runtime.threads.start({ isEphemeral: true })].map(({ thread }) => thread.id);
  for (const id of ids) (await runtime.threads.delete(id))();
  t.same(deleted, ids);
});
