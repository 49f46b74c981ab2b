import { type Actor, type AnyActorRef, createActor, fromPromise } from 'xstate';
import {
  type Inference,
  type ToolRun,
  type TurnEmitted,
  type TurnInput,
  turnMachine,
} from '../../../machines/index.ts';
import { defaults } from '../../protocol/index.ts';

/** Effects of the machine. Every signal aborts when the machine leaves the state that invoked the effect. */
export interface TurnWork {
  readonly approvalTimeoutMs: number;
  prepare(signal: AbortSignal): Promise<{ readonly isTooLong: boolean }>;
  compact(signal: AbortSignal): Promise<void>;
  infer(signal: AbortSignal): Promise<Inference>;
  review(signal: AbortSignal): Promise<{ readonly pending: readonly string[] }>;
  runTools(signal: AbortSignal): Promise<ToolRun>;
  settle(): Promise<void>;
}

type Key = Pick<TurnInput, 'threadId' | 'turnId'>;

/** The turns that run in this process: the machine knows them by name only. */
const works = new Map<string, TurnWork>();
const keyOf = ({ threadId, turnId }: Key): string => `${threadId}/${turnId}`;

function workOf(key: Key): TurnWork {
  const work = works.get(keyOf(key));
  if (!work) throw new Error(`turn ${keyOf(key)} does not run`);
  return work;
}

/** Made once: to provide a machine costs more than to run one. */
const machine = turnMachine.provide({
  actors: {
    prepare: fromPromise(({ input, signal }) => workOf(input).prepare(signal)),
    compact: fromPromise(({ input, signal }) => workOf(input).compact(signal)),
    infer: fromPromise(({ input, signal }) => workOf(input).infer(signal)),
    review: fromPromise(({ input, signal }) => workOf(input).review(signal)),
    runTools: fromPromise(({ input, signal }) => workOf(input).runTools(signal)),
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
  readonly onError: (error: unknown) => void;
  /** Sees it before it starts. */
  readonly observe: ((actor: AnyActorRef) => void) | undefined;
}

/** The machine of one turn, started, with real work in it. */
export function startTurnActor({
  input,
  work,
  onEmitted,
  onError,
  observe,
}: TurnActorOptions): Actor<typeof turnMachine> {
  works.set(keyOf(input), work);
  const actor = createActor(machine, { input, id: keyOf(input) });
  // Without this observer an error of the machine would end the process.
  actor.subscribe({
    error: (error) => {
      works.delete(keyOf(input));
      onError(error);
    },
    complete: () => works.delete(keyOf(input)),
  });
  actor.on('*', onEmitted);
  observe?.(actor);
  return actor.start();
}
