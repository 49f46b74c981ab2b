/**
 * Shared parts of the charts that supervise one process at a time: agent server, sidecar and MCP server. A machine spreads
 * the delays, guards, actions and states into its own definition; spawning, readiness and reports stay with the machine.
 *
 * Detailed operation
 * 1. Ending: SIGTERM, after `gracefulStop` SIGKILL, after `killVerify` the state `stuck`. No state of these is left by
 *    itself: the machine leaves when the driver reports that the process group is empty.
 * 2. After an end without a stop request: the failure is counted, then `deciding` leads to a back-off, or to rest. The
 *    restart after a stable run does not wait.
 * 3. Events carry the incarnation they belong to; those of an earlier incarnation are ignored.
 */
import { type AnyActorRef, assign, type EventObject, sendTo } from 'xstate';
import { addFailure, backoffDelay, exceedsFailureLimit, nextRandom, type RestartPolicy } from './restart-policy.ts';

export interface SupervisedPolicy extends RestartPolicy {
  /** From SIGTERM to SIGKILL. */
  readonly gracefulStopMs: number;
  /** From SIGKILL until the process counts as stuck. */
  readonly killVerifyMs: number;
}

export interface SupervisedContext {
  readonly policy: SupervisedPolicy;
  /** Seed of the jitter. */
  readonly seed: number;
  /** Number of the present process life, from 1; 0 before the first. */
  readonly incarnation: number;
  /** Times of the failures that still count, in milliseconds of the monotonic clock; oldest first. */
  readonly failures: readonly number[];
  /** Automatic restarts since the last stable run or manual start. */
  readonly attempt: number;
  /** Pause before the restart that is due or was made last, 0 after a stable run; null when a user started it. */
  readonly delayMs: number | null;
  /** When the process became ready; null before that. */
  readonly runningSince: number | null;
}

type OfContext<C> = { readonly context: C };
type OfEvent = { readonly event: EventObject };

/** @throws Error for an event without this field: the chart applies a guard or an action to the wrong event */
function numberOf(event: EventObject, field: 'incarnation' | 'at'): number {
  const value: unknown = (event as { readonly incarnation?: unknown; readonly at?: unknown })[field];
  if (typeof value !== 'number') throw new Error(`The event ${event.type} has no field ${field}.`);
  return value;
}

/** True when the event belongs to the present process life. */
export const isThisIncarnation = ({ context, event }: OfContext<SupervisedContext> & OfEvent): boolean =>
  numberOf(event, 'incarnation') === context.incarnation;

const wasStable = ({ runningSince, policy }: SupervisedContext, endedAt: number): boolean =>
  runningSince !== null && endedAt - runningSince >= policy.stableAfterMs;

/** Counts the end of a process that `event` reports as a failure. After a stable run it is the first failure again. */
export function withFailure(
  context: SupervisedContext,
  event: EventObject,
): Partial<Pick<SupervisedContext, 'failures' | 'attempt'>> {
  const at = numberOf(event, 'at');
  const failures = addFailure(context.failures, at, context.policy.withinMs);
  return { failures, ...(wasStable(context, at) && { attempt: 0 }) };
}

export const supervisedDelays = {
  backoff: ({ context }: OfContext<SupervisedContext>) => context.delayMs ?? 0,
  gracefulStop: ({ context }: OfContext<SupervisedContext>) => context.policy.gracefulStopMs,
  killVerify: ({ context }: OfContext<SupervisedContext>) => context.policy.killVerifyMs,
};

export const supervisedGuards = {
  isThisIncarnation,
  exceedsFailureLimit: ({ context }: OfContext<SupervisedContext>) =>
    exceedsFailureLimit(context.failures, context.policy),
};

/**
 * Actions of a machine with context `C` and events `E`.
 *
 * @param driver id of the child actor that obeys `TERMINATE` and `KILL`
 */
export function supervisedActions<C extends SupervisedContext, E extends EventObject>(driver: string) {
  const update = (change: (context: C, event: E) => Partial<SupervisedContext>) =>
    assign<C, E, undefined, E, never>(({ context, event }) => change(context, event) as Partial<C>);
  return {
    terminateProcess: sendTo<C, E, undefined, AnyActorRef, E, never, never>(driver, { type: 'TERMINATE' }),
    killProcess: sendTo<C, E, undefined, AnyActorRef, E, never, never>(driver, { type: 'KILL' }),
    recordFailureTime: update((context, event) => withFailure(context, event)),
    planRestart: update((context) => {
      const { random, seed } = nextRandom(context.seed);
      const attempt = context.attempt + 1;
      const endedAt = context.failures.at(-1);
      // Interrupted work resumes sooner; the next failure waits, unless its run was as long.
      const isImmediate = endedAt !== undefined && wasStable(context, endedAt);
      return { seed, attempt, delayMs: isImmediate ? 0 : backoffDelay(attempt, context.policy, random) };
    }),
    resetForManualStart: update(() => ({ failures: [], attempt: 0 })),
  };
}

export interface ProbedPolicy extends SupervisedPolicy {
  /** This many failed probes in a row make a process unhealthy. */
  readonly livenessFailures: number;
  /** How long an unhealthy process may recover before it is restarted. */
  readonly unhealthyGraceMs: number;
}

/** A supervised process that is probed while it runs. */
export interface ProbedContext extends SupervisedContext {
  readonly policy: ProbedPolicy;
  /** Failed probes in a row. */
  readonly probeFailures: number;
}

export const probedDelays = {
  unhealthyGrace: ({ context }: OfContext<ProbedContext>) => context.policy.unhealthyGraceMs,
};

export const probedGuards = {
  reachesFailureThreshold: ({ context, event }: OfContext<ProbedContext> & OfEvent) =>
    isThisIncarnation({ context, event }) && context.probeFailures + 1 >= context.policy.livenessFailures,
};

/** Actions that count the failed probes of a machine with context `C` and events `E`. */
export function probedActions<C extends ProbedContext, E extends EventObject>() {
  return {
    countProbeFailure: assign<C, E, undefined, E, never>(
      ({ context }) => ({ probeFailures: context.probeFailures + 1 }) as Partial<C>,
    ),
    resetProbeFailures: assign<C, E, undefined, E, never>({ probeFailures: 0 } as Partial<C>),
  };
}

const kill = {
  killing: {
    description: 'SIGKILL sent; waiting until the process group is empty.',
    meta: { kind: 'works', lane: 'exception', order: 6 },
    entry: 'killProcess',
    after: { killVerify: { target: 'stuck', actions: 'recordKillTimeout' } },
  },
  stuck: {
    description: 'The process survived SIGKILL (uninterruptible sleep); waiting for its end.',
    meta: { kind: 'unwell', lane: 'exception', order: 7 },
  },
} as const;

/** Child states that end a process at once: `killing`, then `stuck`. */
export const killStates = kill;

/** Child states that end a process with a chance to save its work: `terminating`, then `killing`, then `stuck`. */
export const terminateStates = {
  terminating: {
    description: 'SIGTERM sent to the process group.',
    meta: { kind: 'works', lane: 'exception', order: 5 },
    entry: 'terminateProcess',
    after: { gracefulStop: { target: 'killing' } },
  },
  ...kill,
} as const;

/**
 * Child states after an end without a stop request: `deciding` and `backingOff`.
 *
 * @param to targets: the state that starts again, the one after which nothing restarts, the one after too many failures
 * @param giveUp actions after too many failures
 */
export function restartStates<
  const S extends string,
  const N extends string,
  const F extends string,
  const A extends string = never,
>(to: { readonly start: S; readonly noRestart: N; readonly tooManyFailures: F }, giveUp: readonly A[] = []) {
  return {
    deciding: {
      description: 'Decides between a restart after a pause and no restart.',
      meta: { kind: 'failed', lane: 'exception', order: 0 },
      always: [
        { guard: 'mustNotRestart', target: to.noRestart },
        { guard: 'exceedsFailureLimit', target: to.tooManyFailures, actions: giveUp },
        { target: 'backingOff' },
      ],
    },
    backingOff: {
      description: 'Waiting before an automatic restart: not after a stable run, then longer with every failure.',
      meta: { kind: 'pauses', lane: 'exception', order: 1 },
      after: { backoff: { target: to.start } },
    },
  } as const;
}
