/** Tools of a client in a turn whose process ends: the next process waits for the client, and repeats the open call. */
import t, { type Test } from 'tap';
import { openStore, type RuntimeSettings } from '../../../src/agent/index.ts';
import type { DynamicTools } from '../../../src/agent/runtime/types.ts';
import { temporaryDirectory } from '../../hub/harness.ts';
import { answers, call, say, service, settings, text } from '../helpers.ts';

const spec = { name: 'weather', description: 'Tells the weather.', inputSchema: { type: 'object' } };
const sunny: Awaited<ReturnType<DynamicTools['call']>> = {
  success: true,
  contentItems: [{ type: 'text', text: 'sunny' }],
};
const nobody = () => undefined;

/** Kills a process in the call of a client's tool, and starts the next process. */
async function killed(t: Test, turns: Partial<RuntimeSettings['turns']> = {}) {
  const directory = temporaryDirectory(t);
  const first = openStore(directory);
  const asked = Promise.withResolvers<{ readonly callId: string; readonly turnId: string }>();
  const dying = service(answers([call('c1', 'weather')]), { store: first.threads }).runtime;
  const hanging: DynamicTools['call'] = (about) => {
    asked.resolve(about);
    return new Promise(nobody);
  };
  const { thread } = dying.threads.start({ dynamicTools: { tools: [spec], call: hanging } });
  const { turn, begin } = dying.turns.start(thread.id, text('x'), undefined);
  begin();
  const { callId } = await asked.promise;
  first.close();

  const second = openStore(directory);
  t.teardown(() => second.close());
  const provider = answers([say('done')]);
  const all = { ...settings, turns: { ...settings.turns, ...turns } };
  const { runtime, bugs } = service(provider, { store: second.threads, settings: all });
  const run = runtime.turns.running(thread.id);
  t.equal(run?.turnId, turn.id, 'the turn is registered');
  runtime.resume();
  const repeated: { readonly callId: string; readonly turnId: string }[] = [];
  const register = () =>
    runtime.threads.resume(thread.id, nobody, {
      tools: [spec],
      call: async (about) => {
        repeated.push(about);
        return sunny;
      },
    });
  return { runtime, bugs, run, callId, turnId: turn.id, threadId: thread.id, provider, repeated, register };
}

for (const moment of ['before', 'while'] as const) {
  t.test(`a client that registers its tools ${moment} the turn waits gets the call with the same id`, async (t) => {
    const { run, register, repeated, callId, turnId, provider, bugs } = await killed(t);
    if (moment === 'while') for (let n = 0; n < 20; n += 1) await new Promise(setImmediate);
    t.equal(provider.requests.length, 0, 'the model gets no request before the client returns');
    register();
    const turn = await run?.ended;
    t.match(turn, { id: turnId, status: 'completed', resumes: 1 });
    t.match(repeated, [{ callId, turnId }]);
    t.equal(repeated.length, 1);
    const results = turn?.items.filter(({ type }) => type === 'toolResult');
    t.match(results, [{ callId, outcome: 'completed', text: 'sunny' }]);
    t.equal(results?.length, 1);
    t.match(
      provider.requests.map(({ messages }) => messages.filter(({ role }) => role === 'tool')),
      [[{ callId, content: [{ text: 'sunny' }] }]],
    );
    t.same(bugs, []);
  });
}

t.test('without the client, the outcome of its call is unknown, and the turn ends', async (t) => {
  const { run, repeated, callId, turnId } = await killed(t, { clientToolMs: 1 });
  const turn = await run?.ended;
  t.match(turn, { id: turnId, status: 'completed', resumes: 1 });
  t.match(
    turn?.items.filter(({ type }) => type === 'toolResult'),
    [{ callId, outcome: 'unknown' }],
  );
  t.equal(repeated.length, 0);
});

t.test('a turn that waits for its client can be interrupted, and a returning client finds it ended', async (t) => {
  const { runtime, run, register, repeated, provider, threadId, turnId } = await killed(t);
  runtime.turns.interrupt(threadId, turnId)();
  t.match(await run?.ended, { status: 'cancelled', interruptedBy: 'user' });
  register();
  t.equal(repeated.length, 0);
  t.equal(provider.requests.length, 0);
});
