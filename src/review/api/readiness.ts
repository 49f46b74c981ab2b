import { messageOf } from '../../lib/index.ts';
import type { ReviewStore } from '../store/index.ts';
import { limits } from './limits.ts';

/** Fact that health checks write: a database can answer while it accepts no writes. */
const factName = 'health';

/** Readiness of this process: its database answers and accepts writes, and its work continues. */
export class Readiness {
  readonly #store: Pick<ReviewStore, 'now' | 'setFact'>;
  readonly #workProblem: () => string | undefined;
  #latest: Promise<string | undefined> | undefined;
  #checkAgainAt = 0;
  #writeAgainAt = 0;

  /** @param workProblem - reason why this process does no work at present */
  constructor(store: Pick<ReviewStore, 'now' | 'setFact'>, workProblem: () => string | undefined = () => undefined) {
    this.#store = store;
    this.#workProblem = workProblem;
  }

  /** Reason why this process is not ready; undefined when it is. Concurrent and frequent requests share one check. */
  async problem(): Promise<string | undefined> {
    if (!this.#latest || performance.now() > this.#checkAgainAt) {
      // Only one check waits at a time.
      this.#checkAgainAt = Number.POSITIVE_INFINITY;
      this.#latest = this.#check().finally(() => {
        this.#checkAgainAt = performance.now() + limits.healthCacheMs;
      });
    }
    return (await inTime(this.#latest)) ?? this.#workProblem();
  }

  async #check(): Promise<string | undefined> {
    try {
      const now = await this.#store.now();
      if (performance.now() < this.#writeAgainAt) return undefined;
      await this.#store.setFact(factName, new Date(now).toISOString());
      this.#writeAgainAt = performance.now() + limits.healthWriteMs;
      return undefined;
    } catch (error) {
      return `The database accepts no writes: ${messageOf(error)}`;
    }
  }
}

async function inTime(check: Promise<string | undefined>): Promise<string | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(() => resolve('The database does not answer.'), limits.healthMs);
  try {
    return await Promise.race([check, late]);
  } finally {
    clearTimeout(timer);
  }
}
