import { statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openStore, StorageError, type ThreadStore } from '../../../src/agent/index.ts';
import { temporaryDirectory } from '../../hub/harness.ts';
import { answers, call, listening, neverEnds, say, scripted, service, settings, talk, text, tool } from '../helpers.ts';

/** Turns end with their process. */
const never = { ...settings, turns: { ...settings.turns, resume: 'never' as const } };

t.test('every event is on disk before it is published', async (t) => {
  const directory = temporaryDirectory(t);
  const store = openStore(directory);
  t.teardown(() => store.close());
  const { runtime, bugs } = service(answers([say('one '), call('c1', 'Look')], [say('two')]), {
    store: store.threads,
    tools: () => [tool({ name: 'Look' })],
  });
  const { thread } = runtime.threads.start({});
  const missing: string[] = [];
  runtime.threads.subscribe(thread.id, (event) => {
    const turns = store.threads.turns(thread.id, { limit: 10 });
    const items = turns.flatMap((turn) => turn.items);
    if (event.method === 'item/completed') {
      const kept = items.find(({ id }) => id === event.params.item.id);
      if (JSON.stringify(kept) !== JSON.stringify(event.params.item))
        missing.push(`${event.method} ${event.params.item.id}`);
    } else if (event.method === 'item/agentMessage/delta') {
      const kept = items.find(({ id }) => id === event.params.itemId);
      if (kept?.type !== 'agentMessage' || !kept.text.endsWith(event.params.delta)) missing.push(event.method);
    } else if (event.method === 'turn/completed') {
      if (turns.at(-1)?.status !== 'completed') missing.push(event.method);
    }
  });
  await talk(runtime, thread.id, 'x');
  t.same(missing, []);
  t.same(bugs, []);
  t.equal(statSync(join(directory, 'state.db')).mode & 0o777, 0o600);
});

t.test('command output is on disk before a client receives it', async (t) => {
  const directory = temporaryDirectory(t);
  const [store, reader] = [openStore(directory), openStore(directory)];
  t.teardown(() => store.close());
  t.teardown(() => reader.close());
  const pieces = [
    'one\n',
    'half a character \ud83d',
    '\ude00',
    'x'.repeat(100_000),
    '\0\u001b[31m',
    'the end, without a line end',
  ];
  const exec = tool({
    name: 'Exec',
    run: async (_, { onOutput }) => {
      for (const piece of pieces) {
        onOutput(piece);
        onOutput(piece.slice(0, 1));
        await new Promise(setImmediate);
      }
      return { text: '', isError: false };
    },
  });
  const { runtime, bugs } = service(answers([call('c1', 'Exec', { command: 'print' })], [say('done')]), {
    store: store.threads,
    tools: () => [exec],
  });
  const { thread } = runtime.threads.start({});
  let shown = '';
  const missing: string[] = [];
  runtime.threads.subscribe(thread.id, ({ method, params }) => {
    if (method !== 'item/commandExecution/outputDelta') return;
    shown += params.delta;
    const items = reader.threads.turns(thread.id, { limit: 10 }).flatMap((turn) => turn.items);
    const kept = items.find(({ id }) => id === params.itemId);
    // The pieces of one commit are published in order.
    if (kept?.type !== 'commandExecution' || !kept.output.startsWith(shown)) missing.push(params.delta);
  });
  const { turn } = await talk(runtime, thread.id, 'x');
  t.same(missing, []);
  t.same(bugs, []);
  t.equal(
    shown,
    pieces
      .map((piece) => piece + piece.slice(0, 1))
      .join('')
      .toWellFormed(),
    'control: everything was shown',
  );
  t.match(
    turn.items.find(({ type }) => type === 'commandExecution'),
    { output: shown },
  );
});

t.test('a turn that a crash ended is marked, keeps its items, and the thread continues', async (t) => {
  const directory = temporaryDirectory(t);
  const first = openStore(directory);
  const dying = service(neverEnds(), { store: first.threads, traces: first.traces, settings: never });
  const { thread } = dying.runtime.threads.start({ displayName: 'kept' });
  const ear = listening();
  dying.runtime.turns.start(thread.id, text('hello'), ear.listener).begin();
  await ear.until('item/agentMessage/delta');
  dying.runtime.turns.enqueue(thread.id, text('later'));
  first.close();
  const second = openStore(directory);
  t.teardown(() => second.close());
  const provider = answers([say('again')]);
  const { runtime } = service(provider, { store: second.threads, traces: second.traces, settings: never });
  const read = runtime.threads.read(thread.id, { includeTurns: true });
  t.match(read, {
    displayName: 'kept',
    queuedInputs: [{ input: text('later') }],
    turns: [
      {
        id: 'turn_001',
        status: 'cancelled',
        interruptedBy: 'crash',
        items: [{ type: 'userMessage' }, { type: 'agentMessage', status: 'completed', text: 'thinking about it' }],
      },
    ],
  });
  const { turn } = await talk(runtime, thread.id, 'go on');
  t.equal(turn.id, 'turn_002');
  t.match(provider.requests[0]?.messages.slice(1), [
    { role: 'user' },
    { role: 'assistant', text: 'thinking about it' },
    { role: 'user', content: text('go on') },
  ]);
});

t.test('a call that a crash ended is reported to the model as lost', async (t) => {
  const directory = temporaryDirectory(t);
  const first = openStore(directory);
  const wait = tool({ name: 'Wait', run: () => new Promise(() => undefined) });
  const dying = service(answers([call('c1', 'Wait')]), { store: first.threads, tools: () => [wait], settings: never });
  const { thread } = dying.runtime.threads.start({});
  const ear = listening();
  dying.runtime.turns.start(thread.id, text('hello'), ear.listener).begin();
  await ear.until('item/completed', 2);
  first.close();
  const second = openStore(directory);
  t.teardown(() => second.close());
  const provider = answers([say('again')]);
  const { runtime } = service(provider, { store: second.threads, settings: never });
  await talk(runtime, thread.id, 'go on');
  t.match(provider.requests[0]?.messages.slice(1), [
    { role: 'user' },
    { role: 'assistant', toolCalls: [{ callId: 'c1' }] },
    { role: 'tool', callId: 'c1', content: [{ text: /ended before the tool did/ }] },
    { role: 'user' },
  ]);
});

/** A store whose disk is full from a moment on. */
function filling(store: ThreadStore) {
  let isFull = false;
  const guarded = new Proxy(store, {
    get(target, key) {
      const value = Reflect.get(target, key);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (isFull && key === 'transaction') throw new StorageError('diskFull', 'The disk is full.');
        return Reflect.apply(value, target, args);
      };
    },
  });
  const fill = () => {
    isFull = true;
  };
  return { guarded, fill };
}

t.test('a full disk fails the turn with a code and publishes nothing unwritten; the server continues', async (t) => {
  const store = openStore(temporaryDirectory(t));
  t.teardown(() => store.close());
  const disk = filling(store.threads);
  const provider = scripted(async function* () {
    yield say('kept ');
    await new Promise(setImmediate);
    disk.fill();
    yield say('lost');
    await new Promise(setImmediate);
  });
  const { runtime, bugs } = service(provider, { store: disk.guarded });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.turns.start(thread.id, text('x'), ear.listener).begin();
  const { params } = await ear.until('turn/failed');
  t.same(params.error, { code: 'storageFailed', message: 'The disk is full.' });
  const deltas = ear.events.flatMap((event) =>
    event.method === 'item/agentMessage/delta' ? [event.params.delta] : [],
  );
  t.same(deltas, ['kept ']);
  t.throws(() => runtime.turns.start(thread.id, text('y'), undefined), { name: 'AgentError', reason: 'storageFailed' });
  await runtime.close();
  t.equal(runtime.turns.count, 0);
  t.same(bugs, []);
});

t.test('an ephemeral thread leaves only its trace', async (t) => {
  const store = openStore(temporaryDirectory(t));
  t.teardown(() => store.close());
  const { runtime } = service(answers([say('hi')]), { store: store.threads, traces: store.traces });
  const everybody = listening();
  runtime.feed.join(everybody.listener);
  const { thread, announce } = runtime.threads.start({ isEphemeral: true });
  announce();
  await talk(runtime, thread.id, 'x');
  (await runtime.threads.delete(thread.id))();
  t.same(runtime.threads.list({}), []);
  t.same(everybody.events, []);
  t.throws(() => runtime.threads.read(thread.id, { includeTurns: false }), {
    name: 'AgentError',
    reason: 'threadNotFound',
  });
  store.traces.flush();
  t.match(store.traces.session(thread.id), { turnCount: 1, responseCount: 1, thinkingCount: 0 });
});

t.test('deleting a thread ends its turn and deletes its traces', async (t) => {
  const store = openStore(temporaryDirectory(t));
  t.teardown(() => store.close());
  const { runtime } = service(neverEnds(), { store: store.threads, traces: store.traces });
  const { thread } = runtime.threads.start({});
  const [ear, everybody] = [listening(), listening()];
  runtime.feed.join(everybody.listener);
  runtime.turns.start(thread.id, text('x'), ear.listener).begin();
  await ear.until('item/agentMessage/delta');
  (await runtime.threads.delete(thread.id))();
  await everybody.until('thread/deleted');
  store.traces.flush();
  t.equal(store.traces.session(thread.id), undefined);
  t.equal(runtime.turns.count, 0);
});

t.test('deleting a thread also ends the queued turn that starts meanwhile', async (t) => {
  const { runtime, bugs } = service(answers([say('one')]));
  const { thread } = runtime.threads.start({});
  const [ear, everybody] = [listening(), listening()];
  runtime.feed.join(everybody.listener);
  let deleted: Promise<() => void> | undefined;
  runtime.threads.subscribe(thread.id, (event) => {
    ear.listener(event);
    // The outcome is decided: the interrupt comes too late, and the queue continues.
    if (event.method === 'item/completed' && event.params.item.type === 'agentMessage') {
      deleted ??= runtime.threads.delete(thread.id);
    }
  });
  runtime.turns.start(thread.id, text('x'), undefined).begin();
  runtime.turns.enqueue(thread.id, text('next'));
  await ear.until('turn/cancelled');
  (await deleted)?.();
  t.same(
    ear.methods().filter((method) => method.startsWith('turn/')),
    ['turn/started', 'turn/completed', 'turn/started', 'turn/cancelled'],
  );
  await everybody.until('thread/deleted');
  t.same([runtime.turns.count, bugs], [0, []]);
});

t.test('a thread can be renamed, rolled back, archived and restored', async (t) => {
  const { runtime } = service(answers([say('one')], [say('two')]));
  const { thread } = runtime.threads.start({});
  const everybody = listening();
  runtime.feed.join(everybody.listener);
  await talk(runtime, thread.id, 'a');
  await talk(runtime, thread.id, 'b');
  runtime.threads.rename(thread.id, 'A name')();
  t.match((await everybody.until('thread/renamed')).params, { displayName: 'A name' });
  t.match(runtime.threads.rollback(thread.id, 1), { displayName: 'A name', turns: [{ id: 'turn_001' }] });
  const { turn } = await talk(runtime, thread.id, 'c');
  t.equal(turn.id, 'turn_003', 'an id is never used twice');
  runtime.threads.archive(thread.id, true)();
  t.match((await everybody.until('thread/statusChanged')).params, { status: 'archived' });
  t.same(runtime.threads.list({}), []);
  t.equal(runtime.threads.list({ includeArchived: true }).length, 1);
  t.throws(() => runtime.turns.start(thread.id, text('x'), undefined), {
    name: 'AgentError',
    reason: 'threadNotActive',
  });
  runtime.threads.archive(thread.id, false)();
  t.equal((await talk(runtime, thread.id, 'd')).turn.status, 'completed');
});

t.test('a thread is read in pages, the newest turns first', async (t) => {
  const { runtime } = service(answers([say('x')]));
  const { thread } = runtime.threads.start({});
  for (const words of ['a', 'b', 'c', 'd']) await talk(runtime, thread.id, words);
  const ids = (options: { turnLimit?: number; beforeTurnId?: string }) => {
    const { turns, hasOlderTurns } = runtime.threads.read(thread.id, { includeTurns: true, ...options });
    return [turns?.map(({ id }) => id), hasOlderTurns];
  };
  t.same(ids({ turnLimit: 3 }), [['turn_002', 'turn_003', 'turn_004'], true]);
  t.same(ids({ turnLimit: 3, beforeTurnId: 'turn_002' }), [['turn_001'], false]);
});

t.test(
  'a conversation that exceeds the context window is summarised with a notice; the newest turns stay',
  async (t) => {
    const asked: string[] = [];
    const provider = scripted(async function* ({ messages }) {
      const words = JSON.stringify(messages);
      asked.push(words);
      if (words.includes('Summarise the conversation')) yield say('SUMMARY of it all');
      else yield say('a long answer '.repeat(40));
    });
    const store = openStore(temporaryDirectory(t));
    t.teardown(() => store.close());
    const small = {
      ...settings,
      compaction: { isAutomatic: true, contextWindow: 1_000, reserveTokens: 100, keepRecentTurns: 2 },
    };
    const { runtime } = service(provider, { settings: small, store: store.threads, traces: store.traces });
    const { thread } = runtime.threads.start({});
    let turn = (await talk(runtime, thread.id, 'question')).turn;
    let ear = listening();
    for (let round = 0; round < 12 && !turn.items.some(({ type }) => type === 'systemNotice'); round += 1) {
      ({ turn, ear } = await talk(runtime, thread.id, `question ${round} ${'word '.repeat(30)}`));
    }
    t.match(
      turn.items.find(({ type }) => type === 'systemNotice'),
      { kind: 'contextCompacted' },
    );
    t.match(
      ear.events.flatMap((event) => (event.method === 'system/event' ? [event.params.kind] : [])),
      ['compacting', 'compacted'],
    );
    const last = asked.at(-1) ?? '';
    t.match(last, /Summary of the conversation so far:\\nSUMMARY of it all/);
    t.notMatch(last, /"question"/, 'the first question is in the summary only');
    store.traces.flush();
    t.ok(store.traces.events(thread.id, { limit: 1_000, types: ['context.compacted'] }).events.length > 0);
  },
);

t.test('a requested compaction summarises older turns, or reports that it was skipped', async (t) => {
  const { runtime } = service(answers([say('x')]));
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.threads.subscribe(thread.id, ear.listener);
  await runtime.threads.compact(thread.id);
  t.match((await ear.until('system/event')).params, { kind: 'compactSkipped' });
  for (const words of ['a', 'b', 'c', 'd']) await talk(runtime, thread.id, words);
  await runtime.threads.compact(thread.id);
  t.match((await ear.until('system/event', 2)).params, { kind: 'compacted' });
});

t.test('known secrets are redacted in results, traces and messages', async (t) => {
  const store = openStore(temporaryDirectory(t));
  t.teardown(() => store.close());
  const provider = answers([call('c1', 'Leak')], [say('done')]);
  const leak = tool({ name: 'Leak', run: () => ({ text: 'the key is hunter2-hunter2', isError: false }) });
  const { runtime } = service(provider, {
    store: store.threads,
    traces: store.traces,
    tools: () => [leak],
    clean: (text) => text.replaceAll('hunter2-hunter2', '[redacted]'),
  });
  const { thread } = runtime.threads.start({});
  const { turn, ear } = await talk(runtime, thread.id, 'x');
  store.traces.flush();
  const everything = JSON.stringify([
    turn,
    ear.events,
    provider.requests,
    store.traces.events(thread.id, { limit: 100 }),
  ]);
  t.notMatch(everything, /hunter2-hunter2/);
  t.match(everything, /the key is \[redacted\]/);
});
