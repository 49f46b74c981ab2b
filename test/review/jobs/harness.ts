/** A job worker on a real store, with fakes for the forge and the runs that record their calls. */
import type { Test } from 'tap';
import { SourceError } from '../../../src/review/github/index.ts';
import { createJobWorker, type JobRuns, type JobSource, type JobWorker } from '../../../src/review/jobs/index.ts';
import type { BackendSettings } from '../../../src/review/settings/index.ts';
import type { ItemFacts, ReviewStore, StoredRepository, StoredWrite } from '../../../src/review/store/index.ts';
import { facts, quiet, repositoryKey, type Subject, sqliteSubject, wanted } from '../store/databases.ts';
import { settingsWith } from '../webhook/harness.ts';

export interface Scene {
  readonly store: ReviewStore;
  readonly subject: Subject;
  readonly forge: FakeForge;
  readonly runs: FakeRuns;
  readonly worker: JobWorker;
  settings: BackendSettings;
  /** Resolves when nothing is left to do now. */
  readonly idle: () => Promise<void>;
}

/** Fake forge with configurable responses that records its calls. */
export class FakeForge implements JobSource {
  readonly pulls = new Map<number, ItemFacts | 'gone'>();
  readonly sent: StoredWrite[] = [];
  readonly synced: string[] = [];
  readonly writers = new Set(['alice']);
  reads = 0;
  forgotten = 0;
  requests = 0;
  /** Thrown by the next calls, one each. */
  readonly readFailures: Error[] = [];
  readonly sendFailures: Error[] = [];
  readonly syncFailures = new Map<string, Error>();
  readonly reconciled: number[] = [];

  readonly readPull: JobSource['readPull'] = async (_, number) => {
    this.reads += 1;
    const failure = this.readFailures.shift();
    if (failure) throw failure;
    return this.pulls.get(number) ?? 'gone';
  };
  readonly isCollaborator: JobSource['isCollaborator'] = async (_, login) => this.writers.has(login);
  readonly send: JobSource['send'] = async (write) => {
    this.sent.push(write);
    const failure = this.sendFailures.shift();
    if (failure) throw failure;
    return { url: 'https://github.com/octo/hello/pull/7#done' };
  };
  /** Writes that were checked for duplicates. */
  readonly checked: string[] = [];
  readonly removeDuplicates: JobSource['removeDuplicates'] = async ({ writeId }) => {
    this.checked.push(writeId);
    return 0;
  };
  readonly clearInstallations = (): void => {
    this.forgotten += 1;
  };
  readonly reconcile: JobSource['reconcile'] = async (state, now) => {
    this.reconciled.push(state.settledUntil);
    return { state: { ...state, settledUntil: now }, redelivered: [], waiting: 0, lost: [] };
  };
  readonly syncAll: JobSource['syncAll'] = (repositories) => this.#syncAll(repositories);

  async *#syncAll(repositories: readonly StoredRepository[]) {
    for (const repository of repositories) {
      this.synced.push(repository.repositoryKey);
      const error = this.syncFailures.get(repository.repositoryKey);
      if (error) yield { repository, error };
      else yield { repository, result: { changed: 1, apiCalls: 2, notModified: 0 } };
    }
  }
}

/** Reviews that are only queued. */
export class FakeRuns implements JobRuns {
  readonly dispatched: unknown[] = [];
  readonly cancelled: string[] = [];
  readonly resolved: unknown[] = [];
  readonly settled: StoredWrite[] = [];
  ticks = 0;
  refusal: Error | undefined;
  readonly #store: ReviewStore;

  constructor(store: ReviewStore) {
    this.#store = store;
  }

  readonly dispatch: JobRuns['dispatch'] = async (item, wish) => {
    if (this.refusal) throw this.refusal;
    this.dispatched.push({ number: item.number, headSha: item.headSha, ...wish });
    const { itemId, repositoryKey, number, headSha, baseSha } = item;
    return this.#store.enqueueRun({
      itemId,
      repositoryKey,
      number,
      headSha,
      baseSha,
      sinceSha: null,
      ...wish,
      deliveryId: wish.deliveryId ?? null,
    });
  };
  readonly cancel: JobRuns['cancel'] = async (runId) => {
    this.cancelled.push(runId);
    const run = await this.#store.requestCancel(runId);
    if (!run) throw new Error('no such run');
    return run;
  };
  readonly resolveFinding: JobRuns['resolveFinding'] = async (...given) => {
    this.resolved.push(given);
  };
  readonly settleWrite: JobRuns['settleWrite'] = async (write) => {
    this.settled.push(write);
  };
  readonly tick: JobRuns['tick'] = async () => {
    this.ticks += 1;
  };
}

export const unreachable = (retryAfterMs?: number) =>
  new SourceError('sourceUnavailable', 'GitHub answered 502', 502, retryAfterMs);
export const forbidden = () => new SourceError('forbidden', 'GitHub answered 403', 403);

export async function scene(t: Test, github: object = { WritesEnabled: true }): Promise<Scene> {
  const subject = sqliteSubject(t);
  const store = await subject.open();
  await store.syncRepositories([wanted()]);
  const forge = new FakeForge();
  forge.pulls.set(7, facts(7));
  const runs = new FakeRuns(store);
  const made: { settings: BackendSettings } = { settings: settingsWith(github) };
  const worker = createJobWorker({
    ...{ store, source: forge, runs, logger: quiet, node: 'one' },
    settings: () => made.settings,
  });
  t.teardown(() => worker.stop());
  const idle = async () => {
    for (;;) {
      const { jobs, oldestDueAt } = await store.backlog();
      const taken = [...jobs.values()].reduce((all, each) => all + each.taken, 0);
      if (taken === 0 && oldestDueAt === null && worker.running() === 0) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  worker.start();
  return Object.assign(made, { store, subject, forge, runs, worker, idle });
}

/** The back-off is over, and the worker hears of it. */
export async function pausesEnd({ subject, worker }: Scene): Promise<void> {
  await pauseOver(subject);
  worker.start();
}

/** The back-off is over. */
export async function pauseOver(subject: Subject): Promise<void> {
  await subject.sql('update jobs set "dueAt" = 1 where "leaseOwner" is null');
}

export { facts, repositoryKey };
