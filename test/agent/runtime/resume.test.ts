/**
 * A turn whose process ends in any state: the next runtime continues it. The list of states comes from the machine, so that a new
 * state needs a moment here.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { turnMachine } from '../../../machines/index.ts';
import {
  ModelError,
  type ModelEvent,
  type ModelProvider,
  type ModelRequest,
  openStore,
  type Runtime,
  type RuntimeOptions,
  type RuntimeSettings,
  type ThreadEvent,
  type ThreadStore,
} from '../../../src/agent/index.ts';
import type { TurnOptions } from '../../../src/agent/runtime/types.ts';
import type { ApprovalPolicy, ThreadConfig, Turn } from '../../../src/protocol/index.ts';
import { temporaryDirectory } from '../../hub/harness.ts';
import { answers, call, listening, say, scripted, service, settings, talk, text, tool } from '../helpers.ts';

/** One run of a scripted turn over two processes: the effects and requests of both. */
class World {
  readonly effects: string[] = [];
  readonly requests: ModelRequest[] = [];
  answered = 0;
  isDead = false;
  failures = 0;
}

/** Never settles: work of a dead process. */
const dead = new Promise<never>(() => undefined);

type Answer = (request: ModelRequest, world: World) => readonly ModelEvent[] | ModelError;

interface Moment {
  /** Answers of the model; default: one call of `Write`, then a text. */
  readonly answer?: Answer;
  readonly settings?: Partial<RuntimeSettings>;
  readonly options?: TurnOptions;
  readonly prompt?: string;
  readonly needsApproval?: boolean;
  readonly checkpoints?: RuntimeOptions['checkpoints'];
  readonly hooks?: RuntimeOptions['hooks'];
  /** Commands of the first process, in the next one. */
  readonly processes?: RuntimeOptions['processes'];
  /** Called in the first process when the turn is in the state before. */
  readonly before?: (runtime: Runtime, threadId: string) => Promise<unknown>;
  /** Called when the work of the turn hangs, to reach the state. */
  readonly push?: (runtime: Runtime, threadId: string, turnId: string) => void;
  /** Called in the next process, before and after the turn continues. */
  readonly next?: (runtime: Runtime, threadId: string) => void;
  readonly status?: Turn['status'];
  /** Effects in the end; default: one. */
  readonly effects?: number;
  /** Notices that the turn must have. */
  readonly notices?: readonly string[];
}

const hasResult = ({ messages }: ModelRequest) => messages.at(-1)?.role === 'tool';
const writeOnce: Answer = (request) => (hasResult(request) ? [say('done')] : [call('c1', 'Write', { n: 1 })]);
const failOnce: Answer = (request, world) => {
  if (hasResult(request) || world.failures > 0) return writeOnce(request, world);
  world.failures += 1;
  return new ModelError('upstreamFailed', 'The upstream is busy.', { isRetryable: true, retryAfterMs: 1 });
};
const accept = (runtime: Runtime, threadId: string) => {
  const [open] = runtime.turns.approvals(threadId);
  if (open) runtime.turns.respond(open.requestId, 'accept');
};

const hurry = (runtime: Runtime, threadId: string) => {
  const [open] = runtime.turns.approvals(threadId);
  if (open) runtime.turns.respond(open.requestId, 'now');
};

/** A quota that is used up for an hour. */
const refused: Moment = {
  answer: (request, world) => {
    if (hasResult(request) || world.failures > 0) return writeOnce(request, world);
    world.failures += 1;
    return new ModelError('upstreamRateLimited', 'Used up.', { retryAfterMs: 3_600_000, resetMs: 3_600_000 });
  },
  next: hurry,
  notices: ['quotaWaiting', 'quotaResumed'],
};

/** More than half of the window in the moment of a compaction. */
const longText = 'word '.repeat(500);

/** Files that are saved for a while at the end of a turn. */
const slowToSettle = {
  recovered: () => undefined,
  begin: () => undefined,
  resume: () => undefined,
  secure: async () => undefined,
  working: () => () => undefined,
  settle: () => sleep(50),
} as unknown as NonNullable<RuntimeOptions['checkpoints']>;

/** Hooks of the turn's end that take a while. */
const slowHooks = {
  has: (event: string) => event === 'TurnEnd',
  run: () => sleep(50, { context: [], reasons: [], failures: [] }),
} as unknown as NonNullable<RuntimeOptions['hooks']>;

/** Moments by the state of the machine in which the process ends. */
const moments: Readonly<Record<string, Moment>> = {
  preparing: {},
  checking: {},
  inferring: {},
  reviewing: {},
  securing: {},
  awaitingApproval: { needsApproval: true, next: accept },
  // The call has an unknown outcome, and is not repeated.
  runningTools: { effects: 0 },
  storing: { checkpoints: slowToSettle },
  retrying: { answer: failOnce, settings: { maxRetries: 2 }, notices: ['requestRepeated'] },
  fallingBack: {
    answer: failOnce,
    settings: { fallbackModels: ['second'] },
    notices: ['modelReplaced'],
  },
  budgetReached: {
    settings: { budget: { turnUsd: 0.5, sessionUsd: 0, dayUsd: 0 } },
    next: accept,
  },
  confirming: { ...refused, settings: { quota: { wait: 'ask', maxWaitMs: 7_200_000 } } },
  scheduled: { ...refused, settings: { quota: { wait: 'auto', maxWaitMs: 7_200_000 } } },
  compacting: {
    prompt: `please write ${longText}`,
    settings: { compaction: { isAutomatic: true, contextWindow: 1_000, reserveTokens: 100, keepRecentTurns: 2 } },
    async before(runtime, threadId) {
      for (const n of [1, 2]) await talk(runtime, threadId, `question ${n} ${longText}`);
    },
    answer: ({ messages }) =>
      JSON.stringify(messages).includes('Summarise the conversation') ? [say('SUMMARY')] : [say('done')],
    effects: 0,
    notices: ['contextCompacted'],
  },
  checkingEnd: { hooks: slowHooks },
  concluding: {
    settings: { maxToolCallRounds: 1 },
    answer: ({ tools = [] }) => (tools.length > 0 ? [call('c1', 'Write', {})] : [say('my findings')]),
    effects: 0,
    notices: ['callLimitReached'],
  },
  cancelling: {
    push: (runtime, threadId, turnId) => runtime.turns.interrupt(threadId, turnId)(),
    status: 'cancelled',
    effects: 0,
    processes: { list: () => [], stop: async () => false, endThread: async () => {}, isKept: () => true },
  },
};

/** Names of the states without states of their own, except those that a turn is not saved in. */
function leavesOf(states: typeof turnMachine.root.states): string[] {
  return Object.values(states).flatMap(({ key, states: inner, type }) => {
    if (type === 'final' || ['delegating', 'beginning', 'resuming'].includes(key)) return [];
    return Object.keys(inner).length > 0 ? leavesOf(inner) : [key];
  });
}

const providerOf = (world: World, answer: Answer, isAlive: () => boolean): ModelProvider =>
  scripted(async function* (request) {
    if (!isAlive()) await dead;
    world.requests.push({ ...request, messages: [...request.messages] });
    await new Promise(setImmediate);
    if (!isAlive()) await dead;
    const events = answer(request, world);
    if (events instanceof ModelError) throw events;
    yield* events;
    world.answered += 1;
    yield { type: 'usage', inputTokens: 1, outputTokens: 1, costUsd: 0.75 };
  });

const leafOf = (value: unknown): string =>
  typeof value === 'string' ? value : leafOf(Object.values(value as object)[0]);

/** Checks that every call of every request has exactly one result. */
function soundRequests(t: Test, { requests }: World): void {
  for (const { messages } of requests) {
    for (const message of messages) {
      if (message.role !== 'assistant') continue;
      for (const { callId } of message.toolCalls) {
        t.equal(messages.filter((each) => each.role === 'tool' && each.callId === callId).length, 1, callId);
      }
    }
  }
}

t.test('every state in which a turn is saved has a moment in this test', (t) => {
  t.same(leavesOf(turnMachine.root.states).toSorted(), Object.keys(moments).toSorted());
  t.end();
});

for (const [state, moment] of Object.entries(moments)) {
  t.test(`a turn whose process ended in ${state} continues and ends with the same result`, async (t) => {
    const { answer = writeOnce, needsApproval = false, status = 'completed', effects = 1, notices = [] } = moment;
    const world = new World();
    const directory = temporaryDirectory(t);
    const first = openStore(directory);
    const writing = (isAlive: () => boolean) =>
      tool({
        name: 'Write',
        needsApproval,
        run: async () => {
          if (!isAlive() || (['cancelling', 'runningTools'].includes(state) && !world.isDead)) await dead;
          world.effects.push('written');
          return { text: 'written', isError: false };
        },
      });
    const all = { ...settings, ...moment.settings };
    const killed = Promise.withResolvers<void>();
    const isAlive = () => !world.isDead;
    let isArmed = false;
    const dying = service(providerOf(world, answer, isAlive), {
      ...{ store: first.threads, traces: first.traces, settings: all, tools: () => [writing(isAlive)] },
      ...{ checkpoints: moment.checkpoints, hooks: moment.hooks },
      observe: (actor, threadId, turnId) => {
        actor.subscribe((snapshot) => {
          const at = leafOf((snapshot as { readonly value: unknown }).value);
          if (isArmed && at === 'runningTools') setImmediate(() => moment.push?.(dying.runtime, threadId, turnId));
          if (!isArmed || world.isDead || at !== state) return;
          // The writes of this turn of the event loop are one commit.
          setImmediate(() => {
            if (world.isDead) return;
            world.isDead = true;
            actor.stop();
            first.close();
            killed.resolve();
          });
        });
      },
    });
    const { thread } = dying.runtime.threads.start({});
    await moment.before?.(dying.runtime, thread.id);
    isArmed = true;
    const started = dying.runtime.turns.start(
      thread.id,
      text(moment.prompt ?? 'please write'),
      undefined,
      moment.options,
    );
    started.begin();
    await killed.promise;

    const second = openStore(directory);
    t.teardown(() => second.close());
    const provider = providerOf(world, answer, () => true);
    const { runtime, bugs } = service(provider, {
      ...{ store: second.threads, traces: second.traces, settings: all, tools: () => [writing(() => true)] },
      ...{ checkpoints: moment.checkpoints, hooks: moment.hooks, processes: moment.processes },
    });
    const run = runtime.turns.running(thread.id);
    t.equal(run?.turnId, started.turn.id, 'the turn is registered before it continues');
    t.throws(() => runtime.turns.start(thread.id, text('x'), undefined), {
      name: 'AgentError',
      reason: 'turnInProgress',
    });
    moment.next?.(runtime, thread.id);
    const heard: ThreadEvent[] = [];
    runtime.threads.subscribe(thread.id, (event) => {
      heard.push(event);
    });
    runtime.resume();
    const turn = await run?.ended;
    t.match(turn, { id: started.turn.id, status, resumes: 1 });
    t.equal(world.effects.length, effects, 'effects');
    soundRequests(t, world);
    const idsOf = (type: 'toolCall' | 'toolResult') =>
      (turn?.items ?? []).flatMap((item) => (item.type === type ? [item.callId] : []));
    t.same(idsOf('toolResult'), idsOf('toolCall'), 'each call has one result');
    const kinds = (turn?.items ?? []).flatMap((item) => (item.type === 'systemNotice' ? [item.kind] : []));
    t.equal(kinds.filter((kind) => kind === 'turnResumed').length, 1);
    for (const kind of notices) t.equal(kinds.filter((each) => each === kind).length, 1, kind);
    const asks = (turn?.items ?? []).filter(({ type }) => type === 'approvalRequest');
    t.ok(asks.length <= 1, 'no question is asked twice');
    t.equal(heard.filter(({ method }) => method === 'turn/started').length, 0);
    t.match(
      heard.filter(({ method, params }) => method === 'system/event' && params.kind === 'turnResumed'),
      [
        {
          params: { reason: 'crash', callsUnknown: state === 'runningTools' ? [{ callId: 'c1', tool: 'Write' }] : [] },
        },
      ],
    );
    t.equal(second.threads.turnActors.get(thread.id, started.turn.id), undefined, 'its facts are deleted with its end');
    t.same(bugs, []);
    if (moment.before === undefined && state !== 'inferring') {
      t.equal(turn?.tokenUsage?.inputTokens ?? 0, world.answered, 'each answer is counted once');
    }
    if (moment.next) return;
    const { turn: later } = await talk(runtime, thread.id, 'and on');
    t.equal(later.status, 'completed', 'its thread works');
  });
}

/** A turn that hangs in a tool, and the directory of its dead process. */
async function left(t: Test, over: Partial<RuntimeSettings> = {}) {
  const directory = temporaryDirectory(t);
  const store = openStore(directory);
  const hang = tool({ name: 'Hang', run: () => dead });
  const { runtime } = service(
    scripted(async function* () {
      yield call('c1', 'Hang');
    }),
    { store: store.threads, tools: () => [hang], settings: { ...settings, ...over } },
  );
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  await ear.until('item/completed', 2);
  await new Promise(setImmediate);
  store.close();
  const change = (json: (facts: Record<string, unknown>) => string) => {
    const { threads, close } = openStore(directory);
    threads.turnActors.put(thread.id, turn.id, json(JSON.parse(threads.turnActors.get(thread.id, turn.id) ?? '{}')));
    close();
  };
  const next = (over: Partial<RuntimeSettings> = {}, onRequest?: () => Promise<void>) => {
    const { threads, close } = openStore(directory);
    const { runtime } = service(
      scripted(async function* () {
        await onRequest?.();
        yield say('fine');
      }),
      { store: threads, tools: () => [hang], settings: { ...settings, ...over } },
    );
    runtime.resume();
    const read = () => runtime.threads.read(thread.id, { includeTurns: true }).turns?.[0];
    return { runtime, read, threads, close, threadId: thread.id };
  };
  return { threadId: thread.id, turnId: turn.id, change, next };
}

t.test('the result of a call is on disk before a hook of it runs', async (t) => {
  const directory = temporaryDirectory(t);
  const store = openStore(directory);
  t.teardown(() => store.close());
  const seen: unknown[] = [];
  const hooks = {
    has: (event: string) => event === 'PostToolUse',
    run: async ({ session_id, turn_id }: { session_id: string; turn_id: string }) => {
      const another = openStore(directory);
      seen.push(another.threads.turnActors.calls(session_id, turn_id).get('c1')?.result);
      another.close();
      return { context: [], reasons: [], failures: [] };
    },
  } as unknown as NonNullable<RuntimeOptions['hooks']>;
  const write = tool({ name: 'Write', run: () => ({ text: 'written', isError: false }) });
  const provider = answers([call('c1', 'Write')], [say('done')]);
  const { runtime } = service(provider, { store: store.threads, hooks, tools: () => [write] });
  await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.match(seen, [{ outcome: 'completed', text: 'written' }]);
});

const turnsOf = (resume: 'auto' | 'never', maxResumes = 3, resumeWithinHours = 24) => ({
  turns: { resume, maxResumes, resumeWithinHours, resumeAgents: false },
});

t.test('a turn that ended its server too often is given up, and its thread works', async (t) => {
  const { next, threadId } = await left(t);
  for (const resumes of [1, 2, 3]) {
    const asked = Promise.withResolvers<void>();
    const { read, close } = next({}, () => {
      asked.resolve();
      return dead;
    });
    await asked.promise;
    t.match(read(), { status: 'running', resumes });
    close();
  }
  const { read, runtime, close } = next();
  t.match(read(), { status: 'failed', error: { code: 'resumedTooOften' } });
  t.equal((await talk(runtime, threadId, 'x')).turn.status, 'completed');
  close();
});

t.test('facts of another version or without sense end their turn with a reason, not the start', async (t) => {
  const wrong: readonly (readonly [(facts: Record<string, unknown>) => string, RegExp])[] = [
    [
      (facts) => JSON.stringify({ ...facts, version: 2, program: '9.9.9' }),
      /version 2 \(Oratorio 9\.9\.9\).*version 1/,
    ],
    [() => 'not JSON', /not JSON/],
    [(facts) => JSON.stringify({ ...facts, context: { tokens: 'many' } }), /no valid context/],
  ];
  for (const [json, message] of wrong) {
    const { next, change, threadId } = await left(t);
    change(json);
    const { read, runtime, close } = next();
    t.match(read(), { status: 'failed', error: { code: 'resumeFailed', message } });
    t.equal((await talk(runtime, threadId, 'x')).turn.status, 'completed');
    close();
  }
});

t.test('with Resume "ask" a turn continues after an approval, under one question', async (t) => {
  const { next, turnId } = await left(t);
  const ask = { turns: { resume: 'ask' as const, maxResumes: 3, resumeWithinHours: 24, resumeAgents: false } };
  const first = next(ask);
  const [asked] = first.runtime.turns.approvals();
  t.match(asked, { scopeKey: `resume:${turnId}`, operation: 'continue' });
  t.equal(first.read()?.status, 'running');
  first.close();
  const second = next(ask);
  const open = second.runtime.turns.approvals();
  t.match(open, [{ requestId: asked?.requestId }], 'the next process asks no second question');
  const run = second.runtime.turns.running(second.threadId);
  second.runtime.turns.respond(asked?.requestId ?? '', 'accept');
  t.match(await run?.ended, { status: 'completed', resumes: 1 });
  second.close();
  const declined = await left(t);
  const third = declined.next(ask);
  const [question] = third.runtime.turns.approvals();
  const other = third.runtime.turns.running(third.threadId);
  third.runtime.turns.respond(question?.requestId ?? '', 'decline');
  const turn = await other?.ended;
  t.match(turn, { status: 'cancelled', interruptedBy: 'user' });
  t.notOk(
    turn?.items.some((item) => item.type === 'systemNotice'),
    'a declined turn does nothing',
  );
  third.close();
});

t.test('a turn does not continue where the settings say never, and after its time', async (t) => {
  const never = await left(t);
  const { read, close } = never.next(turnsOf('never'));
  t.match(read(), { status: 'cancelled', interruptedBy: 'crash' });
  close();
  const late = await left(t);
  late.change((facts) => JSON.stringify({ ...facts, savedAt: new Date(Date.now() - 2 * 3_600_000).toISOString() }));
  const second = late.next(turnsOf('auto', 3, 1));
  t.match(second.read(), { status: 'cancelled', interruptedBy: 'shutdown' });
  second.close();
});

t.test('a suspended turn keeps its facts, ends nothing, and continues with its reason', async (t) => {
  const directory = temporaryDirectory(t);
  const world = new World();
  const store = openStore(directory);
  const write = tool({
    name: 'Write',
    run: () => {
      world.effects.push('written');
      return { text: 'written', isError: false };
    },
  });
  const gate = Promise.withResolvers<void>();
  const { runtime } = service(
    scripted(async function* () {
      yield say('I write ');
      await gate.promise;
      yield call('c1', 'Write');
    }),
    { store: store.threads, tools: () => [write] },
  );
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  await ear.until('item/agentMessage/delta');
  const everybody = listening();
  runtime.feed.join(everybody.listener);
  const suspended = runtime.suspend({ reason: 'restart', withinMs: 60_000 });
  gate.resolve();
  await suspended;
  t.match(ear.events.at(-1), { method: 'system/event', params: { kind: 'turnSuspended', reason: 'restart' } });
  const suspendedNow = { running: false, waitingOnApproval: false, suspended: true };
  t.same(everybody.events.at(-1), {
    method: 'thread/runtimeChanged',
    params: { threadId: thread.id, runtime: suspendedNow },
  });
  t.match(runtime.threads.list({}), [{ runtime: suspendedNow }]);
  t.same(world.effects, [], 'the safe point is the end of the answer');
  t.equal(store.threads.turn(thread.id, turn.id)?.completedAt, undefined);
  t.throws(() => runtime.turns.start(thread.id, text('y'), undefined), { name: 'AgentError', reason: 'overloaded' });
  await runtime.close();
  store.close();

  const second = openStore(directory);
  t.teardown(() => second.close());
  const { turnActors } = second.threads;
  const savedAt = new Date(Date.now() - 3_600_000).toISOString();
  const facts = JSON.parse(turnActors.get(thread.id, turn.id) ?? '');
  turnActors.put(thread.id, turn.id, JSON.stringify({ ...facts, savedAt }));
  const { runtime: next } = service(
    scripted(async function* (request) {
      yield hasResult(request) ? say('done') : call('c9', 'Write');
    }),
    { store: second.threads, traces: second.traces, tools: () => [write] },
  );
  const hear = listening();
  next.threads.subscribe(thread.id, hear.listener);
  const run = next.turns.running(thread.id);
  next.resume();
  t.match(await run?.ended, { id: turn.id, status: 'completed', resumes: 1 });
  t.match((await hear.until('system/event')).params, { kind: 'turnResumed', reason: 'restart' });
  t.same(world.effects, ['written']);
  second.traces.flush();
  const [completed] = second.traces.events(thread.id, { types: ['turn.completed'], limit: 1 }).events;
  t.ok(Number(completed?.data['awayMs']) >= 3_600_000, 'the trace records the time without an agent server');
  t.ok(Number(completed?.durationMs) < 3_600_000, 'and the duration excludes it');
});

interface Successor {
  /** State of the dead process. */
  readonly directory: string;
  readonly threadId: string;
  readonly answer: string;
  readonly hooks?: RuntimeOptions['hooks'];
}

/** Resumes the turn of a thread in the next process, whose model gives one answer. @returns its end and the requests of the model */
async function resumed(t: Test, { directory, threadId, answer, hooks }: Successor) {
  const { threads, close } = openStore(directory);
  t.teardown(close);
  const requests: ModelRequest[] = [];
  const { runtime } = service(
    scripted(async function* (request) {
      requests.push(request);
      yield say(answer);
    }),
    { store: threads, ...(hooks && { hooks }) },
  );
  const run = runtime.turns.running(threadId);
  runtime.resume();
  return { requests, ended: await run?.ended };
}

t.test('input that steers a turn survives its process', async (t) => {
  const directory = temporaryDirectory(t);
  const store = openStore(directory);
  const { runtime } = service(
    scripted(async function* () {
      yield say('hm');
      await dead;
    }),
    { store: store.threads },
  );
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  await ear.until('item/agentMessage/delta');
  runtime.turns.steer(thread.id, turn.id, { input: text('and in red') });
  store.close();
  const { requests, ended } = await resumed(t, { directory, threadId: thread.id, answer: 'red' });
  t.match(ended, { status: 'completed' });
  const asked = JSON.stringify(requests[0]?.messages);
  t.equal(asked.split('and in red').length, 2, 'the model gets it once');
  t.notMatch(asked, /"hm"/, 'the broken answer is not sent');
});

/** A turn whose call needs an approval. `onWaiting` is called in the commit of the question, `decide` when it is open. */
async function leftWaiting(t: Test, at: { onWaiting?: (runtime: Runtime, store: ThreadStore) => void } = {}) {
  const directory = temporaryDirectory(t);
  const open = (onWaiting?: (runtime: Runtime) => void) => {
    const store = openStore(directory);
    const write = tool({ name: 'Write', needsApproval: true, run: () => dead });
    const { runtime } = service(
      scripted(async function* () {
        yield call('c1', 'Write');
      }),
      {
        ...{ store: store.threads, tools: () => [write], settings },
        observe: (actor) => {
          // Timers of the turn would keep this process alive.
          t.teardown(() => actor.stop());
          actor.subscribe((snapshot) => {
            if (leafOf((snapshot as { readonly value: unknown }).value) === 'awaitingApproval') onWaiting?.(runtime);
          });
        },
      },
    );
    return { runtime, store };
  };
  const { runtime, store } = open((runtime) => at.onWaiting?.(runtime, store.threads));
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.turns.start(thread.id, text('x'), ear.listener).begin();
  const { params } = await ear.until('item/approval/request');
  return { runtime, ear, requestId: params.requestId, close: () => store.close(), next: () => open() };
}

t.test('a second answer after a restart is refused, and the first one is named', async (t) => {
  const { runtime, requestId, ear, close, next } = await leftWaiting(t);
  runtime.turns.respond(requestId, 'accept', 'user', 'oratorio-tui');
  await ear.until('item/approval/resolved');
  close();
  const second = next();
  t.teardown(() => second.store.close());
  t.same(second.runtime.turns.approvals(), []);
  t.match(second.runtime.turns.decisionOf(requestId), {
    decision: 'accept',
    decidedBy: 'user',
    client: 'oratorio-tui',
  });
  t.throws(() => second.runtime.turns.respond(requestId, 'decline'), {
    name: 'AgentError',
    reason: 'approvalNotFound',
  });
  t.equal(second.runtime.turns.decisionOf('approval_other'), undefined);
});

t.test('a list of approvals names stored ones only', async (t) => {
  const seen: string[][] = [];
  const { close } = await leftWaiting(t, {
    onWaiting: (runtime, store) => {
      const listed = runtime.turns.approvals().map(({ requestId }) => requestId);
      const items = store.unfinishedTurns().flatMap((turn) => turn.items);
      seen.push(
        listed,
        items.flatMap((item) => (item.type === 'approvalRequest' ? [item.requestId] : [])),
      );
    },
  });
  t.equal(seen[0]?.length, 1);
  t.same(seen[1], seen[0]);
  close();
});

interface Changed {
  readonly started?: TurnOptions;
  readonly channelName?: string;
  /** Settings of the thread at the start of the turn, and their changes during the turn. */
  readonly config?: ThreadConfig;
  readonly later?: ThreadConfig;
}

/** Runs a turn to a call of a tool that needs approval, then continues it in a process with other settings. */
async function changed(
  t: Test,
  first: Partial<RuntimeOptions>,
  second: Partial<RuntimeOptions>,
  { started, channelName, config, later }: Changed = {},
) {
  const directory = temporaryDirectory(t);
  const store = openStore(directory);
  const asked = Promise.withResolvers<void>();
  const { runtime } = service(
    scripted(async function* () {
      asked.resolve();
      yield* [];
      await dead;
    }),
    { store: store.threads, ...first },
  );
  const { thread } = runtime.threads.start({ config, ...(channelName && { identity: { channelName } }) });
  runtime.turns.start(thread.id, text('x'), undefined, started).begin();
  await asked.promise;
  if (later) runtime.threads.updateConfig(thread.id, later);
  store.close();
  const next = openStore(directory);
  t.teardown(() => next.close());
  let written = 0;
  const write = tool({
    name: 'Write',
    needsApproval: true,
    run: () => {
      written += 1;
      return { text: 'written', isError: false };
    },
  });
  const requests: ModelRequest[] = [];
  const { runtime: following } = service(
    scripted(async function* (request) {
      requests.push({ ...request, messages: [...request.messages] });
      yield hasResult(request) ? say('done') : call('c1', 'Write');
    }),
    { store: next.threads, tools: () => [write], ...second },
  );
  const hear = listening();
  following.threads.subscribe(thread.id, (event) => {
    hear.listener(event);
    if (event.method === 'item/approval/request') accept(following, thread.id);
  });
  following.resume();
  const run = following.turns.running(thread.id);
  const turn = run ? await run.ended : following.threads.read(thread.id, { includeTurns: true }).turns?.[0];
  const questions = hear.events.filter(({ method }) => method === 'item/approval/request').length;
  return { turn, written, questions, requests };
}

t.test('a turn continues with its own policy, or with a current one that has become stricter', async (t) => {
  const policy = (approvalPolicy: ApprovalPolicy, apiApprovalPolicy?: ApprovalPolicy) => ({
    settings: { ...settings, approvalPolicy, ...(apiApprovalPolicy && { apiApprovalPolicy }) },
  });
  const free = { started: { approvalPolicy: 'autoApprove' } } as const;
  const same = await changed(t, {}, {}, free);
  t.match(same, { turn: { status: 'completed' }, written: 1, questions: 0 }, 'control: the settings are the same');
  const refused = await changed(t, {}, policy('interrupt'), free);
  t.match(refused, { turn: { status: 'completed' }, written: 0, questions: 0 });
  const asked = await changed(t, policy('autoApprove'), policy('default'));
  t.match(asked, { turn: { status: 'completed' }, written: 1, questions: 1 });
  const config = { approvalPolicy: 'autoApprove' } as const;
  const inThread = await changed(t, policy('autoApprove'), policy('interrupt'), { config });
  t.match(inThread, { written: 0, questions: 0 }, 'the settings also bind a thread with a policy of its own');
  const ofThread = await changed(t, {}, {}, { config, later: { approvalPolicy: 'interrupt' } });
  t.match(ofThread, { written: 0, questions: 0 }, 'the thread became stricter');
  const looser = await changed(t, policy('interrupt'), policy('autoApprove'));
  t.match(looser, { written: 0, questions: 0 }, 'a looser setting does not apply to the turn');
  const api = { ...free, channelName: 'api' };
  const ofApi = await changed(t, policy('default', 'autoApprove'), policy('default', 'interrupt'), api);
  t.match(ofApi, { written: 0, questions: 0 }, 'the chat API became stricter');
});

t.test('a resumed turn only plans when its thread has been set to plan, and the model is notified', async (t) => {
  const config = { approvalPolicy: 'autoApprove' } as const;
  const control = await changed(t, {}, {}, { config });
  t.match(control, { turn: { status: 'completed' }, written: 1 });
  const { turn, written, requests } = await changed(t, {}, {}, { config, later: { mode: 'plan' } });
  t.match(turn, { status: 'completed' });
  t.equal(written, 0);
  t.match(JSON.stringify(requests[0]?.messages), /In this turn you only plan/);
  t.equal(JSON.stringify(requests.at(-1)?.messages).split('In this turn you only plan').length, 2);
});

t.test('a turn whose workspace has become restricted fails with the reason and the remedy', async (t) => {
  const { turn, written } = await changed(t, { isTrusted: true }, { isTrusted: false });
  t.match(turn, {
    status: 'failed',
    error: { code: 'resumeFailed', message: /trust in the workspace was withdrawn.*oratorio trust \/work/ },
  });
  t.equal(written, 0);
  const restricted = await changed(t, { isTrusted: false }, { isTrusted: false });
  t.match(restricted, { turn: { status: 'completed' }, written: 1 }, 'control: it was restricted before');
});

t.test(
  'the recorded end of a process is the end of its last call when the call ended after the saved step',
  async (t) => {
    const { next, change, threadId, turnId } = await left(t);
    const hour = 3_600_000;
    change((facts) => JSON.stringify({ ...facts, savedAt: new Date(Date.now() - 3 * hour).toISOString() }));
    const { runtime, close, threads } = next({}, () => dead);
    const ear = listening();
    runtime.threads.subscribe(threadId, ear.listener);
    const { params } = await ear.until('system/event');
    t.match(params, { kind: 'turnResumed' });
    t.ok(Number(params.awayMs) < hour, `${params.awayMs} ms`);
    t.ok(threads.turnActors.calls(threadId, turnId).size > 0, 'control: the call is stored');
    close();
  },
);

t.test('a resumed turn waits for its tool servers, and the model gets the names of the missing ones', async (t) => {
  const ready = Promise.withResolvers<readonly string[]>();
  let isReady = false;
  setTimeout(() => {
    isReady = true;
    ready.resolve(['tickets']);
  }, 20);
  const late = tool({ name: 'Late', isReadOnly: true });
  const { turn, requests } = await changed(
    t,
    {},
    {
      toolServers: () => ready.promise,
      tools: () => (isReady ? [late] : []),
    },
  );
  t.match(turn, { status: 'completed' });
  t.match(requests[0]?.tools, [{ name: 'Late' }]);
  t.match(JSON.stringify(requests[0]?.messages), /MCP servers without tools since the restart: tickets\./);
});

t.test('an interrupted hook can still block the input that steers a turn', async (t) => {
  const directory = temporaryDirectory(t);
  const store = openStore(directory);
  const gate = Promise.withResolvers<void>();
  const inHook = Promise.withResolvers<void>();
  const hooksOf = (onSteered: () => Promise<unknown>) =>
    ({
      has: (event: string) => event === 'UserPromptSubmit',
      run: async ({ prompt }: { readonly prompt: string }) =>
        prompt === 'and in red' ? await onSteered() : { context: [], reasons: [], failures: [] },
    }) as unknown as NonNullable<RuntimeOptions['hooks']>;
  const { runtime } = service(
    scripted(async function* () {
      yield say('blue');
      await gate.promise;
    }),
    {
      store: store.threads,
      hooks: hooksOf(() => {
        inHook.resolve();
        return dead;
      }),
    },
  );
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  await ear.until('item/agentMessage/delta');
  runtime.turns.steer(thread.id, turn.id, { input: text('and in red') });
  gate.resolve();
  await inHook.promise;
  // The commit of the input.
  await ear.until('item/completed', 3);
  store.close();
  const hooks = hooksOf(async () => ({ context: [], reasons: ['no red'], failures: [] }));
  const { requests, ended } = await resumed(t, { directory, threadId: thread.id, answer: 'done', hooks });
  t.match(ended, { status: 'completed' });
  t.match(
    JSON.stringify(ended?.items),
    /and in red.*A hook blocked the prompt: no red/,
    'control: the input is stored',
  );
  t.equal(requests.length, 1);
  t.notMatch(JSON.stringify(requests[0]?.messages), /and in red/);
});
