import { randomInt } from 'node:crypto';
import { type Actor, createActor } from 'xstate';
import { type AutomationEmitted, type AutomationEvent, automationMachine } from '../../machines/index.ts';
import type { StoredAutomation } from '../agent/index.ts';
import { type Automation, automationStates } from '../protocol/index.ts';
import type { Clock } from './clock.ts';
import type { AutomationsOptions } from './options.ts';
import { isRecurring, isSpent } from './rows.ts';

export type AutomationActor = Actor<typeof automationMachine>;
export type AutomationSnapshot = ReturnType<AutomationActor['getSnapshot']>;

export interface ActorsHost extends Pick<AutomationsOptions, 'settings' | 'observe' | 'onFault'> {
  readonly clock: Clock;
  readonly row: (id: string) => StoredAutomation | undefined;
  readonly requestSlot: (id: string) => void;
  readonly releaseSlot: (id: string) => void;
  /** Called after every transition. */
  readonly changed: (id: string, snapshot: AutomationSnapshot) => void;
  readonly dropped: (id: string, event: AutomationEmitted) => void;
  /** Whether an actor that rests may stay. */
  readonly keepsResting: () => boolean;
}

/** Input of the machine from a row. */
export const termsOf = (row: StoredAutomation) => ({
  isRecurring: isRecurring(row.schedule),
  isSpent: isSpent(row),
  vanishes: row.deleteAfterRun,
});

/** The actors of automations: made when they are needed, released when they rest and there are too many. */
export class AutomationActors {
  readonly #host: ActorsHost;
  readonly #machine: typeof automationMachine;
  readonly #living = new Map<string, AutomationActor>();
  #isStopped = false;

  constructor(host: ActorsHost, run: ReturnType<typeof import('./run-actor.ts').runActor>) {
    this.#host = host;
    // Provided once: to provide a machine costs more than to run one.
    this.#machine = automationMachine.provide({
      actors: { run },
      actions: {
        requestSlot: ({ context }) => host.requestSlot(context.automationId),
        releaseSlot: ({ context }) => host.releaseSlot(context.automationId),
      },
    });
  }

  get size(): number {
    return this.#living.size;
  }

  /** Current state of an automation; undefined when it does nothing and has no actor. */
  stateOf(id: string): Automation['state'] | undefined {
    const snapshot = this.#living.get(id)?.getSnapshot();
    return snapshot && automationStates.find((state) => snapshot.hasTag(state));
  }

  snapshotOf(id: string): AutomationSnapshot | undefined {
    return this.#living.get(id)?.getSnapshot();
  }

  /** The last due time sent to the actor, which may not be in its row yet. */
  lastDueOf(id: string): number | undefined {
    const context = this.#living.get(id)?.getSnapshot().context;
    return (context?.due ?? context?.covers)?.scheduledFor;
  }

  /** Notifies the actor of an automation, and creates a missing one. A removed automation gets nothing. */
  send(id: string, event: AutomationEvent): void {
    this.wake(id)?.send(event);
  }

  /** Notifies an existing actor: other automations read the change from their rows. */
  notify(id: string, event: AutomationEvent): void {
    this.#living.get(id)?.send(event);
  }

  /** Actor of an automation, created from its row if it is missing. */
  wake(id: string): AutomationActor | undefined {
    const known = this.#living.get(id);
    if (known || this.#isStopped) return known;
    const row = this.#host.row(id);
    return row && this.#begin(row);
  }

  /** Stops all actors, which ends their current runs. */
  stop(): void {
    this.#isStopped = true;
    for (const [id, actor] of this.#living) this.#forget(id, actor);
  }

  #begin(row: StoredAutomation): AutomationActor {
    const { settings, clock, observe, onFault, changed, dropped } = this.#host;
    const { id, kind, enabled, progress } = row;
    const { retry } = progress;
    const actor = createActor(this.#machine, {
      id: `automation/${id}`,
      clock,
      input: {
        automationId: id,
        kind,
        isEnabled: enabled,
        ...termsOf(row),
        policy: {
          maxRetries: settings.maxRetries,
          retryInitialMs: settings.retryInitialDelayMs,
          retryMaxMs: settings.retryMaxDelayMs,
          turnTimeoutMs: settings.turnTimeoutMs,
        },
        seed: randomInt(2 ** 31),
        failures: progress.failures,
        retry: retry && {
          work: { scheduledFor: retry.scheduledFor, attempt: retry.attempt, trigger: retry.trigger },
          at: retry.at,
        },
      },
    });
    this.#living.set(id, actor);
    actor.on('automation.dropped', (event) => dropped(id, event));
    // Without this observer an error of the machine would end the process.
    actor.subscribe({
      error: (error) => {
        this.#living.delete(id);
        onFault(error);
      },
    });
    observe?.(actor, { id: `automation/${id}`, machine: 'automation', title: row.name });
    actor.start();
    actor.subscribe((snapshot) => {
      if (snapshot.status !== 'active') this.#living.delete(id);
      changed(id, snapshot);
      if (snapshot.hasTag('atRest')) this.#release(id, actor);
    });
    return actor;
  }

  /** Releases an actor, but not within its own transition, and not when it has work again. */
  #release(id: string, actor: AutomationActor): void {
    if (this.#host.keepsResting()) return;
    setImmediate(() => {
      const isResting = this.#living.get(id) === actor && actor.getSnapshot().hasTag('atRest');
      if (isResting && !this.#host.keepsResting()) this.#forget(id, actor);
    });
  }

  #forget(id: string, actor: AutomationActor): void {
    this.#living.delete(id);
    actor.stop();
  }
}
