import type { ReadonlySignal, Signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import type { AnyStateMachine } from 'xstate';
import type { Drawings } from '../../../inspect/browser.ts';
import type { Chart } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';

/** Machines of the shown actors. */
export interface ActorSource {
  readonly charts: ReadonlySignal<ReadonlyMap<string, Chart>>;
  /** Whether the chart of a machine may still come. */
  isPending(machine: string): boolean;
  /** Null: none exist for this version of the machine; the whole chart is shown. */
  drawingsOf(chart: Chart): Promise<Drawings | null>;
  /** The machine that a simulation steps; undefined: it is not known. */
  copyOf(chart: Chart, drawings: Drawings | null | undefined): MachineCopy | undefined;
  /** Shows a shortened fact at greater length. Absent: facts are complete. */
  readonly WholeFact?: ComponentType<WholeFactProps>;
  stop(): void;
}

export interface WholeFactProps {
  /** Id of the actor. */
  readonly id: string;
  readonly name: string;
  /** The fact as the record has it. */
  readonly shown: string;
}

export interface MachineCopy {
  /** Facts that are unchanged fields of the context. */
  readonly facts: readonly string[];
  readonly load: () => Promise<AnyStateMachine>;
}

/** @param notice shown to the user, in the words of the failure */
export type CreateSource = (app: App, isLoaded: ReadonlySignal<boolean>, notice: Signal<string | null>) => ActorSource;
