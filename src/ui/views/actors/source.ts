import type { ReadonlySignal, Signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import type { AnyStateMachine } from 'xstate';
import type { Drawings } from '../../../inspect/browser.ts';
import type { Chart } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';

/** Machines of the shown actors. */
export interface ActorSource {
  readonly charts: ReadonlySignal<ReadonlyMap<string, Chart>>;
  /** Whether the chart of a machine may still arrive. */
  isPending(machine: string): boolean;
  /** Drawings of a machine. Null: none exist for this version, so the whole chart is shown. */
  drawingsOf(chart: Chart): Promise<Drawings | null>;
  /** Machine for a simulation; undefined if it is unknown. */
  copyOf(chart: Chart, drawings: Drawings | null | undefined): MachineCopy | undefined;
  /** Component that shows a shortened fact in full. Absent: facts are complete. */
  readonly WholeFact?: ComponentType<WholeFactProps>;
  stop(): void;
}

export interface WholeFactProps {
  /** Id of the actor. */
  readonly id: string;
  readonly name: string;
  /** Value of the fact in the record. */
  readonly shown: string;
}

export interface MachineCopy {
  /** Names of facts that are unchanged fields of the context. */
  readonly facts: readonly string[];
  readonly load: () => Promise<AnyStateMachine>;
}

/** @param notice receives failures that are shown to the user */
export type CreateSource = (app: App, isLoaded: ReadonlySignal<boolean>, notice: Signal<string | null>) => ActorSource;
