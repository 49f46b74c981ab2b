import { type Automation, runStatuses } from '../protocol/index.ts';
import type { Family } from './metric.ts';
import { Counter } from './numbers.ts';
import { agentMetrics } from './table.ts';

const ends = runStatuses.filter((status) => status !== 'running');

/** Ends of automation runs since the process started, derived from the newest runs that an automation shows. */
export class RunNumbers {
  readonly #runs = new Counter(
    agentMetrics.automationRuns,
    ends.map((status) => ({ status })),
  );
  readonly #since: string;
  /** By automation: when the last run ended that was counted. */
  readonly #counted = new Map<string, string>();

  /** @param since earlier ends belong to another process */
  constructor(since = new Date().toISOString()) {
    this.#since = since;
  }

  /** Call it at once with every change: a removed actor reports its numbers for the last time. */
  note({ id, recentRuns }: Pick<Automation, 'id' | 'recentRuns'>, isRemoved: boolean): void {
    const last = this.#counted.get(id) ?? this.#since;
    let newest = last;
    for (const { status, finishedAt } of recentRuns) {
      if (status === 'running' || finishedAt === undefined || finishedAt <= last) continue;
      this.#runs.add({ status });
      if (finishedAt > newest) newest = finishedAt;
    }
    if (isRemoved) this.#counted.delete(id);
    else if (newest !== last) this.#counted.set(id, newest);
  }

  families(): Family[] {
    return [this.#runs.family()];
  }
}
