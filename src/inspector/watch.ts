import type { AnyActorRef, AnyStateMachine, InspectionEvent } from 'xstate';
import { createRecorder, graphOf, type MachineGraph, type Recorder, type RecorderClock } from '../inspect/index.ts';
import { createFactReader, type FactReader } from './facts.ts';
import { limits } from './limits.ts';
import type { InspectorOptions } from './options.ts';
import { cut, maskByName } from './read-value.ts';
import { standInMachines, standInOf } from './stand-in.ts';

/** Watch of all actors of a program. */
export interface Watch {
  readonly recorder: Recorder;
  readonly facts: FactReader;
  /** Callback for the option `inspect` of `createActor`. Never throws. */
  readonly inspect: (event: InspectionEvent) => void;
  /** States and transitions of a machine, by the name of its chart. */
  graphOf(name: string): MachineGraph | undefined;
}

/** Watches roots from their start, so an actor that is only created is not shown. */
export function createWatch({ mask = maskByName, onFault = () => {} }: InspectorOptions, clock: RecorderClock): Watch {
  const machines = new Machines();
  const facts = createFactReader(mask);
  const recorder = createRecorder({
    clock,
    ringRecords: limits.records,
    endedActors: limits.endedActors,
    onFault,
    foreign: { nameOf: (machine) => machines.nameOf(machine), project: facts.project, standInOf },
  });
  const watched = new WeakMap<AnyActorRef, { readonly id: string; readonly end: () => void }>();
  let count = 0;

  function begin(root: AnyActorRef): void {
    const before = watched.get(root);
    before?.end();
    if (!before) count += 1;
    const id = before?.id ?? String(count);
    const { machine = standInOf(root).snapshotOf(root.getSnapshot()).machine } = root.getSnapshot() as {
      readonly machine?: AnyStateMachine;
    };
    const title = root.id === root.sessionId ? machine.id : root.id;
    const observation = { id, parent: null, machine: machines.nameOf(machine), title: cut(title, limits.nameChars) };
    watched.set(root, { id, end: recorder.observe(root, observation) });
  }

  return {
    recorder,
    facts,
    inspect(event) {
      try {
        if (event.type !== '@xstate.event' || event.event.type !== 'xstate.init') return;
        const started = event.actorRef as AnyActorRef;
        if (started._parent === undefined) begin(started);
      } catch (error) {
        onFault(error);
      }
    },
    graphOf: (name) => machines.graphOf(name),
  };
}

/** Names of machines, and the graphs of the most recent machines. */
class Machines {
  readonly #names = new WeakMap<object, string>();
  readonly #graphs = new Map<string, MachineGraph>();
  #others = 0;

  constructor() {
    for (const machine of Object.values(standInMachines)) this.nameOf(machine);
  }

  nameOf(machine: AnyStateMachine): string {
    const known = this.#names.get(machine.config);
    if (known !== undefined) return known;
    const id = cut(machine.id, limits.nameChars);
    const isTaken = this.#graphs.has(id);
    if (isTaken) this.#others += 1;
    const name = isTaken ? `${id} ${this.#others + 1}` : id;
    this.#names.set(machine.config, name);
    this.#graphs.set(name, withoutMeta(graphOf(name, machine)));
    for (const [oldest] of this.#graphs) {
      if (this.#graphs.size <= limits.machines) break;
      this.#graphs.delete(oldest);
    }
    return name;
  }

  graphOf(name: string): MachineGraph | undefined {
    return this.#graphs.get(name);
  }
}

/** Removes `meta`, which a program may use for any purpose. */
const withoutMeta = (graph: MachineGraph): MachineGraph => ({
  ...graph,
  nodes: graph.nodes.map(({ meta: _, ...node }) => node),
});
