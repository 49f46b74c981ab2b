import { createHash } from 'node:crypto';
import type { Logger } from '../../log/index.ts';
import { type BackendSettings, configuredRepositories } from '../settings/index.ts';
import type { NewJob, ReviewStore, StoredRepository } from '../store/index.ts';
import { limits } from './limits.ts';

type RoleStore = Pick<ReviewStore, 'takeRole' | 'enqueueJob' | 'repositories' | 'now'>;
export interface RolesOptions {
  readonly store: RoleStore;
  readonly settings: () => BackendSettings;
  readonly node: string;
  readonly logger: Logger;
  readonly tick: () => void;
  /** Whether the forge can be asked: without credentials no work is made that could only fail. */
  readonly hasSource: () => boolean;
  readonly tickMs?: number;
}

/** One thing that must be done from time to time, by one process at a time. */
interface Role {
  readonly name: string;
  readonly needsSource: boolean;
  /** Queues what is due. @param now by the clock of the database */
  readonly look: (now: number) => Promise<void>;
}

/**
 * What is done by the clock. Of all replicas one has each role; all it does is to queue jobs, each of them once, so that they
 * have leases, back-off and an end like any other work, whoever does them.
 */
export class Roles {
  readonly #options: RolesOptions;
  readonly #roles: readonly Role[];
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  readonly #held = new Set<string>();
  readonly #failing = new Set<string>();

  constructor(options: RolesOptions) {
    this.#options = options;
    const { store } = options;
    const enqueue = (job: NewJob) => store.enqueueJob(job);
    this.#roles = [
      { name: 'sync', needsSource: true, look: syncSchedule(options) },
      {
        name: 'reconcile',
        needsSource: true,
        look: every(
          () => options.settings().Automation.ReconcileIntervalSeconds * 1_000,
          () => enqueue({ kind: 'reconcile', key: 'reconcile', payload: {}, dedupe: 'reconcile' }),
        ),
      },
      {
        name: 'cleanup',
        needsSource: false,
        look: every(
          () => limits.cleanupMs,
          () => enqueue({ kind: 'cleanup', key: 'cleanup', payload: {}, dedupe: 'cleanup' }),
        ),
      },
      {
        name: 'autoReview',
        needsSource: false,
        look: every(
          () => limits.autoReviewMs,
          async () => options.tick(),
        ),
      },
    ];
  }

  start(): void {
    const look = () => {
      this.#looking = this.#lookAll().finally(() => {
        if (this.#timer !== undefined) this.#timer = setTimeout(look, this.#options.tickMs ?? limits.roleTickMs);
      });
    };
    this.#timer = setTimeout(look, 0);
  }

  /** Lets go of what it has, so that another process need not wait for the leases to run out. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#looking;
    const { store, node } = this.#options;
    await Promise.all([...this.#held].map((name) => store.takeRole(name, node, 0).catch(() => false)));
    this.#held.clear();
  }

  async #lookAll(): Promise<void> {
    for (const role of this.#roles) await this.#look(role);
  }

  async #look({ name, needsSource, look }: Role): Promise<void> {
    const { store, node, logger, hasSource } = this.#options;
    if (needsSource && !hasSource()) return;
    try {
      if (!(await store.takeRole(name, node, limits.roleMs))) {
        this.#held.delete(name);
        return;
      }
      this.#held.add(name);
      await look(await store.now());
      this.#failing.delete(name);
    } catch (error) {
      // Once: it is looked at again in a moment.
      if (!this.#failing.has(name)) logger.warn('what is due cannot be looked for', { role: name, error });
      this.#failing.add(name);
    }
  }
}

/** The first time at once: a process that has just got the role does not know when it was done last. */
function every(intervalMs: () => number, work: () => Promise<void>): Role['look'] {
  let last = Number.NEGATIVE_INFINITY;
  return async (now) => {
    if (now - last < intervalMs() && now >= last) return;
    last = now;
    await work();
  };
}

/**
 * Each repository has a moment of its own within the interval, so that the looks are spread evenly, and a queued job of its
 * own, so that one that is huge or fails stands in nobody's way. One that has never been looked at is due at once.
 */
function syncSchedule({ store, settings }: RolesOptions): Role['look'] {
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

/** Whether the repository's moment has come since it was looked at last. Pure. */
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
  // A clock that was put back must not stop the looks.
  if (last === 0 || last > now + intervalMs) return true;
  const phase = phaseOf(repositoryKey) % intervalMs;
  return Math.floor((now - phase) / intervalMs) > Math.floor((last - phase) / intervalMs);
}

const phaseOf = (key: string): number => createHash('sha256').update(key).digest().readUInt32BE(0);
