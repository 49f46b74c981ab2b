import { type AnyActorRef, createActor, fromPromise } from 'xstate';
import {
  type CheckedEnd,
  type CheckedTurn,
  type Delegated,
  type Inference,
  type ReviewedCalls,
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
import type { RequestPlace } from './inference.ts';

/** Effects of the machine. Every signal aborts when the machine leaves the state that invoked the effect. */
export interface TurnWork {
  readonly approvalTimeoutMs: number;
  prepare(signal: AbortSignal): Promise<void>;
  check(signal: AbortSignal): Promise<CheckedTurn>;
  /** @param index place in the list of fallback models */
  fallBack(signal: AbortSignal, index: number): Promise<void>;
  compact(signal: AbortSignal): Promise<void>;
  infer(signal: AbortSignal, request: RequestPlace): Promise<Inference>;
  review(signal: AbortSignal): Promise<ReviewedCalls>;
  /** Resolves when the files are saved that the calls may change. */
  secure(signal: AbortSignal): Promise<void>;
  runTools(signal: AbortSignal): Promise<ToolRun>;
  checkEnd(signal: AbortSignal): Promise<CheckedEnd>;
  /** Lets the external agent do the turn. */
  delegate(signal: AbortSignal): Promise<Delegated>;
  /** Asks the model for an answer without tools. */
  conclude(signal: AbortSignal): Promise<void>;
  settle(): Promise<void>;
}

/** Work of the turns of this process: the machine knows a turn by its ids only. */
const works = new Map<string, TurnWork>();
const keyOf = ({ threadId, turnId }: TurnKey): string => `${threadId}/${turnId}`;

function workOf(key: TurnKey): TurnWork {
  const work = works.get(keyOf(key));
  if (!work) throw new Error(`turn ${keyOf(key)} does not run`);
  return work;
}

/** Created once: providing a machine costs more than running one. */
const machine = turnMachine.provide({
  actors: {
    prepare: fromPromise(({ input, signal }) => workOf(input).prepare(signal)),
    check: fromPromise(({ input, signal }) => workOf(input).check(signal)),
    fallBack: fromPromise(({ input, signal }) => workOf(input).fallBack(signal, input.index)),
    compact: fromPromise(({ input, signal }) => workOf(input).compact(signal)),
    infer: fromPromise(({ input, signal }) => workOf(input).infer(signal, input)),
    review: fromPromise(({ input, signal }) => workOf(input).review(signal)),
    secure: fromPromise(({ input, signal }) => workOf(input).secure(signal)),
    runTools: fromPromise(({ input, signal }) => workOf(input).runTools(signal)),
    checkEnd: fromPromise(({ input, signal }) => workOf(input).checkEnd(signal)),
    delegate: fromPromise(({ input, signal }) => workOf(input).delegate(signal)),
    conclude: fromPromise(({ input, signal }) => workOf(input).conclude(signal)),
    settle: fromPromise(({ input }) => workOf(input).settle()),
  },
  delays: {
    approvalTimeout: ({ context }) => workOf(context).approvalTimeoutMs,
    cancelGrace: defaults.agent.cancelGraceMs,
  },
});

export interface TurnActorOptions {
  readonly input: TurnInput;
  readonly work: TurnWork;
  readonly onEmitted: (event: TurnEmitted) => void;
  /** Called when the machine, or `onEmitted`, threw. */
  readonly onFault: (error: unknown) => void;
  /** Receives the actor before it starts. */
  readonly observe: ((actor: AnyActorRef) => void) | undefined;
}

export interface TurnActor {
  readonly state: TurnState;
  /** An ended turn ignores events. */
  send(event: TurnEvent): void;
  /** Aborts the work without an end. */
  stop(): void;
}

/** Starts the machine of one turn with its work. */
export function startTurnActor({ input, work, onEmitted, onFault, observe }: TurnActorOptions): TurnActor {
  const release = () => works.delete(keyOf(input));
  const actor = createActor(machine, { input, id: keyOf(input) });
  // Without this observer an error of the machine would end the process.
  actor.subscribe({
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
  works.set(keyOf(input), work);
  actor.start();
  return {
    get state() {
      return turnStateOf(actor.getSnapshot());
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
