import type { AnyMachineSnapshot } from 'xstate';
import type { AgentServerContext } from '../../machines/index.ts';
import type { Family } from './metric.ts';
import { Counter, Histogram } from './numbers.ts';
import type { StateChange, StateListener, WatchedActor } from './state-watch.ts';
import { hubMetrics } from './table.ts';

const agentServer = 'agent-server';

interface Progress {
  /** When the start began that is under way. */
  startingSince: number | undefined;
  probeFailures: number;
}

/** Counters of the Hub's supervision since it started. */
export class SupervisionNumbers implements StateListener {
  readonly #transitions = new Counter(hubMetrics.transitions);
  readonly #restarts = new Counter(hubMetrics.restarts, [{}]);
  readonly #startDuration = new Histogram(hubMetrics.startDuration, [{ ownership: 'managed' }]);
  readonly #probeFailures = new Counter(hubMetrics.probeFailures, [{}]);
  readonly #progress = new WeakMap<WatchedActor, Progress>();

  onSnapshot(actor: WatchedActor, snapshot: AnyMachineSnapshot): void {
    if (actor.machine !== agentServer) return;
    const { probeFailures } = snapshot.context as AgentServerContext;
    const progress = this.#progressOf(actor);
    if (probeFailures > progress.probeFailures) this.#probeFailures.add({}, probeFailures - progress.probeFailures);
    progress.probeFailures = probeFailures;
  }

  onChange(actor: WatchedActor, { at, entered, isFirst }: StateChange, snapshot: AnyMachineSnapshot): void {
    if (isFirst) return;
    for (const state of entered) {
      if (state.includes('.')) continue;
      this.#transitions.add({ machine: actor.machine, state });
      if (actor.machine === agentServer) this.#enter(actor, state, at, snapshot.context as AgentServerContext);
    }
  }

  onGone(): void {
    // Past events stay counted.
  }

  families(): Family[] {
    return [this.#transitions, this.#restarts, this.#startDuration, this.#probeFailures].map((numbers) =>
      numbers.family(),
    );
  }

  #enter(actor: WatchedActor, state: string, at: number, context: AgentServerContext): void {
    const progress = this.#progressOf(actor);
    // A requested start has no pause before it.
    if (state === 'starting' && context.delayMs !== null) this.#restarts.add({});
    if (state === 'running' && progress.startingSince !== undefined) {
      this.#startDuration.observe({ ownership: context.ownership }, (at - progress.startingSince) / 1_000);
    }
    progress.startingSince = state === 'starting' ? at : undefined;
  }

  #progressOf(actor: WatchedActor): Progress {
    let progress = this.#progress.get(actor);
    if (!progress) {
      progress = { startingSince: undefined, probeFailures: 0 };
      this.#progress.set(actor, progress);
    }
    return progress;
  }
}
