import { type ReadonlySignal, signal } from '@preact/signals';
import type { AnyStateMachine } from 'xstate';
import { leavesOf } from '../../../parts/tone.ts';
import type { Actor } from '../model.ts';
import type { MachineCopy } from '../source.ts';
import { advance, begin, choose, type Simulation, send, statesOf } from './engine.ts';

/** A running simulation of one actor. */
export interface Simulated {
  readonly machine: AnyStateMachine;
  /** State of the actor at the start of the simulation. */
  readonly actor: Actor;
  readonly present: Simulation;
}

/** Steps of the user on the copy of an actor. The actor itself receives nothing: this page cannot send to actors. */
export interface SimulationSession {
  readonly simulated: ReadonlySignal<Simulated | null>;
  /** Begins with the states and the visible facts of an actor; rejects when its machine cannot be fetched. */
  start(actor: Actor, copy: MachineCopy): Promise<void>;
  send(event: string): void;
  choose(id: string): void;
  advance(milliseconds: number): void;
  reset(): void;
  leave(): void;
}

export function createSimulation(): SimulationSession {
  const simulated = signal<Simulated | null>(null);
  let facts: readonly string[] = [];

  const beginning = (machine: AnyStateMachine, actor: Actor): Simulated => {
    const known = Object.fromEntries(Object.entries(actor.projection).filter(([name]) => facts.includes(name)));
    return { machine, actor, present: begin(machine, leavesOf(actor.states), known) };
  };
  const change = (step: (machine: AnyStateMachine, present: Simulation) => Simulation) => {
    const before = simulated.peek();
    if (before) simulated.value = { ...before, present: step(before.machine, before.present) };
  };
  return {
    simulated,
    async start(actor, copy) {
      const machine = await copy.load();
      facts = copy.facts;
      simulated.value = beginning(machine, actor);
    },
    send: (event) => change((machine, present) => send(machine, present, event)),
    choose: (id) => change((machine, present) => choose(machine, present, id)),
    advance: (milliseconds) => change((machine, present) => advance(machine, present, milliseconds)),
    reset() {
      const before = simulated.peek();
      if (before) simulated.value = beginning(before.machine, before.actor);
    },
    leave() {
      simulated.value = null;
    },
  };
}

/** The simulated copy of an actor, drawn in its place. */
export function copyOf({ machine, actor, present }: Simulated): Actor {
  return { ...actor, states: statesOf(machine, present), log: [], ending: null };
}
