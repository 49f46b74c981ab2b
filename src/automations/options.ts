import type { AnyActorRef } from 'xstate';
import type { Runtime, ScheduleStore } from '../agent/index.ts';
import type { Automation } from '../protocol/index.ts';
import type { Clock } from './clock.ts';

export interface AutomationsSettings {
  readonly isEnabled: boolean;
  readonly maxConcurrentRuns: number;
  readonly turnTimeoutMs: number;
  /** Tries after the first. */
  readonly maxRetries: number;
  readonly retryInitialDelayMs: number;
  readonly retryMaxDelayMs: number;
}

/** An actor for viewers. */
export interface ObservableAutomation {
  readonly id: string;
  readonly machine: 'automation' | 'scheduler';
  readonly title: string;
}

export interface AutomationsOptions {
  readonly workspacePath: string;
  readonly schedules: ScheduleStore;
  readonly runtime: Runtime;
  readonly settings: AutomationsSettings;
  /** Called with a failure that no caller waits for. */
  readonly onFault: (error: unknown) => void;
  /** Sees the scheduler, and every automation that lives, before it starts. */
  readonly observe?: ((actor: AnyActorRef, observable: ObservableAutomation) => void) | undefined;
  readonly clock?: Clock | undefined;
  /** Waiting automations have actors up to this number; beyond it, only active ones do. */
  readonly keepActors?: number | undefined;
}

/** An automation after a change, or its last state before it was removed. */
export interface AutomationsChange {
  readonly automation: Automation;
  readonly removed: boolean;
}
