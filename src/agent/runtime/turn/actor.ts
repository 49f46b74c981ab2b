import { type AnyActorRef, createActor, fromPromise } from 'xstate';
import {
  type CheckedEnd,
  type CheckedTurn,
  type Delegated,
  type FallbackInput,
  holdTimeoutOf,
  type Inference,
  type InferenceInput,
  type QuotaInput,
  type Resumption,
  type ReviewedCalls,
  type SavedTurn,
  savedTurnOf,
  type ToolRun,
  type TurnEmitted,
  type TurnEvent,
  type TurnInput,
  type TurnKey,
  type TurnState,
  turnMachine,
  turnStateOf,
} from '../../../../machines/index.ts';
import { defaults } from '../../../protocol/index.ts';

/** Effects of a turn of the model. Every signal aborts when the machine leaves the state that invoked the effect. */
export interface ModelEffects {
  check(signal: AbortSignal): Promise<CheckedTurn>;
  compact(signal: AbortSignal): Promise<void>;
  infer(signal: AbortSignal, request: InferenceInput): Promise<Inference>;
  fallBack(signal: AbortSignal, model: FallbackInput): Promise<void>;
  review(signal: AbortSignal): Promise<ReviewedCalls>;
  runTools(signal: AbortSignal): Promise<ToolRun>;
  checkEnd(signal: AbortSignal): Promise<CheckedEnd>;
  /** Asks the model for an answer without tools. */
  conclude(signal: AbortSignal): Promise<void>;
}

/** Effects of the machine. */
export interface TurnWork {
  readonly approvalTimeoutMs: number;
  /** Restores the conversation of a turn that an earlier process began. */
  resume(signal: AbortSignal): Promise<Resumption>;
  prepare(signal: AbortSignal): Promise<void>;
  /** Resolves when the files are saved that the turn may change. */
  secure(signal: AbortSignal): Promise<void>;
  /** Resolves when a turn that waits for a quota continues. */
  awaitReset(signal: AbortSignal, wait: QuotaInput): Promise<void>;
  /** @throws Error when an external agent does the turn */
  readonly model: ModelEffects;
  /** Lets the external agent do the turn. */
  delegate(signal: AbortSignal): Promise<Delegated>;
  /** Failure for the machine. */
  failureOf(error: unknown): unknown;
}

interface Running {
  readonly work: TurnWork;
  /** Latest effect, which may outlive the state that invoked it. */
  latest: Promise<unknown>;
}

/** Turns of this process: the machine knows a turn by its ids only. */
const running = new Map<string, Running>();
const keyOf = ({ threadId, turnId }: TurnKey): string => `${threadId}/${turnId}`;

function runningOf(key: TurnKey): Running {
  const found = running.get(keyOf(key));
  if (!found) throw new Error(`turn ${keyOf(key)} does not run`);
  return found;
}

/** Actor that runs an effect of its turn. */
function effect<T, I extends TurnKey = TurnKey>(act: (work: TurnWork, signal: AbortSignal, input: I) => Promise<T>) {
  return fromPromise<T, I>(async ({ input, signal }) => {
    const turn = runningOf(input);
    const latest = act(turn.work, signal, input);
    turn.latest = latest;
    try {
      return await latest;
    } catch (error) {
      // The machine has left the state and ignores the error, which may be the reason of the abort.
      throw signal.aborted ? error : turn.work.failureOf(error);
    }
  });
}

/** Created once: providing a machine costs more than running one. */
const machine = turnMachine.provide({
  actors: {
    resume: effect((work, signal) => work.resume(signal)),
    prepare: effect((work, signal) => work.prepare(signal)),
    check: effect(({ model }, signal) => model.check(signal)),
    fallBack: effect<void, FallbackInput>(({ model }, signal, input) => model.fallBack(signal, input)),
    compact: effect(({ model }, signal) => model.compact(signal)),
    infer: effect<Inference, InferenceInput>(({ model }, signal, input) => model.infer(signal, input)),
    awaitReset: effect<void, QuotaInput>((work, signal, input) => work.awaitReset(signal, input)),
    review: effect(({ model }, signal) => model.review(signal)),
    secure: effect((work, signal) => work.secure(signal)),
    runTools: effect(({ model }, signal) => model.runTools(signal)),
    checkEnd: effect(({ model }, signal) => model.checkEnd(signal)),
    delegate: effect((work, signal) => work.delegate(signal)),
    conclude: effect(({ model }, signal) => model.conclude(signal)),
    settle: fromPromise(({ input }) => runningOf(input).latest.then(ignore, ignore)),
  },
  delays: {
    approvalTimeout: ({ context }) => runningOf(context).work.approvalTimeoutMs,
    holdTimeout: ({ context }) => holdTimeoutOf(context, runningOf(context).work.approvalTimeoutMs),
    cancelGrace: defaults.agent.cancelGraceMs,
  },
});

const ignore = (): void => {};

export interface TurnActorOptions {
  readonly input: TurnInput;
  readonly work: TurnWork;
  readonly onEmitted: (event: TurnEmitted) => void;
  /** Called after each transition. */
  readonly onTransition: () => void;
  /** Called when the machine, or `onEmitted`, threw. */
  readonly onFault: (error: unknown) => void;
  /** Receives the actor before it starts. */
  readonly observe: ((actor: AnyActorRef) => void) | undefined;
}

export interface TurnActor {
  readonly state: TurnState;
  /** State for the next process; undefined while a resumed turn restores its own. */
  readonly saved: SavedTurn | undefined;
  /** An ended turn ignores events. */
  send(event: TurnEvent): void;
  /** Aborts the work without an end. */
  stop(): void;
}

/** Starts the machine of one turn with its work. */
export function startTurnActor({
  input,
  work,
  onEmitted,
  onTransition,
  onFault,
  observe,
}: TurnActorOptions): TurnActor {
  const release = () => running.delete(keyOf(input));
  const actor = createActor(machine, { input, id: keyOf(input) });
  // Without this observer an error of the machine would end the process.
  actor.subscribe({
    next: onTransition,
    error: (error) => {
      release();
      onFault(error);
    },
    complete: release,
  });
  // XState rethrows the error of a listener outside of any caller.
  actor.on('*', (event) => {
    try {
      onEmitted(event);
    } catch (error) {
      onFault(error);
    }
  });
  observe?.(actor);
  running.set(keyOf(input), { work, latest: Promise.resolve() });
  actor.start();
  return {
    get state() {
      return turnStateOf(actor.getSnapshot());
    },
    get saved() {
      return savedTurnOf(actor.getSnapshot());
    },
    send: (event) => {
      // XState warns about events to an actor that has ended.
      if (actor.getSnapshot().status === 'active') actor.send(event);
    },
    stop: () => {
      release();
      actor.stop();
    },
  };
}
