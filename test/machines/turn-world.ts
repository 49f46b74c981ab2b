/** One turn machine whose actors are answered by the test, on a clock that the test moves. */
import { type Actor, createActor, SimulatedClock } from 'xstate';
import {
  type CheckedEnd,
  type CheckedTurn,
  type Delegated,
  type FallbackInput,
  type Inference,
  type InferenceInput,
  noTokens,
  type QuotaInput,
  type Resumption,
  type ReviewedCalls,
  type SavedTurn,
  type ToolRun,
  type TurnEmitted,
  type TurnEvent,
  type TurnInput,
  type TurnKey,
  type TurnTokens,
  turnMachine,
  turnStateOf,
} from '../../machines/index.ts';
import { pathsOf } from '../../src/telemetry/state-watch.ts';
import { asked, flush, open, type Question, transitionLog, Worlds } from './harness.ts';

export const approvalTimeoutMs = 300_000;
export const cancelGraceMs = 5_000;

export class World {
  readonly taken: string[] = [];
  readonly emitted: TurnEmitted[] = [];
  readonly resume: Question<Resumption, TurnKey>[] = [];
  readonly prepare: Question<void, TurnKey>[] = [];
  readonly check: Question<CheckedTurn, TurnKey>[] = [];
  readonly fallBack: Question<void, FallbackInput>[] = [];
  readonly compact: Question<void, TurnKey>[] = [];
  readonly awaitReset: Question<void, QuotaInput>[] = [];
  readonly infer: Question<Inference, InferenceInput>[] = [];
  readonly review: Question<ReviewedCalls, TurnKey>[] = [];
  readonly secure: Question<void, TurnKey>[] = [];
  readonly runTools: Question<ToolRun, TurnKey>[] = [];
  readonly checkEnd: Question<CheckedEnd, TurnKey>[] = [];
  readonly delegate: Question<Delegated, TurnKey>[] = [];
  readonly conclude: Question<void, TurnKey>[] = [];
  readonly settle: Question<void, TurnKey>[] = [];
  readonly clock = new SimulatedClock();
  readonly actor: Actor<typeof turnMachine>;

  constructor({
    maxRounds = 10,
    maxRetries = 0,
    fallbackModels = 0,
    endChecks = 0,
    isDelegated = false,
    maxQuotaWaitMs = 0,
    asksForQuota = true,
    resumed,
  }: Partial<TurnInput> = {}) {
    this.actor = createActor(fakeTurn, {
      id: 'turn',
      clock: this.clock,
      inspect: transitionLog(this.taken, (actor) => actor.id === 'turn'),
      input: {
        threadId: 'thread',
        turnId: 'turn_001',
        maxRounds,
        maxRetries,
        fallbackModels,
        endChecks,
        isDelegated,
        maxQuotaWaitMs,
        asksForQuota,
        seed: 1,
        resumed,
      },
    });
    worlds.add(this.actor, this);
    this.actor.on('*', (event) => this.emitted.push(event));
    this.actor.start();
  }

  /** An ended turn ignores events. */
  send(event: TurnEvent): void {
    if (this.actor.getSnapshot().status === 'active') this.actor.send(event);
  }

  /** Name of the innermost state. */
  get value(): string {
    const path = pathsOf(this.actor.getSnapshot().value).at(-1) ?? '';
    return path.slice(path.lastIndexOf('.') + 1);
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  /** State for clients. */
  get state() {
    return turnStateOf(this.actor.getSnapshot());
  }

  /** Types of the emitted events, without their prefix. */
  get kinds(): string[] {
    return this.emitted.map(({ type }) => type.replace('turn.', ''));
  }

  /** Number of effects that run. */
  get running(): number {
    const { resume, prepare, check, compact, infer, fallBack, review, secure, runTools, checkEnd } = this;
    const { awaitReset, delegate, conclude, settle } = this;
    const effects = [
      resume,
      prepare,
      check,
      compact,
      infer,
      fallBack,
      review,
      secure,
      runTools,
      checkEnd,
      awaitReset,
      delegate,
      conclude,
      settle,
    ];
    return effects.flatMap((questions) => questions.filter(({ isOpen }) => isOpen)).length;
  }
}

const worlds = new Worlds<World>();
const fakeTurn = turnMachine.provide({
  actors: {
    resume: asked((scope) => worlds.of(scope).resume),
    prepare: asked((scope) => worlds.of(scope).prepare),
    check: asked((scope) => worlds.of(scope).check),
    fallBack: asked((scope) => worlds.of(scope).fallBack),
    compact: asked((scope) => worlds.of(scope).compact),
    awaitReset: asked((scope) => worlds.of(scope).awaitReset),
    infer: asked((scope) => worlds.of(scope).infer),
    review: asked((scope) => worlds.of(scope).review),
    secure: asked((scope) => worlds.of(scope).secure),
    runTools: asked((scope) => worlds.of(scope).runTools),
    checkEnd: asked((scope) => worlds.of(scope).checkEnd),
    delegate: asked((scope) => worlds.of(scope).delegate),
    conclude: asked((scope) => worlds.of(scope).conclude),
    settle: asked((scope) => worlds.of(scope).settle),
  },
});

/** An answer without calls, changed by `over`. */
export const answerOf = (over: Partial<Inference> = {}): Inference => ({
  calls: 0,
  clientCalls: 0,
  isSteered: false,
  finish: 'stop',
  flaw: null,
  ...over,
});

/** A check that finds nothing, changed by `over`. */
export const checkOf = (over: Partial<CheckedTurn> = {}): CheckedTurn => ({
  isTooLong: false,
  usedUpBudget: null,
  ...over,
});

export const tokensOf = (inputTokens: number, outputTokens: number, costUsd: number | null = 0): TurnTokens => ({
  inputTokens,
  outputTokens,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  costUsd,
});

export const usedUpBudget = 'Budget.TurnUsd is used up.';
export const rejected = Object.assign(new Error('no such model'), { code: 'upstreamRejected' });
/** A failure that passes. */
export const cut = Object.assign(new Error('broken off'), { code: 'upstreamProtocol', isRetryable: true });
/** A refusal of a part that the next request leaves out. */
export const refusedPart = Object.assign(new Error('no such picture'), {
  code: 'upstreamRejected',
  leftOut: 'one picture',
});
/** Time of a refusal, and the time until the reset that it states. */
export const refusedAt = 1_000_000;
export const resetMs = 3_600_000;
/** A quota that is used up for an hour. */
export const usedUpQuota = Object.assign(new Error('used up'), {
  ...{ code: 'upstreamRateLimited', isRetryable: true, retryAfterMs: resetMs, resetMs, at: refusedAt },
});
export const maxQuotaWaitMs = 12 * resetMs;
export const tooLong = Object.assign(new Error('too long'), { code: 'contextTooLong' });

/** A turn that its process left in a state, after one answer. */
export const savedTurn = (state: string, over: Partial<SavedTurn['context']> = {}): SavedTurn => ({
  state,
  context: {
    patience: {
      ...{ seed: 1, compactions: 0, omissions: 0, failedRequests: 1, retryMs: 700, fallbacks: 0, heldUp: 0 },
      ...{
        emptyAnswers: 0,
        corrections: 0,
        cutAnswers: 0,
        hasCalled: true,
        quotaWaits: 0,
        quotaWaitedMs: 0,
        quotaUntil: 0,
        quotaAnswer: null,
      },
    },
    ...{ requests: 2, rounds: 1, tokens: noTokens, clientCalls: 0, usedUpBudget: null },
    ...{ finish: 'stop', interruptedBy: null, failure: null, outcome: null },
    ...over,
  },
});

/** A world that can lead to every state. */
export const worldFor = (state: string): World =>
  new World({
    ...(state === 'resuming' && { resumed: savedTurn('inferring') }),
    isDelegated: state === 'delegating' || state === 'asking',
    maxQuotaWaitMs: state === 'confirming' || state === 'scheduled' ? maxQuotaWaitMs : 0,
    maxRetries: state === 'retrying' ? 2 : 0,
    fallbackModels: state === 'fallingBack' ? 1 : 0,
    endChecks: state === 'checkingEnd' ? 3 : 0,
  });

/** Leads a new world to a state. */
export const to = {
  async preparing(_world: World) {},
  async resuming(_world: World) {},
  async delegating(world: World) {
    open(world.prepare).answer();
    await flush();
    open(world.secure).answer();
    await flush();
  },
  async asking(world: World) {
    await to.delegating(world);
    world.send({ type: 'APPROVAL.NEEDED', requestId: 'one' });
    await flush();
  },
  async checking(world: World) {
    open(world.prepare).answer();
    await flush();
  },
  async compacting(world: World) {
    await to.checking(world);
    open(world.check).answer(checkOf({ isTooLong: true }));
    await flush();
  },
  async budgetReached(world: World) {
    await to.checking(world);
    open(world.check).answer(checkOf({ usedUpBudget }));
    await flush();
  },
  async inferring(world: World) {
    await to.checking(world);
    open(world.check).answer(checkOf());
    await flush();
  },
  /** Needs a world that waits for quotas. */
  async confirming(world: World) {
    await to.inferring(world);
    open(world.infer).fail(usedUpQuota);
    await flush();
  },
  async scheduled(world: World) {
    await to.confirming(world);
    world.send({ type: 'HOLD.ANSWERED', answer: 'accepted' });
    await flush();
  },
  /** Needs a world with retries. */
  async retrying(world: World) {
    await to.inferring(world);
    open(world.infer).fail(cut);
    await flush();
  },
  /** Needs a world with a fallback model. */
  async fallingBack(world: World) {
    await to.inferring(world);
    open(world.infer).fail(rejected);
    await flush();
  },
  async reviewing(world: World) {
    await to.inferring(world);
    open(world.infer).answer(answerOf({ calls: 2 }));
    await flush();
  },
  async awaitingApproval(world: World) {
    await to.reviewing(world);
    open(world.review).answer({ pending: ['one', 'two'] });
    await flush();
  },
  async securing(world: World) {
    await to.reviewing(world);
    open(world.review).answer({ pending: [] });
    await flush();
  },
  async runningTools(world: World) {
    await to.securing(world);
    open(world.secure).answer();
    await flush();
  },
  /** Needs a world with checks of the end. */
  async checkingEnd(world: World) {
    await to.inferring(world);
    open(world.infer).answer(answerOf());
    await flush();
  },
  async concluding(world: World) {
    await to.runningTools(world);
    open(world.runTools).answer({ repeated: 'Look', isCut: false });
    await flush();
  },
  async cancelling(world: World) {
    await to.inferring(world);
    world.send({ type: 'INTERRUPT', by: 'user' });
  },
  /** The outcome is `completed`. */
  async storing(world: World) {
    await to.inferring(world);
    open(world.infer).answer(answerOf());
    await flush();
  },
};

/** States in which the turn works or waits for approval. */
export const workingStates = [
  'resuming',
  'preparing',
  'checking',
  'compacting',
  'budgetReached',
  'confirming',
  'scheduled',
  'inferring',
  'retrying',
  'fallingBack',
  'reviewing',
  'awaitingApproval',
  'securing',
  'runningTools',
  'checkingEnd',
  'concluding',
  'delegating',
] as const;

/** States of a turn that has not ended. */
export const activeStates = [...workingStates, 'cancelling', 'storing'] as const;
