import { createHash } from 'node:crypto';
import type { Logger } from '../../log/index.ts';
import { type BackendSettings, configuredRepositories } from '../settings/index.ts';
import { type NewJob, type ReviewStore, retryLevel, type StoredRepository } from '../store/index.ts';
import { limits } from './limits.ts';

type RoleStore = Pick<ReviewStore, 'takeRoles' | 'enqueueJob' | 'repositories' | 'now'>;
export interface RolesOptions {
  readonly store: RoleStore;
  readonly settings: () => BackendSettings;
  readonly node: string;
  readonly logger: Logger;
  readonly tick: () => void;
  /** Whether the source is ready. Without credentials no jobs are queued, because they would fail. */
  readonly hasSource: () => boolean;
  readonly tickMs?: number;
}

/** Recurring work for one process at a time. */
interface Role {
  readonly name: string;
  readonly needsSource: boolean;
  /** Queues due work. @param now milliseconds since the epoch by the clock of the database */
  readonly queueDue: (now: number) => Promise<void>;
}

/**
 * Queues recurring work. One replica holds each role; it only queues jobs, each of them once, so that leases, retries and dead jobs
 * work as for any other job, on any replica.
 */
export class Roles {
  readonly #options: RolesOptions;
  readonly #roles: readonly Role[];
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> = Promise.resolve();
  readonly #held = new Set<string>();
  readonly #failing = new Set<string>();
  /** Time of the latest check that ended well. */
  #checkedAt = performance.now();

  constructor(options: RolesOptions) {
    this.#options = options;
    const { store } = options;
    const enqueue = (job: NewJob) => store.enqueueJob(job);
    this.#roles = [
      { name: 'sync', needsSource: true, queueDue: syncSchedule(options) },
      {
        name: 'reconcile',
        needsSource: true,
        queueDue: every(
          () => options.settings().Automation.ReconcileIntervalSeconds * 1_000,
          () => enqueue({ kind: 'reconcile', key: 'reconcile', payload: {}, dedupe: 'reconcile' }),
        ),
      },
      {
        name: 'cleanup',
        needsSource: false,
        queueDue: every(
          () => limits.cleanupMs,
          () => enqueue({ kind: 'cleanup', key: 'cleanup', payload: {}, dedupe: 'cleanup' }),
        ),
      },
      {
        name: 'autoReview',
        needsSource: false,
        queueDue: every(
          () => limits.autoReviewMs,
          async () => options.tick(),
        ),
      },
    ];
  }

  start(): void {
    const check = () => {
      this.#checking = this.#checkAll().finally(() => {
        if (this.#timer !== undefined) this.#timer = setTimeout(check, this.#options.tickMs ?? limits.roleTickMs);
      });
    };
    this.#checkedAt = performance.now();
    this.#timer = setTimeout(check, 0);
  }

  /** Time without a successful check while checking, in milliseconds. */
  get idleMs(): number {
    return this.#timer === undefined ? 0 : performance.now() - this.#checkedAt;
  }

  /** Stops checking and releases the roles, so that another process need not wait for the leases to expire. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#checking;
    const { store, node } = this.#options;
    await store.takeRoles([...this.#held], node, 0).catch(() => {});
    this.#held.clear();
  }

  async #checkAll(): Promise<void> {
    const { hasSource } = this.#options;
    const wanted = this.#roles.filter(({ needsSource }) => !needsSource || hasSource());
    await this.#attempt('all', async () => {
      const now = await this.#take(wanted);
      const held = wanted.filter(({ name }) => this.#held.has(name));
      for (const { name, queueDue } of held) await this.#attempt(name, () => queueDue(now));
      this.#checkedAt = performance.now();
    });
  }

  /** Takes or renews roles. @returns the time by the clock of the database */
  async #take(wanted: readonly Role[]): Promise<number> {
    const { store, node } = this.#options;
    const names = wanted.map(({ name }) => name);
    const taken = await store.takeRoles(names, node, limits.roleMs);
    for (const name of names) {
      if (taken.has(name)) this.#held.add(name);
      else this.#held.delete(name);
    }
    return store.now();
  }

  async #attempt(role: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failing.delete(role);
    } catch (error) {
      // Logged once per outage: the next check follows after `roleTickMs`.
      if (!this.#failing.has(role))
        this.#options.logger[retryLevel(error)]('could not queue recurring work; retrying', { role, error });
      this.#failing.add(role);
    }
  }
}

/** Runs `work` at once and then at the interval: a process that has just taken the role does not know the time of the last run. */
function every(intervalMs: () => number, work: () => Promise<void>): Role['queueDue'] {
  let last = Number.NEGATIVE_INFINITY;
  return async (now) => {
    if (now - last < intervalMs() && now >= last) return;
    last = now;
    await work();
  };
}

/**
 * Queues a sync job per repository, so that a large or failing repository does not delay others. Each repository has its own phase
 * within the interval, which spreads the syncs evenly. A repository that was never synced is due at once.
 */
function syncSchedule({ store, settings }: RolesOptions): Role['queueDue'] {
  const queuedAt = new Map<string, number>();
  return async (now) => {
    const current = settings();
    const intervalMs = current.Automation.SyncIntervalSeconds * 1_000;
    const configured = new Set(configuredRepositories(current).map(({ repositoryKey }) => repositoryKey));
    for (const key of queuedAt.keys()) if (!configured.has(key)) queuedAt.delete(key);
    const due = (await store.repositories()).filter(
      (repository) =>
        repository.isEnabled &&
        configured.has(repository.repositoryKey) &&
        isDue(repository, queuedAt.get(repository.repositoryKey) ?? 0, now, intervalMs),
    );
    await Promise.all(
      due.map(async ({ repositoryKey }) => {
        queuedAt.set(repositoryKey, now);
        const payload = { trigger: 'schedule', repositoryKey };
        await store.enqueueJob({ kind: 'sync', key: repositoryKey, payload, dedupe: `schedule:${repositoryKey}` });
      }),
    );
  };
}

/** Whether the phase of the repository has passed since its last sync. Pure. @param queuedAt, now milliseconds since the epoch */
export function isDue(
  {
    repositoryKey,
    lastSyncAt,
    lastSyncError,
  }: Pick<StoredRepository, 'repositoryKey' | 'lastSyncAt' | 'lastSyncError'>,
  queuedAt: number,
  now: number,
  intervalMs: number,
): boolean {
  const last = Math.max(lastSyncAt ?? 0, lastSyncError?.at ?? 0, queuedAt);
  // A clock that was set back must not stop the syncs.
  if (last === 0 || last > now + intervalMs) return true;
  const phase = phaseOf(repositoryKey) % intervalMs;
  return Math.floor((now - phase) / intervalMs) > Math.floor((last - phase) / intervalMs);
}

const phaseOf = (key: string): number => createHash('sha256').update(key).digest().readUInt32BE(0);
