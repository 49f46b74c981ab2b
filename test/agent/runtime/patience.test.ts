/** Failures of the model that a turn waits out, fallback models, budgets, and state that goes back. */
import t from 'tap';
import { ModelError, type ModelEvent, type ModelRequest, openStore } from '../../../src/agent/index.ts';
import { systemClock, waitUntil } from '../../../src/agent/runtime/clock.ts';
import type { ApprovalRequest, Turn } from '../../../src/protocol/index.ts';
import { call, listening, say, scripted, service, settings, talk, text, tool } from '../helpers.ts';
import { temporaryDirectory } from '../store/helpers.ts';

const busy = (options = {}) =>
  new ModelError('upstreamFailed', 'The upstream is busy.', { retryAfterMs: 1, ...options });
const kindsOf = (ear: ReturnType<typeof listening>) =>
  ear.events.flatMap((event) => (event.method === 'system/event' ? [event.params.kind] : []));

t.test(
  'an answer that breaks off is repeated whole; nothing of it stays in the conversation, and no tool runs twice',
  async (t) => {
    const requests: string[] = [];
    let ran = 0;
    const provider = scripted(async function* ({ messages }) {
      requests.push(JSON.stringify(messages));
      if (requests.length === 1) yield call('c1', 'Count');
      else if (requests.length < 4) {
        yield { type: 'thinking', text: 'half a thought' };
        yield say('half an ans');
        yield call('c2', 'Count');
        throw busy();
      } else yield say('whole');
    });
    const count = tool({
      name: 'Count',
      run: async () => {
        ran += 1;
        return { text: 'one', isError: false };
      },
    });
    const { runtime, bugs } = service(provider, { tools: () => [count], settings: { ...settings, maxRetries: 3 } });
    const { thread } = runtime.threads.start({});
    const { turn, ear } = await talk(runtime, thread.id, 'go');
    t.match(turn, { status: 'completed', finishReason: 'stop' });
    t.equal(ran, 1);
    t.same(new Set(requests.slice(1)).size, 1, 'always the same request');
    t.same(kindsOf(ear), ['retrying', 'retrying']);
    t.match(
      ear.events.flatMap((event) => (event.method === 'system/event' ? [event.params] : [])),
      [
        { attempt: 1, waitMs: 1, reason: 'The upstream is busy.' },
        { attempt: 2, waitMs: 1 },
      ],
    );
    t.equal(
      turn.items.filter(({ type }) => type === 'toolCall').length,
      1,
      'no call of a broken answer is shown as one',
    );
    await talk(runtime, thread.id, 'again');
    t.notMatch(requests.at(-1), /half/, 'nor is it in the next turn');
    t.match(requests.at(-1), /whole/);
    t.same(bugs, []);
  },
);

t.test('an interrupt ends the wait for a repetition', async (t) => {
  const provider = scripted(async function* () {
    yield* [];
    throw busy({ retryAfterMs: 100_000 });
  });
  const { runtime } = service(provider, { settings: { ...settings, maxRetries: 3 } });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.threads.subscribe(thread.id, ear.listener);
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  await ear.until('system/event');
  runtime.turns.interrupt(thread.id, turn.id)();
  await ear.until('turn/cancelled');
  t.pass('cancelled long before the pause was over');
});

t.test(
  'a failure that does not pass ends the turn at once; a failure that lasts ends it after its repetitions',
  async (t) => {
    for (const [error, expected] of [
      [new ModelError('upstreamUnauthorized', 'no'), 1],
      [new ModelError('upstreamQuotaExceeded', 'no'), 1],
      [busy(), 3],
      [busy({ retryAfterMs: 121_000 }), 1],
    ] as const) {
      let asked = 0;
      const provider = scripted(async function* () {
        asked += 1;
        yield* [];
        throw error;
      });
      const { runtime } = service(provider, { settings: { ...settings, maxRetries: 2 } });
      const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
      t.match(turn, { status: 'failed', error: { code: error.code } });
      t.equal(asked, expected, error.code);
    }
  },
);

t.test('fallback models take over in their order, for the rest of the turn', async (t) => {
  const asked: string[] = [];
  const provider = scripted(async function* ({ model = 'main', messages }) {
    asked.push(model);
    if (model !== 'third/c') throw new ModelError('upstreamQuotaExceeded', `${model} has no credit.`);
    yield messages.at(-1)?.role === 'tool' ? say('done') : call('c1', 'Count');
  });
  const { runtime } = service(provider, {
    tools: () => [tool({ name: 'Count' })],
    settings: { ...settings, fallbackModels: ['second/b', 'third/c'] },
  });
  const { turn, ear } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.match(turn, { status: 'completed' });
  t.same(asked, ['main', 'second/b', 'third/c', 'third/c']);
  t.same(kindsOf(ear), ['fallback', 'fallback']);
  t.match(
    turn.items.find(({ type }) => type === 'systemNotice'),
    {
      kind: 'modelReplaced',
      text: 'main has no credit. Continuing with second/b.',
    },
  );
});

/** A model that costs a dollar with every request, and calls a tool `calls` times. */
function costly(calls: number) {
  let asked = 0;
  const provider = scripted(async function* () {
    asked += 1;
    yield asked <= calls ? call(`c${asked}`, 'Count', { asked }) : say('done');
    yield { type: 'usage', inputTokens: 1_000_000, outputTokens: 0, cachedInputTokens: 400_000, reasoningTokens: 0 };
  });
  const price = { input: 1.4, output: 5, cachedInput: 0.4 };
  const facts = () => ({ provider: 'p', owner: 'p/m', contextWindow: 9_000_000, price, reasoning: false });
  return { provider: { ...provider, facts }, asked: () => asked };
}

/** The window is that of the model. */
const roomy = { ...settings, compaction: { ...settings.compaction, contextWindow: 0 } };

const budget = (turnUsd: number, sessionUsd = 0, dayUsd = 0) => ({ turnUsd, sessionUsd, dayUsd });

t.test('cost is counted by request, turn and thread', async (t) => {
  const { provider } = costly(2);
  const { runtime } = service(provider, { tools: () => [tool({ name: 'Count' })], settings: roomy });
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.match(turn.tokenUsage, { inputTokens: 3_000_000, cachedInputTokens: 1_200_000, costUsd: 3 });
});

t.test('an unknown price leaves the cost out', async (t) => {
  const provider = scripted(async function* () {
    yield say('x');
    yield { type: 'usage', inputTokens: 1, outputTokens: 1 };
  });
  const { runtime } = service(provider);
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.strictSame(turn.tokenUsage, { inputTokens: 1, outputTokens: 1, totalTokens: 2 });
});

t.test('a used-up budget asks the user; accepting grants the same amount once more', async (t) => {
  const { provider, asked } = costly(5);
  const { runtime } = service(provider, {
    tools: () => [tool({ name: 'Count' })],
    settings: { ...roomy, budget: budget(2) },
  });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.threads.subscribe(thread.id, ear.listener);
  runtime.turns.start(thread.id, text('x'), ear.listener).begin();
  const first = await ear.until('item/approval/request');
  t.match(first.params, {
    tool: 'Budget',
    operation: 'continue',
    target: /Budget\.TurnUsd is used up: \$2 of \$2/,
  });
  t.equal(asked(), 2, 'no request is sent meanwhile');
  t.match(runtime.threads.read(thread.id, { includeTurns: true }).turns?.at(-1)?.status, 'waitingApproval');
  t.match(runtime.turns.approvals(thread.id), [{ tool: 'Budget' }]);
  runtime.turns.respond((first.params as { requestId: string }).requestId, 'accept');
  const second = await ear.until('item/approval/request', 2);
  t.equal(asked(), 4);
  runtime.turns.respond((second.params as { requestId: string }).requestId, 'decline');
  const { params } = await ear.until('turn/failed');
  t.match(params, { error: { code: 'budgetReached', message: /\$4 of \$4 spent by this turn/ } });
  t.equal(asked(), 4);
});

t.test('policies answer for an absent user: the turn fails with budgetReached', async (t) => {
  for (const approvalPolicy of ['autoApprove', 'interrupt'] as const) {
    const { provider, asked } = costly(5);
    const { runtime } = service(provider, {
      tools: () => [tool({ name: 'Count' })],
      settings: { ...roomy, approvalPolicy, budget: budget(0, 0, 3) },
    });
    const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
    t.match(turn, { status: 'failed', error: { code: 'budgetReached', message: /DayUsd/ } });
    t.equal(asked(), 3);
  }
});

t.test('the budget of a thread counts its earlier turns', async (t) => {
  const { provider } = costly(0);
  const { runtime } = service(provider, {
    settings: { ...roomy, approvalPolicy: 'interrupt', budget: budget(0, 2) },
  });
  const { thread } = runtime.threads.start({});
  for (const status of ['completed', 'completed', 'failed'])
    t.match((await talk(runtime, thread.id, 'x')).turn, { status });
  t.match(
    (await talk(runtime, runtime.threads.start({}).thread.id, 'x')).turn,
    { status: 'completed' },
    'another thread has its own',
  );
});

t.test('a requested compaction counts in the budgets of its thread and of the day', async (t) => {
  for (const [limit, chosen] of [
    ['SessionUsd', budget(0, 4)],
    ['DayUsd', budget(0, 0, 4)],
  ] as const) {
    for (const isCompacted of [false, true]) {
      const { provider } = costly(0);
      const { runtime } = service(provider, { settings: { ...roomy, approvalPolicy: 'interrupt', budget: chosen } });
      const { thread } = runtime.threads.start({});
      for (const words of ['a', 'b', 'c']) await talk(runtime, thread.id, words);
      if (isCompacted) await runtime.threads.compact(thread.id);
      const { turn } = await talk(runtime, thread.id, 'd');
      const message = new RegExp(`Budget\\.${limit} is used up: \\$4 of \\$4`);
      t.match(turn, isCompacted ? { status: 'failed', error: { message } } : { status: 'completed' }, limit);
    }
  }
});

t.test('the state of an answer goes back to its model, over a restart as well, and to no client', async (t) => {
  const directory = temporaryDirectory(t);
  const requests: ModelRequest[] = [];
  const provider = scripted(async function* (request) {
    requests.push({ ...request, messages: [...request.messages] });
    if (request.messages.at(-1)?.role === 'tool') return yield say('done');
    yield { type: 'thinking', text: 'hm' };
    yield call(`c${requests.length}`, 'Count');
    const state = { owner: 'p/m', data: { opaque: `signature-${requests.length}` } };
    yield { type: 'state', state } satisfies ModelEvent;
  });
  const first = openStore(directory);
  const one = service(provider, { store: first.threads, traces: first.traces, tools: () => [tool({ name: 'Count' })] });
  const { thread } = one.runtime.threads.start({});
  const { turn, ear } = await talk(one.runtime, thread.id, 'x');
  const stateIn = (index: number) =>
    requests[index]?.messages.flatMap((message) => (message.role === 'assistant' ? [message.state?.data] : []));
  t.same(stateIn(1), [{ opaque: 'signature-1' }], 'within the turn');
  t.notMatch(JSON.stringify([turn, ear.events]), /signature-/);
  first.traces.flush();
  t.notMatch(JSON.stringify(first.traces.events(thread.id, { limit: 100 })), /signature-/, 'nor in traces');
  await one.runtime.close();
  first.close();
  const second = openStore(directory);
  t.teardown(() => second.close());
  const two = service(provider, { store: second.threads, tools: () => [tool({ name: 'Count' })] });
  await talk(two.runtime, thread.id, 'y');
  t.same(stateIn(2), [{ opaque: 'signature-1' }, undefined], 'after a restart');
});

t.test('state that a service refuses is left out once and for all, and the request is asked again', async (t) => {
  /** Numbers of states in the requests so far. */
  const states: number[] = [];
  let refuses = false;
  const provider = scripted(async function* ({ messages }) {
    const sent = messages.filter((message) => message.role === 'assistant' && message.state).length;
    states.push(sent);
    if (refuses && sent > 0) {
      throw new ModelError('upstreamRejected', 'The encrypted content could not be verified.', { refusesState: true });
    }
    yield say('said');
    yield { type: 'state', state: { owner: 'scripted/m', data: [] } };
  });
  const { runtime, bugs } = service(provider, { settings: { ...settings, maxRetries: 2 } });
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'one');
  await talk(runtime, thread.id, 'two');
  t.same(states, [0, 1]);
  refuses = true;
  const { turn, ear } = await talk(runtime, thread.id, 'three');
  t.match(turn, { status: 'completed' });
  t.match(kindsOf(ear), ['retrying']);
  t.match(JSON.stringify(ear.events), /Asking again without the model's notes on earlier answers\./);
  t.same(states.slice(2), [2, 0]);
  refuses = false;
  await talk(runtime, thread.id, 'four');
  t.equal(states.at(-1), 1, 'the state of the answer since then goes back');
  t.same(bugs, []);
});

t.test('a service that refuses a request for state which it was not given ends the turn', async (t) => {
  let asked = 0;
  const provider = scripted(async function* () {
    asked += 1;
    yield* [];
    throw new ModelError('upstreamRejected', 'Invalid signature.', { refusesState: true });
  });
  const { runtime } = service(provider, { settings: { ...settings, maxRetries: 5 } });
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.match(turn, { status: 'failed', error: { code: 'upstreamRejected' } });
  t.equal(asked, 1);
});

/** A provider whose quota is used up for the first requests. */
function limited(refusals: number, error = { retryAfterMs: 3_600_000, resetMs: 3_600_000 } as object) {
  let asked = 0;
  const provider = scripted(async function* () {
    asked += 1;
    if (asked <= refusals) throw new ModelError('upstreamRateLimited', 'Used up.', error);
    yield say('whole');
  });
  return { provider, asked: () => asked };
}
const waiting = (wait: 'auto' | 'ask' | 'never') => ({ ...settings, quota: { wait, maxWaitMs: 7_200_000 } });
const noticesOf = (turn: Turn) =>
  turn.items.flatMap((item) => (item.type === 'systemNotice' ? [`${item.kind}: ${item.text}`] : []));

/** Starts a turn that reaches its quota. */
async function held(wait: 'auto' | 'ask', refusals = 1, error?: object) {
  const { provider, asked } = limited(refusals, error);
  const { runtime } = service(provider, { settings: waiting(wait) });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.threads.subscribe(thread.id, ear.listener);
  const { turn, begin, ended } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  const question = async (count = 1) => (await ear.until('item/approval/request', count)).params as ApprovalRequest;
  return { runtime, thread, turn, ear, asked, ended, question };
}

t.test(
  'a used-up quota asks once, waits without a request, and continues with a notice when it is hurried',
  async (t) => {
    const { runtime, thread, ear, asked, ended, question } = await held('ask');
    const first = await question();
    t.match(first, { tool: 'Quota', operation: 'wait and continue', provider: 'scripted', reason: 'Used up.' });
    const rest = Date.parse(first.until ?? '') - Date.now();
    t.ok(rest > 3_500_000 && rest <= 3_600_000, 'the item has the time of the reset');
    t.match(runtime.threads.read(thread.id, { includeTurns: true }).turns?.at(-1)?.status, 'waitingQuota');
    t.match(
      ear.events.flatMap((event) => (event.method === 'system/event' ? [event.params] : [])),
      [{ kind: 'quotaWaiting', until: first.until, provider: 'scripted', reason: 'Used up.' }],
    );
    runtime.turns.respond(first.requestId, 'accept');
    const second = await question(2);
    t.match(second, { operation: 'continue', until: first.until, expiresAt: first.until });
    t.equal(asked(), 1, 'no request is sent meanwhile');
    runtime.turns.respond(second.requestId, 'now');
    const turn = await ended;
    t.match([turn.status, asked()], ['completed', 2]);
    t.same(kindsOf(ear), ['quotaWaiting', 'quotaResumed']);
    const [waits, resumed, ...more] = noticesOf(turn);
    t.match(waits, /^quotaWaiting: Used up\. The quota resets at (\d+ \w+ )?\d\d:\d\d\.$/);
    t.match(
      resumed,
      /^quotaResumed: The turn waited since \d\d:\d\d for the quota of scripted and continues at \d\d:\d\d\.$/,
    );
    t.same([more, runtime.turns.approvals()], [[], []]);
  },
);

t.test('a wait that a user ends fails the turn with the refusal', async (t) => {
  for (const [wait, decision] of [
    ['ask', 'decline'],
    ['auto', 'cancel'],
  ] as const) {
    const { runtime, asked, ended, question } = await held(wait);
    runtime.turns.respond((await question()).requestId, decision);
    const error = { code: 'upstreamRateLimited', message: 'Used up.', retryAfterMs: 3_600_000 };
    t.match(await ended, { status: 'failed', error }, wait);
    t.equal(asked(), 1);
  }
});

t.test('with Quota.Wait "auto" the turn waits without an answer; a client without a user cannot end it', async (t) => {
  const { runtime, asked, ended, question, thread, turn } = await held('auto', 2, {});
  const request = await question();
  t.match(request, { operation: 'continue', until: null, target: /its reset is unknown/ });
  runtime.turns.respond(request.requestId, 'decline', 'policy');
  t.equal(runtime.turns.approvals().length, 1);
  runtime.turns.respond(request.requestId, 'now');
  await question(2);
  t.equal(asked(), 2, 'a second refusal waits again');
  runtime.turns.interrupt(thread.id, turn.id)();
  t.match(await ended, { status: 'cancelled', interruptedBy: 'user' });
  t.same(runtime.turns.approvals(), []);
});

t.test('a turn without a user, and one whose caller waits, ends with the refusal at once', async (t) => {
  for (const [wait, options] of [
    ['ask', { approvalPolicy: 'interrupt' }],
    ['auto', { waitsForQuota: false }],
    ['never', {}],
  ] as const) {
    const { provider } = limited(1);
    const { runtime } = service(provider, { settings: waiting(wait) });
    const { begin, ended } = runtime.turns.start(runtime.threads.start({}).thread.id, text('x'), undefined, options);
    begin();
    t.match(await ended, { status: 'failed', error: { code: 'upstreamRateLimited', retryAfterMs: 3_600_000 } });
  }
});

t.test('the answer "now" allows no call', async (t) => {
  const provider = scripted(async function* ({ messages }) {
    yield messages.at(-1)?.role === 'tool' ? say('end') : call('c1', 'Count');
  });
  let ran = 0;
  const run = async () => {
    ran += 1;
    return { text: 'one', isError: false };
  };
  const { runtime } = service(provider, { tools: () => [tool({ name: 'Count', needsApproval: true, run })] });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { begin, ended } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  const { requestId } = (await ear.until('item/approval/request')).params;
  t.throws(() => runtime.turns.respond(requestId, 'now'), { name: 'AgentError', reason: 'approvalNotFound' });
  runtime.turns.respond(requestId, 'decline');
  await ended;
  t.equal(ran, 0);
});

t.test('a wait ends at its time of the wall clock, with at most one timer a minute', async (t) => {
  const minute = 60_000;
  /** @param step milliseconds that the wall clock advances in a timer of `ms`, for example in a machine that sleeps */
  const wait = async (length: number, step: (ms: number, timer: number) => number) => {
    let [now, passed] = [1_000, 0];
    const timers: number[] = [];
    const clock = {
      now: () => now,
      passed: () => passed,
      sleep: async (ms: number) => {
        now += step(ms, timers.length);
        passed += ms;
        timers.push(ms);
      },
    };
    await waitUntil(now + length, new AbortController().signal, clock);
    return [timers.length, Math.min(...timers), passed];
  };
  const running = (ms: number) => ms;
  t.same(await wait(5 * 60 * minute + 1, running), [300, minute, 300 * minute + 1], 'five hours');
  t.same(await wait(90_000, running), [1, 90_000, 90_000]);
  t.same(await wait(600 * minute, (ms, timer) => (timer === 1 ? 599 * minute : ms)), [2, minute, 2 * minute], 'asleep');
  t.same(
    await wait(30 * minute, (ms, timer) => (timer === 1 ? -999 * minute : ms)),
    [30, minute, 30 * minute],
    'set back',
  );
  const gone = AbortSignal.abort(new Error('gone'));
  await t.rejects(waitUntil(Date.now() + minute, gone, systemClock), { message: 'gone' });
});
