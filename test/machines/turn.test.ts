import t from 'tap';
import { resumedDelegationOf, resumedStateOf, resumedStates, savedTurnOf, turnMachine } from '../../machines/index.ts';
import { flush, open, type Walk, walkEvery } from './harness.ts';
import {
  activeStates,
  answerOf,
  approvalTimeoutMs,
  cancelGraceMs,
  checkOf,
  cut,
  maxQuotaWaitMs,
  refusedAt,
  refusedPart,
  rejected,
  resetMs,
  savedTurn,
  World as TurnWorld,
  to,
  tokensOf,
  tooLong,
  usedUpBudget,
  usedUpQuota,
  type World,
  workingStates,
  worldFor,
} from './turn-world.ts';

const failure = { code: 'upstreamRejected', message: 'no such model' };
const usedUpFailure = { code: 'upstreamRateLimited', message: 'used up', isRetryable: true };
const diskFull = { type: 'STORAGE.FAILED', message: 'The disk is full.' } as const;

/** Leads a turn to `storing` with this outcome. */
const toStoring = {
  completed: to.storing,
  async failed(world: World) {
    open(world.prepare).fail(rejected);
    await flush();
  },
  async cancelled(world: World) {
    await to.cancelling(world);
    open(world.settle).answer();
    await flush();
  },
};

const interrupts: Walk<World>[] = workingStates.map((state) => ({
  takes: 'working INTERRUPT → cancelling',
  from: state,
  world: () => worldFor(state),
  proves: 'an interrupt aborts the work and names its source; the turn has not ended yet',
  given: to[state],
  when: (world) => world.send({ type: 'INTERRUPT', by: 'shutdown' }),
  shows: (t, world) => {
    t.same([world.value, world.context.interruptedBy], ['cancelling', 'shutdown']);
    t.match(world.state, { status: 'running', isInterrupted: true, end: undefined });
    t.same([world.running, world.settle.length], [1, 1], 'only the wait for the aborted work is left');
    t.notOk(world.kinds.includes('ended'));
  },
}));

const storageFailures: Walk<World>[] = activeStates.map((state) => ({
  takes: '(any) STORAGE.FAILED → failed',
  from: state,
  world: () => worldFor(state),
  proves: 'a failed write aborts the work and fails the turn, whose end is not stored',
  given: to[state],
  when: (world) => world.send(diskFull),
  shows: (t, world) => {
    const error = { code: 'storageFailed', message: 'The disk is full.' };
    t.same(world.state.end, { status: 'failed', error });
    t.same(world.emitted.at(-1), { type: 'turn.ended', isStored: false });
    t.equal(world.running, 0);
  },
}));

/** Ends the tools that run, and leads to the tools of the next answer. */
async function runAgain(world: World, isCut: boolean): Promise<void> {
  open(world.runTools).answer({ repeated: null, isCut });
  await flush();
  open(world.check).answer(checkOf());
  await flush();
  open(world.infer).answer(answerOf({ calls: 1 }));
  await flush();
  open(world.review).answer({ pending: [] });
  await flush();
  open(world.secure).answer();
  await flush();
}

const works = [
  ['resuming', 'resume'],
  ['preparing', 'prepare'],
  ['checking', 'check'],
  ['compacting', 'compact'],
  ['fallingBack', 'fallBack'],
  ['inferring', 'infer'],
  ['reviewing', 'review'],
  ['securing', 'secure'],
  ['runningTools', 'runTools'],
  ['checkingEnd', 'checkEnd'],
  ['scheduled', 'awaitReset'],
  ['delegating', 'delegate'],
] as const;
const failures: Walk<World>[] = works.map(([state, work]) => ({
  takes: '(any) error(*) → storing',
  from: state,
  world: () => worldFor(state),
  proves: 'an error of the work fails the turn, and its end is to be stored',
  given: to[state],
  when: (world) => open<unknown, unknown>(world[work]).fail(rejected),
  shows: (t, world) => {
    t.same(world.state.end, { status: 'failed', error: failure });
    t.same(world.emitted.at(-1), { type: 'turn.ending' });
  },
}));

const ends: Walk<World>[] = [
  ['completed', ' [isCompleted]'] as const,
  ['failed', ' [isFailed]'] as const,
  ['cancelled', ''] as const,
].map(([outcome, guard]) => ({
  takes: `storing END.STORED${guard} → ${outcome}`,
  proves: `a stored end of a ${outcome} turn is published`,
  given: toStoring[outcome],
  when: (world) => world.send({ type: 'END.STORED' }),
  shows: (t, world) => {
    t.same([world.state.status, world.actor.getSnapshot().status], [outcome, 'done']);
    t.same(world.emitted.slice(-2), [{ type: 'turn.ending' }, { type: 'turn.ended', isStored: true }]);
  },
}));

const tokens: Walk<World>[] = activeStates.map((state) => ({
  takes: '(any) TOKENS.USED → ∅',
  from: state,
  world: () => worldFor(state),
  proves: 'the tokens of a request or of an external agent are added',
  given: to[state],
  when: (world) => world.send(usage),
  shows: (t, world) => t.same(world.state.tokens, usage.tokens),
}));

const usage = { type: 'TOKENS.USED', tokens: tokensOf(3, 5, 0.25) } as const;

const costOf = (costUsd: number | null) => ({ type: 'TOKENS.USED', tokens: tokensOf(0, 0, costUsd) }) as const;

const costs: Walk<World>[] = activeStates.map((state) => ({
  takes: '(any) TOKENS.USED → ∅',
  world: () => worldFor(state),
  from: `${state}, without tokens`,
  proves: 'the cost of a summary or a sub-agent is added; an unknown one makes the sum unknown',
  given: to[state],
  when: (world) => {
    world.send(costOf(0.5));
    world.send(costOf(0.25));
  },
  shows: (t, world) => {
    t.equal(world.state.tokens.costUsd, 0.75);
    world.send(costOf(null));
    world.send(costOf(1));
    t.equal(world.state.tokens.costUsd, null);
  },
}));

/** Requests to a model: for the answer, and for a summary. */
const requests: Walk<World>[] = (
  [
    ['inferring', 'infer'],
    ['compacting', 'compact'],
  ] as const
).flatMap(([state, work]): Walk<World>[] => [
  {
    takes: 'working.requesting error(*) [canRetry] → working.retrying',
    from: state,
    proves: 'a failure that passes is reported with the pause before the repetition',
    world: () => new TurnWorld({ maxRetries: 2, fallbackModels: 1 }),
    given: to[state],
    when: (world) => open<unknown, unknown>(world[work]).fail(cut),
    shows: (t, world) => {
      const { retryMs, failedRequests } = world.context.patience;
      t.ok(retryMs >= 375 && retryMs <= 500, `the first pause is ${retryMs} ms`);
      t.same(world.emitted.at(-1), { type: 'turn.retrying', attempt: 1, waitMs: retryMs, reason: 'broken off' });
      t.same([failedRequests, world.running], [1, 0]);
    },
  },
  {
    takes: 'working.requesting error(*) [canLeaveOut] → working.checking',
    from: state,
    proves: 'a request is repeated without its refused part at once, also where no repetition is allowed',
    given: to[state],
    when: (world) => open<unknown, unknown>(world[work]).fail(refusedPart),
    shows: (t, world) => {
      const report = { type: 'turn.leavingOut', leftOut: 'one picture', reason: 'no such picture' };
      t.same(world.emitted.at(-1), report);
      t.same([world.value, world.context.patience.omissions], ['checking', 1]);
    },
  },
  {
    takes: 'working.requesting error(*) [canFallBack] → working.fallingBack',
    from: state,
    proves: 'a failure that does not pass is left to the next model',
    world: () => worldFor('fallingBack'),
    given: to[state],
    when: (world) => open<unknown, unknown>(world[work]).fail(rejected),
    shows: (t, world) => {
      t.same(world.emitted.at(-1), { type: 'turn.fallingBack', index: 0, reason: 'no such model' });
      t.equal(world.fallBack.length, 1);
    },
  },
]);

/** Turns that their process left, and the state in which they continue. */
const resumptions: Walk<World>[] = [
  {
    takes: 'working.beginning always [isResumed] → working.resuming',
    proves: 'a turn of an earlier process restores its conversation first, with its counts',
    world: () => new TurnWorld({ resumed: savedTurn('inferring', { tokens: tokensOf(7, 2) }) }),
    isFirst: true,
    given: to.resuming,
    when: () => undefined,
    shows: (t, world) => {
      t.same([world.resume.length, world.prepare.length], [1, 0]);
      t.match(world.context, { requests: 2, rounds: 1, tokens: { inputTokens: 7 }, pending: [], isStored: false });
    },
  },
  {
    takes: 'working.beginning always → working.preparing',
    proves: 'a new turn is prepared',
    isFirst: true,
    given: to.preparing,
    when: () => undefined,
    shows: (t, world) => t.same([world.resume.length, world.prepare.length], [0, 1]),
  },
  {
    takes: 'working.resuming done(resume) [continuesIn] → storing',
    proves: 'an interrupt before the end of the process counts',
    world: () => new TurnWorld({ resumed: savedTurn('cancelling', { interruptedBy: 'user' }) }),
    given: to.resuming,
    when: (world) => open(world.resume).answer({ next: 'storing' }),
    shows: (t, world) => t.same(world.state.end, { status: 'cancelled', interruptedBy: 'user' }),
  },
  ...(['reviewing', 'checkingEnd', 'concluding'] as const).map(
    (next): Walk<World> => ({
      takes: `working.resuming done(resume) [continuesIn] → working.${next}`,
      proves: `the turn continues in ${next}`,
      world: () => worldFor('resuming'),
      given: to.resuming,
      when: (world) => open(world.resume).answer({ next }),
      shows: (t, world) => t.equal(world.value, next),
    }),
  ),
  {
    takes: 'working done(*) [isDelegated] → working.securing',
    proves: 'an external agent continues the turn when the files are saved',
    world: () => new TurnWorld({ isDelegated: true, resumed: savedTurn('inferring') }),
    given: to.resuming,
    when: (world) => open(world.resume).answer({ next: 'securing' }),
    shows: (t, world) => t.same([world.value, world.secure.length], ['securing', 1]),
  },
  {
    takes: 'working done(*) → working.checking',
    proves: 'the request is repeated after a check',
    world: () => worldFor('resuming'),
    given: to.resuming,
    when: (world) => open(world.resume).answer({ next: 'checking' }),
    shows: (t, world) => t.same([world.check.length, world.context.rounds], [1, 1]),
  },
];

t.test('a decided end of a resumed turn is stored unchanged', async (t) => {
  const world = new TurnWorld({ resumed: savedTurn('storing', { outcome: 'completed', finish: 'length' }) });
  open(world.resume).answer({ next: 'storing' });
  await flush();
  t.same(world.state.end, { status: 'completed', finishReason: 'length' });
});

t.test('a turn that was not prepared is prepared again', (t) => {
  for (const resumed of [savedTurn('preparing'), { state: 'beginning', context: null }]) {
    t.equal(new TurnWorld({ resumed }).value, 'preparing');
  }
  t.end();
});

/** Names of the saved states, but not of those in which an external agent works. */
function leavesOf(states: typeof turnMachine.root.states): string[] {
  return Object.values(states).flatMap(({ key, states: inner }) => {
    if (key === 'delegating') return [];
    if (key === 'waitingForQuota') return [key];
    return Object.keys(inner).length > 0 ? leavesOf(inner) : [key];
  });
}
const leafStates = leavesOf(turnMachine.root.states);

t.test('every state of the machine is saved, and has a state in which it continues', (t) => {
  const restored = new Set(['beginning', 'preparing', 'resuming', 'completed', 'failed', 'cancelled']);
  for (const state of leafStates) {
    if (restored.has(state)) continue;
    t.ok(state in resumedStates, state);
  }
  t.equal(resumedStateOf('a state of a later version', true), 'reviewing', 'open calls count more than the state');
  t.equal(resumedStateOf('inferring', true), 'reviewing');
  t.equal(resumedDelegationOf('delegating'), 'securing');
  t.equal(resumedDelegationOf('cancelling'), 'storing', 'an interrupted agent does not work again');
  t.equal(resumedStateOf('concluding', true), 'concluding', 'a turn at its limit runs no call');
  t.end();
});

t.test('a state of the turn is saved until it is restored', async (t) => {
  const world = new TurnWorld();
  await to.reviewing(world);
  t.match(savedTurnOf(world.actor.getSnapshot()), { state: 'reviewing', context: { rounds: 1, requests: 1 } });
  t.notOk('threadId' in (savedTurnOf(world.actor.getSnapshot())?.context ?? {}));
  t.equal(savedTurnOf(worldFor('resuming').actor.getSnapshot()), undefined);
});

/** Wait until the stated reset, as actors and clients learn of it. */
const wholeWait = { until: refusedAt + resetMs, pauseMs: resetMs, isKnown: true, reason: 'used up' };

/** A turn whose process ended while it waited for a quota. */
function restoredWait(): TurnWorld {
  const resumed = savedTurn('waitingForQuota', { failure: { ...usedUpFailure, resetMs } });
  const { context } = resumed;
  const patience = context && { ...context.patience, quotaUntil: 77, quotaWaits: 1 };
  return new TurnWorld({
    maxQuotaWaitMs,
    resumed: { ...resumed, context: context && patience ? { ...context, patience } : null },
  });
}

const walks: Walk<World>[] = [
  ...resumptions,
  ...interrupts,
  ...storageFailures,
  ...failures,
  ...ends,
  ...tokens,
  ...costs,
  ...requests,
  {
    takes: 'working done(*) [isDelegated] → working.securing',
    proves: 'the files are saved before an agent of another maker begins: it may change any of them',
    world: () => worldFor('delegating'),
    given: to.preparing,
    when: (world) => open(world.prepare).answer(),
    shows: (t, world) => t.same([world.secure.length, world.check.length], [1, 0]),
  },
  {
    takes: 'working.securing done(secure) [isDelegated] → working.delegating',
    proves: 'the agent begins once the files are saved',
    world: () => worldFor('delegating'),
    given: async (world) => {
      open(world.prepare).answer();
      await flush();
    },
    when: (world) => open(world.secure).answer(),
    shows: (t, world) => t.same([world.delegate.length, world.runTools.length], [1, 0]),
  },
  {
    takes: 'working.delegating done(delegate) → storing',
    proves: 'the end of the agent is the end of the turn',
    world: () => worldFor('delegating'),
    given: to.delegating,
    when: (world) => open(world.delegate).answer({ isCancelled: false, finish: 'length' }),
    shows: (t, world) => t.match(world.state.end, { status: 'completed', finishReason: 'length' }),
  },
  {
    takes: 'working.delegating done(delegate) → storing',
    proves: 'an agent that ends its turn as cancelled, as some do after a refusal, cancels ours',
    world: () => worldFor('delegating'),
    given: to.delegating,
    when: (world) => open(world.delegate).answer({ isCancelled: true, finish: 'stop' }),
    shows: (t, world) => t.match(world.state.end, { status: 'cancelled', interruptedBy: 'approval' }),
  },
  {
    takes: 'working.delegating APPROVAL.NEEDED → working.delegating.asking',
    proves: 'a question of the agent makes the turn wait for a person, while the agent may work on',
    world: () => worldFor('delegating'),
    given: to.delegating,
    when: (world) => world.send({ type: 'APPROVAL.NEEDED', requestId: 'one' }),
    shows: (t, world) => {
      t.equal(world.state.status, 'waitingApproval');
      t.same(world.context.pending, ['one']);
      t.same(world.running, 1);
    },
  },
  {
    takes: 'working DECIDED → ∅',
    proves: 'a decision removes its approval; the others stay pending',
    world: () => worldFor('asking'),
    given: async (world) => {
      await to.asking(world);
      world.send({ type: 'APPROVAL.NEEDED', requestId: 'two' });
    },
    when: (world) => world.send({ type: 'DECIDED', requestId: 'two' }),
    shows: (t, world) => t.same(world.context.pending, ['one']),
  },
  {
    takes: 'working.delegating.asking always [areAllDecided] → working.delegating.busy',
    proves: 'the last decision lets the turn go on',
    world: () => worldFor('asking'),
    given: to.asking,
    when: (world) => world.send({ type: 'DECIDED', requestId: 'one' }),
    shows: (t, world) => {
      t.equal(world.state.status, 'running');
      t.same(world.kinds.slice(-2), ['waiting', 'resumed']);
    },
  },
  {
    takes: 'working.delegating.asking after(approvalTimeout) → working.delegating.busy',
    proves: 'a question without an answer is declined, and the agent goes on',
    world: () => worldFor('asking'),
    given: to.asking,
    when: (world) => world.clock.increment(approvalTimeoutMs),
    shows: (t, world) => {
      t.match(world.emitted.at(-1), { type: 'turn.approvalsExpired', requestIds: ['one'] });
      t.same(world.context.pending, []);
    },
  },
  {
    takes: 'working done(*) → working.checking',
    proves: 'a prepared turn is checked before its first request',
    given: to.preparing,
    when: (world) => open(world.prepare).answer(),
    shows: (t, world) => t.same([world.check.length, world.infer.length], [1, 0]),
  },
  {
    takes: 'working.checking done(check) [isOverBudget] → working.held.budgetReached',
    proves: 'a used-up budget stops the turn before the request, whatever the size of the conversation',
    given: to.checking,
    when: (world) => open(world.check).answer(checkOf({ isTooLong: true, usedUpBudget })),
    shows: (t, world) => {
      t.same(world.emitted, [{ type: 'turn.budgetReached', budget: usedUpBudget }]);
      t.same([world.state.status, world.state.end, world.running], ['waitingApproval', undefined, 0]);
    },
  },
  {
    takes: 'working.checking done(check) [isTooLong] → working.requesting.compacting',
    proves: 'a conversation that exceeds the context window is compacted before the request',
    given: to.checking,
    when: (world) => open(world.check).answer(checkOf({ isTooLong: true })),
    shows: (t, world) =>
      t.same([world.context.patience.compactions, world.compact.length, world.infer.length], [1, 1, 0]),
  },
  {
    takes: 'working.checking done(check) → working.requesting.inferring',
    proves: 'a checked turn sends its request',
    given: to.checking,
    when: (world) => open(world.check).answer(checkOf()),
    shows: (t, world) =>
      t.same(open(world.infer).input, { threadId: 'thread', turnId: 'turn_001', isFirstRequest: true, retries: 0 }),
  },
  {
    takes: 'working.held.budgetReached BUDGET.RAISED → working.checking',
    proves: 'a raised budget is checked again',
    given: to.budgetReached,
    when: (world) => world.send({ type: 'BUDGET.RAISED' }),
    shows: (t, world) => {
      t.same([world.state.status, world.check.length], ['running', 2]);
      t.same(world.kinds, ['budgetReached', 'resumed']);
    },
  },
  {
    takes: 'working.held always [isHoldRefused] → storing',
    proves: 'a budget that is not raised fails the turn',
    given: to.budgetReached,
    when: (world) => world.send({ type: 'HOLD.ANSWERED', answer: 'refused' }),
    shows: (t, world) =>
      t.same(world.state.end, { status: 'failed', error: { code: 'budgetReached', message: usedUpBudget } }),
  },
  {
    takes: 'working.held after(holdTimeout) → storing',
    proves: 'a question without an answer fails the turn after the timeout, not before',
    given: async (world) => {
      await to.budgetReached(world);
      world.clock.increment(approvalTimeoutMs - 1);
    },
    when: (world) => world.clock.increment(1),
    shows: (t, world) => {
      t.match(world.state.end, { status: 'failed', error: { code: 'budgetReached' } });
      t.ok(world.kinds.includes('holdExpired'));
    },
  },
  {
    takes: '(any) error(*) [canWaitForQuota] → working.held.waitingForQuota',
    proves: 'without repetition or fallback, a used-up quota holds the turn, without a request, until the stated reset',
    world: () => worldFor('confirming'),
    given: to.inferring,
    when: (world) => open(world.infer).fail(usedUpQuota),
    shows: (t, world) => {
      t.same([world.value, world.state.status, world.running], ['confirming', 'waitingQuota', 0]);
      t.same(world.emitted.slice(-2), [
        { type: 'turn.quotaReached', ...wholeWait },
        { type: 'turn.quotaAsked', ...wholeWait },
      ]);
    },
  },
  {
    takes: '(any) error(*) [canWaitForQuota] → working.held.waitingForQuota',
    proves: 'a quota of an external agent holds the turn',
    world: () => new TurnWorld({ isDelegated: true, maxQuotaWaitMs }),
    given: to.delegating,
    when: (world) => open(world.delegate).fail(usedUpQuota),
    shows: (t, world) => t.same([world.value, world.running], ['confirming', 0]),
  },
  {
    takes:
      'working.held.waitingForQuota.confirming always [isQuotaWaitAccepted] → working.held.waitingForQuota.scheduled',
    proves: 'with a setting that waits without an answer, no user is asked',
    world: () => new TurnWorld({ maxQuotaWaitMs, asksForQuota: false }),
    given: to.inferring,
    when: (world) => open(world.infer).fail(usedUpQuota),
    shows: (t, world) => {
      t.match(open(world.awaitReset).input, wholeWait);
      t.same(world.emitted.at(-1), { type: 'turn.quotaReached', ...wholeWait });
    },
  },
  {
    takes:
      'working.held.waitingForQuota.confirming always [isQuotaWaitAccepted] → working.held.waitingForQuota.scheduled',
    proves: 'a wait that was hurried during the restoration ends at once, without a question',
    world: restoredWait,
    given: async (world) => world.send({ type: 'HOLD.ANSWERED', answer: 'hurried' }),
    when: (world) => open(world.resume).answer({ next: 'waitingForQuota' }),
    shows: (t, world) => {
      t.match(open(world.awaitReset).input, { until: 0, pauseMs: 0 });
      t.same(world.emitted, []);
    },
  },
  {
    takes: 'working.resuming done(resume) [continuesIn] → working.held.waitingForQuota',
    proves: 'a resumed turn asks again, without a second report, and waits until the time that its process has saved',
    world: restoredWait,
    given: to.resuming,
    when: (world) => open(world.resume).answer({ next: 'waitingForQuota' }),
    shows: (t, world) => {
      t.same(world.emitted, [{ type: 'turn.quotaAsked', ...wholeWait, until: 77, pauseMs: 77 }]);
      t.match(savedTurnOf(world.actor.getSnapshot()), {
        state: 'waitingForQuota',
        context: { patience: { quotaUntil: 77 } },
      });
    },
  },
  {
    takes: 'working HOLD.ANSWERED → ∅',
    proves: 'an answer during the restoration counts at its end',
    world: restoredWait,
    given: to.resuming,
    when: (world) => world.send({ type: 'HOLD.ANSWERED', answer: 'accepted' }),
    shows: (t, world) => t.match(world.context.patience, { quotaAnswer: 'accepted', quotaUntil: 77 }),
  },
  {
    takes: 'working HOLD.ANSWERED → ∅',
    proves: 'a wait that is hurried during the restoration ends at once',
    world: restoredWait,
    given: to.resuming,
    when: (world) => world.send({ type: 'HOLD.ANSWERED', answer: 'hurried' }),
    shows: (t, world) => t.match(world.context.patience, { quotaAnswer: 'accepted', quotaUntil: 0 }),
  },
  {
    takes: 'working HOLD.ANSWERED → ∅',
    proves: 'a wait that is ended during the restoration is not confirmed',
    world: restoredWait,
    given: to.resuming,
    when: (world) => world.send({ type: 'HOLD.ANSWERED', answer: 'refused' }),
    shows: (t, world) => t.same([world.value, world.context.patience.quotaAnswer], ['resuming', 'refused']),
  },
  {
    takes: 'working.held always [isHoldRefused] → storing',
    proves: 'a wait that was ended during the restoration fails the turn with the refusal',
    world: restoredWait,
    given: async (world) => world.send({ type: 'HOLD.ANSWERED', answer: 'refused' }),
    when: (world) => open(world.resume).answer({ next: 'waitingForQuota' }),
    shows: (t, world) => {
      t.match(world.state.end, { status: 'failed', error: { code: 'upstreamRateLimited', retryAfterMs: resetMs } });
      t.same(
        world.kinds.filter((kind) => kind.startsWith('quota')),
        [],
      );
    },
  },
  {
    takes:
      'working.held.waitingForQuota.confirming always [isQuotaWaitAccepted] → working.held.waitingForQuota.scheduled',
    proves: 'an accepted wait lasts until the reset',
    world: () => worldFor('confirming'),
    given: to.confirming,
    when: (world) => world.send({ type: 'HOLD.ANSWERED', answer: 'accepted' }),
    shows: (t, world) => t.match([world.value, open(world.awaitReset).input], ['scheduled', wholeWait]),
  },
  {
    takes: 'working.held.waitingForQuota.scheduled HOLD.ANSWERED [isHurried] → working.held.waitingForQuota.scheduled',
    proves: 'a user hurries the wait: one wait is left',
    world: () => worldFor('scheduled'),
    given: to.scheduled,
    when: (world) => world.send({ type: 'HOLD.ANSWERED', answer: 'hurried' }),
    shows: (t, world) => {
      t.same([world.running, world.awaitReset.length, world.context.patience.quotaUntil], [1, 2, 0]);
      t.match(open(world.awaitReset).input, { until: 0 });
    },
  },
  {
    takes: 'working done(*) → working.checking',
    proves: 'the request is repeated once after the reset',
    world: () => worldFor('scheduled'),
    given: to.scheduled,
    when: (world) => open(world.awaitReset).answer(),
    shows: (t, world) => {
      t.same([world.check.length, world.infer.length, world.state.status], [2, 1, 'running']);
      t.equal(world.kinds.at(-1), 'resumed');
    },
  },
  {
    takes: 'working done(*) [isDelegated] → working.securing',
    proves: 'an external agent gets its turn again after the reset',
    world: () => new TurnWorld({ isDelegated: true, maxQuotaWaitMs }),
    given: async (world) => {
      await to.delegating(world);
      open(world.delegate).fail(usedUpQuota);
      await flush();
      world.send({ type: 'HOLD.ANSWERED', answer: 'accepted' });
      await flush();
    },
    when: (world) => open(world.awaitReset).answer(),
    shows: (t, world) => t.same([world.value, world.secure.length], ['securing', 2]),
  },
  {
    takes: 'working.held always [isHoldRefused] → storing',
    proves: 'a wait that a user ends fails the turn with the refusal and its time',
    world: () => worldFor('scheduled'),
    given: to.scheduled,
    when: (world) => world.send({ type: 'HOLD.ANSWERED', answer: 'refused' }),
    shows: (t, world) => {
      const error = { code: 'upstreamRateLimited', message: 'used up', retryAfterMs: resetMs };
      t.same([world.running, world.state.end], [0, { status: 'failed', error }]);
    },
  },
  {
    takes: 'working.held after(holdTimeout) → storing',
    proves: 'a wait for a quota that no user confirms ends after the longest wait, not before',
    world: () => worldFor('confirming'),
    given: async (world) => {
      await to.confirming(world);
      world.clock.increment(maxQuotaWaitMs - 1);
    },
    when: (world) => world.clock.increment(1),
    shows: (t, world) => t.match(world.state.end, { status: 'failed', error: { code: 'upstreamRateLimited' } }),
  },
  {
    takes: 'working.retrying after(retryPause) → working.checking',
    proves: 'the whole request is repeated after the pause, not before',
    world: () => worldFor('retrying'),
    given: async (world) => {
      await to.retrying(world);
      world.clock.increment(world.context.patience.retryMs - 1);
    },
    when: (world) => world.clock.increment(1),
    shows: (t, world) => t.same([world.check.length, world.infer.length], [2, 1]),
  },
  {
    takes: 'working done(*) → working.checking',
    proves: 'the next model begins with a check and with its own repetitions',
    world: () => worldFor('fallingBack'),
    given: to.fallingBack,
    when: (world) => open(world.fallBack).answer(),
    shows: (t, world) => {
      const { fallbacks, failedRequests, compactions } = world.context.patience;
      t.same([fallbacks, failedRequests, compactions, world.check.length], [1, 0, 0, 2]);
    },
  },
  {
    takes: 'working.requesting error(*) [canCompactAfter] → working.requesting.compacting',
    from: 'compacting',
    proves: 'a summary that is refused as too long is tried again, with less to read',
    given: to.compacting,
    when: (world) => open(world.compact).fail(tooLong),
    shows: (t, world) => t.same([world.compact.length, world.context.patience.compactions], [2, 2]),
  },
  {
    takes: 'working.requesting.compacting done(compact) → working.requesting.inferring',
    proves: 'a compacted conversation is sent as the first request',
    given: to.compacting,
    when: (world) => open(world.compact).answer(),
    shows: (t, world) => t.equal(open(world.infer).input.isFirstRequest, true),
  },
  {
    takes: 'working.requesting.inferring done(infer) [reachesRoundLimit] → working.concluding',
    proves: 'calls in the last permitted answer do not run; the model is asked for a last answer',
    world: () => new TurnWorld({ maxRounds: 1 }),
    given: to.inferring,
    when: (world) => open(world.infer).answer(answerOf({ calls: 1 })),
    shows: (t, world) => {
      t.same(world.emitted, [{ type: 'turn.limitReached', rounds: 1 }]);
      t.same([world.value, world.context.requests, world.state.end], ['concluding', 2, undefined]);
      t.same(world.review, []);
    },
  },
  {
    takes: 'working.requesting.inferring done(infer) [hasCalls] → working.reviewing',
    proves: 'calls of the server are reviewed',
    given: to.inferring,
    when: (world) => open(world.infer).answer(answerOf({ calls: 1, clientCalls: 2 })),
    shows: (t, world) => t.same([world.context.rounds, world.context.clientCalls, world.review.length], [1, 2, 1]),
  },
  {
    takes: 'working.requesting.inferring done(infer) [isSteered] → working.checking',
    proves: 'input that arrived during the answer is sent in another request',
    given: to.inferring,
    when: (world) => open(world.infer).answer(answerOf({ isSteered: true })),
    shows: (t, world) => t.same([world.check.length, world.context.rounds, world.context.requests], [2, 1, 1]),
  },
  {
    takes: 'working.requesting.inferring done(infer) → storing',
    proves: 'an answer without calls completes the turn with the reason of the model',
    given: to.inferring,
    when: (world) => open(world.infer).answer(answerOf({ finish: 'contentFilter' })),
    shows: (t, world) => {
      t.same(world.state.end, { status: 'completed', finishReason: 'contentFilter' });
      t.same(world.emitted, [{ type: 'turn.ending' }]);
    },
  },
  {
    takes: 'working.requesting.inferring done(infer) [mustCheckEnd] → working.checkingEnd',
    proves: 'an answer without calls is shown to the hooks of the end before the turn is stored',
    world: () => worldFor('checkingEnd'),
    given: to.inferring,
    when: (world) => open(world.infer).answer(answerOf()),
    shows: (t, world) => {
      t.same([world.checkEnd.length, world.state.end], [1, undefined]);
      t.same(world.emitted, []);
    },
  },
  {
    takes: 'working done(*) → working.checking',
    from: 'checkingEnd',
    proves: 'a turn that is held up continues, and the time is counted',
    world: () => worldFor('checkingEnd'),
    given: to.checkingEnd,
    when: (world) => open(world.checkEnd).answer({ continues: true }),
    shows: (t, world) => t.same([world.check.length, world.context.patience.heldUp], [2, 1]),
  },
  {
    takes: 'working.checkingEnd done(checkEnd) [isUndisputed] → storing',
    proves: 'a turn that nothing holds up completes with the reason of the model',
    world: () => worldFor('checkingEnd'),
    given: to.checkingEnd,
    when: (world) => open(world.checkEnd).answer({ continues: false }),
    shows: (t, world) => t.same(world.state.end, { status: 'completed', finishReason: 'stop' }),
  },
  {
    takes: 'working.requesting error(*) [canCompactAfter] → working.requesting.compacting',
    from: 'inferring',
    proves: 'a request refused as too long is repeated after a compaction',
    given: to.inferring,
    when: (world) => open(world.infer).fail(tooLong),
    shows: (t, world) => t.same([world.state.status, world.compact.length, world.context.rounds], ['running', 1, 0]),
  },
  {
    takes: 'working.reviewing done(review) [needsApproval] → working.awaitingApproval',
    proves: 'calls that nothing decides wait for approval',
    given: to.reviewing,
    when: (world) => open(world.review).answer({ pending: ['one'] }),
    shows: (t, world) => {
      t.same([world.state.status, world.context.pending], ['waitingApproval', ['one']]);
      t.same(world.kinds, ['waiting']);
    },
  },
  {
    takes: 'working.reviewing done(review) → working.securing',
    proves: 'calls that need no approval wait for nothing but the files',
    given: to.reviewing,
    when: (world) => open(world.review).answer({ pending: [] }),
    shows: (t, world) => {
      t.same([world.secure.length, world.runTools.length], [1, 0]);
      t.same(world.emitted, []);
    },
  },
  {
    takes: 'working.securing done(secure) → working.runningTools',
    proves: 'the calls run once the files are saved',
    given: to.securing,
    when: (world) => open(world.secure).answer(),
    shows: (t, world) => t.equal(world.runTools.length, 1),
  },
  {
    takes: 'working DECIDED → ∅',
    proves: 'a decision removes its approval; the others stay pending',
    given: to.awaitingApproval,
    when: (world) => world.send({ type: 'DECIDED', requestId: 'two' }),
    shows: (t, world) => t.same([world.value, world.context.pending], ['awaitingApproval', ['one']]),
  },
  {
    takes: 'working.awaitingApproval always [areAllDecided] → working.securing',
    proves: 'the files are saved after the last decision',
    given: async (world) => {
      await to.awaitingApproval(world);
      world.send({ type: 'DECIDED', requestId: 'two' });
    },
    when: (world) => world.send({ type: 'DECIDED', requestId: 'one' }),
    shows: (t, world) => {
      t.same([world.state.status, world.secure.length], ['running', 1]);
      t.same(world.kinds, ['waiting', 'resumed']);
    },
  },
  {
    takes: 'working.awaitingApproval after(approvalTimeout) → working.securing',
    proves: 'approvals that are pending at the timeout expire, and the calls run without them',
    given: to.awaitingApproval,
    when: (world) => world.clock.increment(approvalTimeoutMs),
    shows: (t, world) => {
      t.same(world.emitted.at(-1), { type: 'turn.approvalsExpired', requestIds: ['one', 'two'] });
      t.same([world.context.pending, world.secure.length], [[], 1]);
    },
  },
  {
    takes: 'working.runningTools done(runTools) [hasClientCalls] → storing',
    proves: 'calls for the client end the turn after those of the server have run',
    given: async (world) => {
      await to.inferring(world);
      open(world.infer).answer(answerOf({ calls: 1, clientCalls: 1, finish: 'toolCalls' }));
      await flush();
      open(world.review).answer({ pending: [] });
      await flush();
      open(world.secure).answer();
      await flush();
    },
    when: (world) => open(world.runTools).answer({ repeated: 'Look', isCut: false }),
    shows: (t, world) => t.same(world.state.end, { status: 'completed', finishReason: 'toolCalls' }),
  },
  {
    takes: 'working.runningTools done(runTools) [areCallsInVain] → working.concluding',
    proves: 'a model that repeats one call in vain is asked for a last answer',
    given: to.runningTools,
    when: (world) => open(world.runTools).answer({ repeated: 'Look', isCut: false }),
    shows: (t, world) => {
      t.same(world.emitted, [{ type: 'turn.stuck', rounds: 1, tool: 'Look' }]);
      t.same([world.value, world.conclude.length], ['concluding', 1]);
    },
  },
  {
    takes: 'working.concluding done(conclude) → storing',
    proves: 'a turn that has reached its limit ends with `length` after its last answer',
    given: to.concluding,
    when: (world) => open(world.conclude).answer(),
    shows: (t, world) => {
      t.same(world.state.end, { status: 'completed', finishReason: 'length' });
      t.same(world.kinds, ['stuck', 'ending']);
    },
  },
  {
    takes: 'working.concluding error(conclude) → storing',
    proves: 'a turn whose last request fails is completed, and says why it has no last answer',
    given: to.concluding,
    when: (world) => open(world.conclude).fail(rejected),
    shows: (t, world) => {
      t.same(world.state.end, { status: 'completed', finishReason: 'length' });
      t.same(world.emitted.slice(1), [{ type: 'turn.notConcluded', reason: 'no such model' }, { type: 'turn.ending' }]);
    },
  },
  {
    takes: 'working.requesting.inferring done(infer) [mustAskAgain] → working.retrying',
    proves: 'an answer without text and call is asked for again after a pause, and uses up no round',
    world: () => new TurnWorld({ maxRetries: 8 }),
    given: to.inferring,
    when: (world) => open(world.infer).answer(answerOf({ flaw: 'empty' })),
    shows: (t, world) => {
      const { emptyAnswers, failedRequests } = world.context.patience;
      t.same([emptyAnswers, failedRequests, world.context.rounds], [1, 1, 0]);
      t.same(world.kinds, ['retrying']);
    },
  },
  {
    takes: 'working.requesting.inferring done(infer) [canReplaceSilentModel] → working.fallingBack',
    proves: 'the next model takes over from a silent one',
    world: () => new TurnWorld({ fallbackModels: 1 }),
    given: to.inferring,
    when: (world) => open(world.infer).answer(answerOf({ flaw: 'empty' })),
    shows: (t, world) => t.same(world.kinds, ['fallingBack']),
  },
  {
    takes: 'working.requesting.inferring done(infer) [isWithoutResult] → storing',
    proves: 'a turn without text and call fails with a code of its own',
    given: to.inferring,
    when: (world) => open(world.infer).answer(answerOf({ flaw: 'empty' })),
    shows: (t, world) => t.match(world.state.end, { status: 'failed', error: { code: 'upstreamEmptyAnswer' } }),
  },
  {
    takes: 'working.requesting.inferring done(infer) [mustCorrect] → working.checking',
    proves: 'a model that prints a call is told once',
    given: to.inferring,
    when: (world) => open(world.infer).answer(answerOf({ flaw: 'printedCall' })),
    shows: (t, world) => {
      t.same([world.context.patience.corrections, world.context.rounds], [1, 1]);
      t.same(world.kinds, ['callPrinted']);
    },
  },
  {
    takes: 'working.runningTools done(runTools) → working.checking',
    from: 'runningTools with a cut call',
    proves: 'a call that was cut off is counted, and its result is sent',
    given: to.runningTools,
    when: (world) => open(world.runTools).answer({ repeated: null, isCut: true }),
    shows: (t, world) => t.equal(world.context.patience.cutAnswers, 1),
  },
  {
    takes: 'working.runningTools done(runTools) [areCallsInVain] → working.concluding',
    proves: 'the third cut in a row ends the turn with a last answer',
    given: async (world) => {
      await to.runningTools(world);
      for (let cuts = 0; cuts < 2; cuts += 1) await runAgain(world, true);
    },
    when: (world) => open(world.runTools).answer({ repeated: null, isCut: true }),
    shows: (t, world) => {
      t.same(world.emitted, [{ type: 'turn.cutOff', answers: 3 }]);
      t.equal(world.conclude.length, 1);
    },
  },
  {
    takes: 'working.runningTools done(runTools) → working.checking',
    proves: 'results are sent in the next request, after a check',
    given: to.runningTools,
    when: (world) => open(world.runTools).answer({ repeated: null, isCut: false }),
    shows: (t, world) => t.same([world.check.length, world.infer.length], [2, 1]),
  },
  {
    takes: 'cancelling done(settle) → storing',
    proves: 'the end of an interrupted turn is stored when its work has ended',
    given: to.cancelling,
    when: (world) => open(world.settle).answer(),
    shows: (t, world) => t.same(world.state.end, { status: 'cancelled', interruptedBy: 'user' }),
  },
  {
    takes: '(any) error(*) → storing',
    proves: 'the turn is cancelled also when the wait for its work fails',
    given: to.cancelling,
    when: (world) => open(world.settle).fail(new Error('stuck')),
    shows: (t, world) => t.same(world.state.end, { status: 'cancelled', interruptedBy: 'user' }),
  },
  {
    takes: 'cancelling after(cancelGrace) → storing',
    proves: 'work that does not end is left behind after the grace period, not before',
    given: async (world) => {
      await to.cancelling(world);
      world.clock.increment(cancelGraceMs - 1);
    },
    when: (world) => world.clock.increment(1),
    shows: (t, world) => t.same(world.state.end, { status: 'cancelled', interruptedBy: 'user' }),
  },
];

walkEvery(t, turnMachine, () => new TurnWorld(), walks);

t.test('waits for a quota are bounded together, and grow while the provider refuses', async (t) => {
  /** Refuses each request of a turn. @returns pauses in minutes, and the code of the end */
  const refuse = async (over: object, input: Partial<ConstructorParameters<typeof TurnWorld>[0]> = {}) => {
    const world = new TurnWorld({ maxQuotaWaitMs, asksForQuota: false, ...input });
    const minutes: number[] = [];
    await to.inferring(world);
    for (;;) {
      open(world.infer).fail(Object.assign(new Error('no'), { code: 'upstreamRateLimited', at: 0 }, over));
      await flush();
      if (world.value !== 'scheduled') return [minutes, world.state.end?.status, world.kinds.at(-1)];
      minutes.push(world.context.patience.quotaUntil / 60_000);
      open(world.awaitReset).answer();
      await flush();
      open(world.check).answer(checkOf());
      await flush();
    }
  };
  const hour = 3_600_000;
  const growing = [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60];
  t.same(await refuse({}), [growing, 'failed', 'ending'], 'without a time, for twelve hours at most');
  t.same(await refuse({ resetMs: 0 }), [growing, 'failed', 'ending'], 'a reset in the past');
  t.same(
    await refuse({ resetMs: 5 * hour }),
    [[300, 300], 'failed', 'ending'],
    'a provider that refuses after its reset',
  );
  const [[first, second] = []] = (await refuse({ resetMs: 21_000 })) as [number[]];
  t.same([first, second], [0.35, 2], 'regression: a reset within a minute');
  t.same(await refuse({ resetMs: 8_760 * hour }), [[], 'failed', 'ending'], 'a reset in a year');
  t.same(await refuse({ code: 'upstreamQuotaExceeded' }), [[], 'failed', 'ending'], 'a used-up balance');
  t.same(await refuse({ resetMs: hour }, { maxQuotaWaitMs: 0 }), [[], 'failed', 'ending'], 'a turn that does not wait');
  const [, , next] = await refuse({ resetMs: hour }, { fallbackModels: 1 });
  t.equal(next, 'fallingBack', 'fallback models come first');
});

t.test('an answer that comes before a wait does not count for it', async (t) => {
  const waits = new TurnWorld({ maxQuotaWaitMs });
  await to.inferring(waits);
  waits.send({ type: 'HOLD.ANSWERED', answer: 'refused' });
  open(waits.infer).fail(usedUpQuota);
  await flush();
  t.same([waits.value, waits.kinds.at(-1)], ['confirming', 'quotaAsked'], 'for a quota');
  const budget = worldFor('resuming');
  budget.send({ type: 'HOLD.ANSWERED', answer: 'refused' });
  open(budget.resume).answer({ next: 'checking' });
  await flush();
  open(budget.check).answer(checkOf({ usedUpBudget }));
  await flush();
  t.same([budget.value, budget.kinds], ['budgetReached', ['budgetReached']], 'for a budget');
});

t.test('an answer ends a series of waits', async (t) => {
  const world = worldFor('scheduled');
  await to.scheduled(world);
  open(world.awaitReset).answer();
  await flush();
  open(world.check).answer(checkOf());
  await flush();
  open(world.infer).answer(answerOf({ calls: 1 }));
  await flush();
  t.match(world.context.patience, { quotaWaits: 0, quotaWaitedMs: 0, quotaUntil: 0 });
});

t.test('empty answers are bounded by a quarter of the repetitions', async (t) => {
  for (const [maxRetries, requests] of [
    [0, 1],
    [1, 2],
    [8, 3],
    [20, 6],
  ] as const) {
    const world = new TurnWorld({ maxRetries });
    await to.inferring(world);
    for (let asked = 1; ; asked += 1) {
      open(world.infer).answer(answerOf({ flaw: 'empty' }));
      await flush();
      if (world.value !== 'retrying') {
        t.equal(asked, requests, `${maxRetries} repetitions`);
        break;
      }
      world.clock.increment(world.context.patience.retryMs);
      await flush();
      open(world.check).answer(checkOf());
      await flush();
    }
    t.match(world.state.end, { status: 'failed', error: { code: 'upstreamEmptyAnswer' } });
  }
});

t.test('a turn whose calls were its result ends without text, and reports it', async (t) => {
  const world = new TurnWorld();
  await to.runningTools(world);
  open(world.runTools).answer({ repeated: null, isCut: false });
  await flush();
  open(world.check).answer(checkOf());
  await flush();
  open(world.infer).answer(answerOf({ flaw: 'empty' }));
  await flush();
  t.match(world.state.end, { status: 'completed' });
  t.same(world.kinds, ['endedSilently', 'ending']);
});

t.test('a cut that is followed by a whole call is forgotten', async (t) => {
  const world = new TurnWorld();
  await to.runningTools(world);
  for (const isCut of [true, true, false]) await runAgain(world, isCut);
  t.equal(world.context.patience.cutAnswers, 0);
});
