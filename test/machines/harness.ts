/**
 * Parts of the machine tests: names of transitions, a fake operating system, and questions that a test answers. No real
 * process, clock or promise of the product is used.
 */
import { setImmediate } from 'node:timers/promises';
import type { Test } from 'tap';
import {
  type AnyActorRef,
  type AnyStateMachine,
  type AnyTransitionDefinition,
  fromCallback,
  fromPromise,
  type InspectionEvent,
  type SimulatedClock,
} from 'xstate';
import type { ProcessCommand, ProcessEvent, ProcessFailure, ProcessInput } from '../../machines/index.ts';
import { graphOf } from '../../src/inspect/graph.ts';
import { eventName, guardName, nodeId } from '../../src/inspect/names.ts';

/** `running PROBE.FAILED [reachesFailureThreshold] → unhealthy`: name of a transition in a test, with `∅` for a missing target. */
export function nameOf(transition: AnyTransitionDefinition): string {
  const name = names.get(transition) ?? newNameOf(transition);
  names.set(transition, name);
  return name;
}

const names = new WeakMap<AnyTransitionDefinition, string>();

function newNameOf(transition: AnyTransitionDefinition): string {
  const guard = guardName(transition.guard);
  const target = transition.target?.map(nodeId).join(', ') ?? '∅';
  return transitionName(nodeId(transition.source), eventName(transition), guard, target);
}

function transitionName(source: string, event: string, guard: string | null, target: string): string {
  return `${source || '(any)'} ${event}${guard ? ` [${guard}]` : ''} → ${target}`;
}

/** Every transition of a machine by name, in the order in which the machine tries them. */
export function transitionNames(machine: AnyStateMachine): string[] {
  return graphOf('', machine).edges.map((edge) =>
    transitionName(edge.source, edge.event, edge.guard, edge.internal ? '∅' : edge.target),
  );
}

interface Microstep {
  readonly actorRef: AnyActorRef;
  readonly _transitions: readonly AnyTransitionDefinition[];
}

/** Inspector that appends the names of the transitions of watched actors to `taken`, in order. */
export function transitionLog(taken: string[], isWatched: (actor: AnyActorRef) => boolean) {
  return (event: InspectionEvent) => {
    if (event.type !== '@xstate.microstep') return;
    const { actorRef, _transitions } = event as unknown as Microstep;
    if (!isWatched(actorRef)) return;
    // The start of an actor is reported as a transition too, without an event type.
    taken.push(..._transitions.filter((each) => each.eventType !== undefined).map(nameOf));
  };
}

/** Lets every promise that can settle do so, with all that follows. */
export const flush = (): Promise<void> => setImmediate();

/** One process of the fake operating system, from the request to start it. */
export interface FakeProcess {
  readonly kind: 'server' | 'sidecar';
  readonly incarnation: number;
  readonly mode: ProcessInput['mode'];
  readonly pid: number;
  readonly commands: ProcessCommand['type'][];
  /** A process group of this workspace exists. An external server does not count. */
  alive: boolean;
  /** The machine has stopped its driver. */
  released: boolean;
  /** The driver has reported the exit or the refusal. */
  over: boolean;
  readonly send: (event: ProcessEvent) => void;
}

/** A promise that an invoked actor waits for, settled by the test. */
export interface Question<T, I> {
  readonly input: I;
  isOpen: boolean;
  answer(value: T): void;
  fail(error: unknown): void;
}

/** Error with which an actor of the Hub rejects. */
export function failure(
  kind: ProcessFailure['kind'],
  isRetryable: boolean,
  message = `it ${kind}`,
  ended: Pick<ProcessFailure, 'pid' | 'lostSidecarPid'> = {},
): Error {
  return Object.assign(new Error(message), {
    failure: { kind, message, isRetryable, ...ended } satisfies ProcessFailure,
  });
}

/** Part of an actor's input that refers to its world. */
export interface Scope {
  readonly system: AnyActorRef['system'];
}

/**
 * Worlds by the system of their actors. So one machine with fake actors serves all worlds of a kind: to make a machine takes a
 * millisecond, and properties need thousands of worlds.
 */
export class Worlds<W> {
  readonly #bySystem = new WeakMap<Scope['system'], W>();

  /** To be called before the actor starts. */
  add({ system }: Scope, world: W): void {
    this.#bySystem.set(system, world);
  }

  of({ system }: Scope): W {
    const world = this.#bySystem.get(system);
    if (world === undefined) throw new Error('an actor of this system was started before its world was known');
    return world;
  }
}

/** @param list of questions, to which each start of the actor adds one */
export function asked<T, I>(list: Question<T, I>[] | ((scope: Scope) => Question<T, I>[])) {
  return fromPromise<T, I>(({ input, signal, system }) => {
    const questions = typeof list === 'function' ? list({ system }) : list;
    return new Promise<T>((resolve, reject) => {
      const question: Question<T, I> = {
        input,
        isOpen: true,
        answer(value) {
          question.isOpen = false;
          resolve(value);
        },
        fail(error) {
          question.isOpen = false;
          reject(error);
        },
      };
      signal.addEventListener('abort', () => {
        question.isOpen = false;
      });
      questions.push(question);
    });
  });
}

/** Processes whose starts and ends are controlled by the test. */
export class FakeOs {
  readonly processes: FakeProcess[] = [];
  readonly clock: SimulatedClock;
  #nextPid = 1000;

  constructor(clock: SimulatedClock) {
    this.clock = clock;
  }

  /** Actor that stands for one process of the operating system of its world. */
  static driver(kind: FakeProcess['kind'], osOf: (scope: Scope) => FakeOs) {
    return fromCallback<ProcessCommand, ProcessInput>(({ input, receive, sendBack, system }) => {
      const process = osOf({ system }).#request(kind, input, sendBack);
      receive((command) => {
        process.commands.push(command.type);
      });
      return () => {
        process.released = true;
      };
    });
  }

  #request(kind: FakeProcess['kind'], input: ProcessInput, send: FakeProcess['send']): FakeProcess {
    const process: FakeProcess = {
      kind,
      incarnation: input.incarnation,
      mode: input.mode,
      pid: this.#nextPid++,
      commands: [],
      // An adopted process is alive from the beginning, a spawned one from `spawned` on.
      alive: input.mode === 'adopt',
      released: false,
      over: false,
      send,
    };
    this.processes.push(process);
    return process;
  }

  /** Processes of this kind whose group exists. */
  live(kind: FakeProcess['kind']): FakeProcess[] {
    return this.processes.filter((process) => process.kind === kind && process.alive);
  }

  /** Process that was requested last. */
  last(kind: FakeProcess['kind']): FakeProcess {
    const process = this.processes.findLast((each) => each.kind === kind);
    if (!process) throw new Error(`no ${kind} was requested`);
    return process;
  }

  spawned(process: FakeProcess): void {
    process.alive = process.mode !== 'watch';
    process.send({ type: 'PROCESS.SPAWNED', incarnation: process.incarnation, pid: process.pid });
  }

  refused(process: FakeProcess, isRetryable: boolean): void {
    process.over = true;
    process.alive = false;
    const { incarnation } = process;
    process.send({ type: 'PROCESS.REFUSED', incarnation, error: 'it was refused', isRetryable, at: this.clock.now() });
  }

  ending(process: FakeProcess): void {
    process.send({ type: 'PROCESS.ENDING', incarnation: process.incarnation });
  }

  exited(process: FakeProcess, exitCode: number | null, signal: string | null = null): void {
    process.over = true;
    process.alive = false;
    process.send({
      type: 'PROCESS.EXITED',
      incarnation: process.incarnation,
      exitCode,
      signal,
      at: this.clock.now(),
    });
  }
}

/** Latest question without an answer. */
export function open<T, I>(questions: readonly Question<T, I>[]): Question<T, I> {
  const question = questions.findLast((each) => each.isOpen);
  if (!question) throw new Error('nothing was asked');
  return question;
}

/** Test of one transition: the state before, the event, and the checks after it. */
export interface Walk<W> {
  /** Name of the transition, see `nameOf`. */
  readonly takes: string;
  /** State before the event, for a transition that several states share. */
  readonly from?: string;
  /** One sentence: condition and result. */
  readonly proves: string;
  readonly world?: () => W;
  /** The machine takes the transition when the world is made. */
  readonly isFirst?: true;
  readonly given: (world: W) => Promise<void>;
  readonly when: (world: W) => Promise<void> | void;
  readonly shows: (t: Test, world: W) => void;
}

/**
 * A subtest for each walk, and one that fails when a transition of the machine was never taken as the thing under test
 * or when a walk names a transition that the machine does not have.
 *
 * @param sources the top-level states, or `(any)` for the root, whose transitions `walks` covers; default: all
 */
export function walkEvery<W extends { readonly taken: string[] }>(
  t: Test,
  machine: AnyStateMachine,
  createWorld: () => W,
  walks: readonly Walk<W>[],
  sources: readonly string[] = sourcesOf(machine),
): void {
  for (const { takes, from, proves, world: createSpecial, isFirst, given, when, shows } of walks) {
    t.test(from === undefined ? takes : `${takes}, in ${from}`, async (t) => {
      const world = (createSpecial ?? createWorld)();
      await given(world);
      const before = isFirst ? 0 : world.taken.length;
      await when(world);
      await flush();
      t.ok(world.taken.slice(before).includes(takes), proves, { taken: world.taken.slice(before) });
      shows(t, world);
    });
  }
  t.test(`every transition from ${sources.join(', ')} has a walk`, async (t) => {
    const walked = new Set(walks.map(({ takes }) => takes));
    const names = transitionNames(machine);
    t.equal(new Set(names).size, names.length, 'each transition has a unique name');
    for (const name of names) if (sources.includes(sourceOf(name))) t.ok(walked.has(name), name);
    for (const name of walked) t.ok(names.includes(name), `${name} is a transition of the machine`);
  });
}

/** Top-level states of a machine, and `(any)` for its root: the groups into which its walks can be divided. */
export const sourcesOf = (machine: AnyStateMachine): string[] => ['(any)', ...Object.keys(machine.root.states)];

/** Top-level state that a transition leaves, by the transition's name. */
const sourceOf = (name: string): string => name.split(/[ .]/, 1)[0] ?? '';
