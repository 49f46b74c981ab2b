/** A backend's runs with the real SQLite store; git, the agent, the forge and the clock are the test's. */
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import type { Test } from 'tap';
import * as v from 'valibot';
import type { SubmittedFinding } from '../../../src/protocol/index.ts';
import type {
  AnchoredFinding,
  ReviewAgent,
  ReviewAssignment,
  ReviewHooks,
  ReviewSubmission,
} from '../../../src/review/agent/index.ts';
import { anchorFinding, fingerprintOf } from '../../../src/review/anchors/index.ts';
import type { Change, PreparedReview, ReviewGit, ReviewTarget } from '../../../src/review/git/index.ts';
import { createReviewRuns, type ReviewRuns, type ReviewRunsOptions } from '../../../src/review/runs/index.ts';
import { BackendSettings } from '../../../src/review/settings/index.ts';
import type { ItemFacts, ReviewStore, StoredItem, StoredWrite } from '../../../src/review/store/index.ts';
import { facts, quiet, repositoryKey, type Subject, sqliteSubject, wanted } from '../store/databases.ts';

/** Time that passes when the test says so. Timers fire in their order. */
export class TestClock {
  #now = 1_000_000;
  #timers: { readonly id: number; readonly at: number; readonly body: () => void }[] = [];
  #next = 1;

  now = (): number => this.#now;
  setTimeout = (body: () => void, ms: number): number => {
    const id = this.#next++;
    this.#timers.push({ id, at: this.#now + ms, body });
    return id;
  };
  clearTimeout = (id: unknown): void => {
    this.#timers = this.#timers.filter((each) => each.id !== id);
  };
  get pending(): number {
    return this.#timers.length;
  }
  advance(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at || a.id - b.id)[0];
      if (!due) break;
      this.#timers = this.#timers.filter((each) => each !== due);
      this.#now = Math.max(this.#now, due.at);
      due.body();
    }
    this.#now = until;
  }
}

/** One file with a few lines, changed in each head by its name: `head-1` holds `const value = 'head-1';`. */
export function changeTo(head: string, path = 'src/a.ts', extra: readonly string[] = []): Change {
  const added = [`const value = '${head}';`, 'use(value);', ...extra];
  const diff = [
    `diff --git a/${path} b/${path}`,
    'index 1111111..2222222 100644',
    `--- a/${path}`,
    `+++ b/${path}`,
    `@@ -1,2 +1,${added.length + 1} @@`,
    ' start();',
    '-old();',
    ...added.map((line) => `+${line}`),
    '',
  ].join('\n');
  return {
    diff,
    isDiffCut: false,
    files: [
      {
        path,
        oldPath: null,
        status: 'modified',
        isBinary: false,
        isSubmodule: false,
        isSymlink: false,
        additions: added.length,
        deletions: 1,
        isNameBroken: false,
      },
    ],
  };
}
const headText = (head: string, extra: readonly string[] = []): string =>
  ['start();', `const value = '${head}';`, 'use(value);', ...extra, ''].join('\n');

/** A step that waits until the test opens the gate. */
export class Gate {
  readonly reached = Promise.withResolvers<void>();
  readonly #open = Promise.withResolvers<void>();
  open(): void {
    this.#open.resolve();
  }
  fail(error: unknown): void {
    this.#open.reject(error);
  }
  async pass(signal?: AbortSignal): Promise<void> {
    this.reached.resolve();
    await Promise.race([
      this.#open.promise,
      new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
    ]);
  }
}

export class FakeGit {
  readonly prepared: ReviewTarget[] = [];
  readonly released: [string, string][] = [];
  /** Called before a worktree is made; may throw or wait. */
  onPrepare: (target: ReviewTarget) => Promise<void> | void = () => {};
  change: (head: string) => Change = (head) => changeTo(head);
  since: ((head: string, since: string) => Change | null) | undefined;
  changeSince: (head: string, earlier: string) => Change | null = () => null;
  headText: (head: string) => string = (head) => headText(head);
  /** Texts of the head by path; a path that is not in it has `headText`. */
  headTexts: (head: string) => Readonly<Record<string, string>> = () => ({});
  baseFiles: Record<string, string> = {};
  verifyClean: ReviewGit['verifyClean'] = async () => {};
  release: ReviewGit['release'] = async (runId, outcome) => {
    this.released.push([runId, outcome]);
  };
  prepare: ReviewGit['prepare'] = async (target) => {
    this.prepared.push(target);
    await target.token();
    await this.onPrepare(target);
    const { headSha, sinceSha, baseSha, runId } = target;
    const since = sinceSha === null ? null : (this.since ?? ((head) => this.change(head)))(headSha, sinceSha);
    const readHead = async () => this.headText(headSha);
    const prepared: PreparedReview = {
      ...this.change(headSha),
      worktreePath: `/worktrees/${runId}`,
      headSha,
      baseSha,
      mergeBaseSha: baseSha,
      scope: since ? 'incremental' : 'full',
      fullReason: since ? null : sinceSha === null ? 'notAsked' : 'forcePushed',
      since,
      omitted: [],
      baseFiles: async (path) => this.baseFiles[path] ?? null,
      readHead,
      readHeadBytes: async (paths) => new Map(paths.map((path) => [path, Buffer.from(this.headText(headSha))])),
      changeSince: async (sha) => this.changeSince(headSha, sha),
      readHeadFiles: async (paths) =>
        new Map(paths.map((path) => [path, this.headTexts(headSha)[path] ?? this.headText(headSha)])),
    };
    return prepared;
  };
}

export const finding = (change: Partial<SubmittedFinding> = {}): SubmittedFinding => ({
  severity: 'major',
  title: 'The value is never checked',
  body: 'It may be empty.',
  path: 'src/a.ts',
  oldText: 'use(value);',
  ...change,
});

export class FakeAgent {
  readonly asked: ReviewAssignment[] = [];
  readonly interrupted: string[] = [];
  hooks: ReviewHooks | undefined;
  /** Called during the turn; may throw or wait. */
  onReview: (assignment: ReviewAssignment, hooks: ReviewHooks) => Promise<void> | void = () => {};
  onInterrupt: () => Promise<void> | void = () => {};
  findings: (assignment: ReviewAssignment) => readonly SubmittedFinding[] = () => [finding()];
  resolved: (assignment: ReviewAssignment) => ReviewSubmission['resolved'] = () => [];
  withdrawn: ReviewSubmission['withdrawn'];
  summary = 'It looks fine.';
  /** Placement of findings; undefined to anchor a finding. */
  place: (finding: SubmittedFinding) => AnchoredFinding['anchor'] | undefined = () => undefined;

  review: ReviewAgent['review'] = async (assignment, hooks) => {
    this.asked.push(assignment);
    this.hooks = hooks;
    const ids = { threadId: `thread-${this.asked.length}`, turnId: `turn-${this.asked.length}` };
    await hooks.onTurn(ids);
    hooks.onActivity();
    await this.onReview(assignment, hooks);
    hooks.signal.throwIfAborted();
    return {
      ...ids,
      summary: this.summary,
      findings: this.findings(assignment).map((each) => this.#anchored(assignment, each)),
      resolved: this.resolved(assignment),
      ...(this.withdrawn && { withdrawn: this.withdrawn }),
      warnings: [],
    };
  };
  traceUrl: ReviewAgent['traceUrl'] = async (workspacePath, threadId) => `http://dashboard${workspacePath}#${threadId}`;
  interrupt: ReviewAgent['interrupt'] = async (_, threadId) => {
    this.interrupted.push(threadId);
    await this.onInterrupt();
  };

  #anchored({ diffFiles, prepared }: ReviewAssignment, submitted: SubmittedFinding): AnchoredFinding {
    const placed = this.place(submitted);
    const result = anchorFinding(diffFiles, submitted, () => headText(prepared.headSha));
    if ('error' in result && !placed) throw new Error(result.error.message);
    const anchor =
      placed ?? ('anchor' in result ? result.anchor : { placement: 'file' as const, reason: 'noText' as const });
    return { finding: submitted, anchor, fingerprint: fingerprintOf({ ...submitted, anchor }) };
  }
}

/** The forge's side of a pull request, and everything that was written to it. */
export class FakeForge {
  pull: ItemFacts | 'gone' = facts(1);
  reads = 0;
  readonly published: StoredWrite[] = [];
  onRead: () => Promise<void> | void = () => {};
  /** May throw: then the write is given up. */
  onSend: (write: StoredWrite) => void = () => {};
  readonly tokens = { read: async () => 'token' };
  readPull = async (): Promise<ItemFacts | 'gone'> => {
    this.reads += 1;
    await this.onRead();
    return this.pull;
  };

  push(head: string, change: Partial<ItemFacts> = {}): void {
    if (this.pull === 'gone') throw new Error('it is gone');
    this.pull = { ...this.pull, headSha: head, updatedAt: this.pull.updatedAt + 60_000, ...change };
  }

  respond(write: StoredWrite): Record<string, unknown> {
    const at = this.published.length + 100;
    const { comments = [] } = write.request as { comments?: { findingId: string }[] };
    const answers: Record<StoredWrite['kind'], Record<string, unknown>> = {
      review: {
        reviewId: at,
        url: `https://forge/review/${at}`,
        comments: comments.map(({ findingId }, index) => ({
          findingId,
          commentId: at * 10 + index,
          url: `https://forge/comment/${at * 10 + index}`,
          placement: 'inline',
        })),
      },
      summary: { commentId: 7, url: 'https://forge/summary' },
      fileComment: { commentId: at, url: `https://forge/comment/${at}` },
      resolveThread: { threadNodeId: 'node', wasResolved: false },
      checkRun: { checkRunId: at, url: null },
      reaction: { reactionId: at },
      reply: { commentId: at, url: 'https://forge/reply' },
    };
    return answers[write.kind];
  }

  of(kind: StoredWrite['kind']): StoredWrite[] {
    return this.published.filter((write) => write.kind === kind);
  }
}

type Settings = { readonly [K in keyof BackendSettings]?: Record<string, unknown> };
export function settingsOf(change: Settings = {}): BackendSettings {
  return v.parse(BackendSettings, {
    ...change,
    GitHub: { Repositories: ['octo/hello'], WritesEnabled: true, ...change.GitHub },
    AgentServer: {
      RepositoryWorkspaceRoutes: [{ Project: 'octo/hello', WorkspacePath: '/workspace/hello' }],
      RetryBackoffSeconds: 0,
      ...change.AgentServer,
    },
    Automation: { AutoReviewRepositories: ['*'], AutoReviewPublishEnabled: true, ...change.Automation },
    Review: { CheckRun: false, ...change.Review },
  });
}

export class World {
  readonly subject: Subject;
  readonly store: ReviewStore;
  readonly git = new FakeGit();
  readonly agent = new FakeAgent();
  readonly forge = new FakeForge();
  readonly clock = new TestClock();
  settings: BackendSettings;
  runs: ReviewRuns;
  readonly #options: Partial<ReviewRunsOptions>;
  readonly #all: ReviewRuns[] = [];

  private constructor(
    subject: Subject,
    store: ReviewStore,
    settings: BackendSettings,
    options: Partial<ReviewRunsOptions>,
  ) {
    this.subject = subject;
    this.store = store;
    this.settings = settings;
    this.#options = options;
    this.runs = this.another('one');
  }

  static async create(t: Test, change: Settings = {}, options: Partial<ReviewRunsOptions> = {}): Promise<World> {
    const subject = sqliteSubject(t);
    const store = await subject.open();
    const world = new World(subject, store, settingsOf(change), options);
    // Before the store is closed: teardowns are done in reverse.
    t.teardown(() => Promise.all(world.#all.map((runs) => runs.stop())));
    await store.syncRepositories([{ ...wanted(), autoReview: true }]);
    await store.updateRepository(repositoryKey, { baselineAt: 0 });
    await store.upsertItem(facts(1));
    return world;
  }

  /** Another process on the same database. */
  another(node: string, store: ReviewStore = this.store): ReviewRuns {
    const { git, agent, forge, clock } = this;
    const runs = createReviewRuns({
      ...{ store, git, agent, node, clock, logger: quiet },
      source: forge,
      settings: () => this.settings,
      ...this.#options,
    });
    this.#all.push(runs);
    return runs;
  }

  async item(): Promise<StoredItem> {
    const item = await this.store.itemByNumber(repositoryKey, 1);
    if (!item) throw new Error('there is no item');
    return item;
  }

  async dispatch(trigger: 'auto' | 'mention' | 'manual' = 'mention', scope: 'full' | 'incremental' = 'full') {
    const { run } = await this.runs.dispatch(await this.item(), { trigger, scope, focus: null });
    return run.runId;
  }

  /** Sends the writes in the outbox and settles them, like the worker of the backend. */
  async send(store: ReviewStore = this.store, runs: ReviewRuns = this.runs): Promise<number> {
    const { rows } = await store.writes({ status: 'pending', limit: 1_000 });
    for (const write of [...rows].reverse()) {
      try {
        this.forge.onSend(write);
        const response = this.forge.respond(write);
        this.forge.published.push(write);
        await store.updateWrite(write.writeId, { status: 'sent', response });
      } catch (error) {
        const lastError = { code: 'rejected', message: String(error) };
        await store.updateWrite(write.writeId, { status: 'failed', lastError });
      }
      const settled = await store.write(write.writeId);
      if (settled) await runs.settleWrite(settled);
    }
    return rows.length;
  }

  /** Repeats until `isSo`: sends writes (unless `sends` is false) and advances the clock by `ms`. */
  async until(isSo: () => Promise<boolean> | boolean, { sends = true, ms = 0 } = {}): Promise<void> {
    const end = Date.now() + 120_000;
    for (let round = 0; Date.now() < end; round += 1) {
      if (await isSo()) return;
      // Work that becomes due without a hint is found only by the timer of the store.
      if (round > 200) await pause(5);
      if (sends) await this.send();
      if (ms > 0) this.clock.advance(ms);
      await turn();
    }
    throw new Error('the condition was not reached within 120 s');
  }

  async ended(runId: string, options?: { sends?: boolean; ms?: number }) {
    await this.until(async () => (await this.run(runId)).finishedAt !== null, options);
    return this.run(runId);
  }

  async run(runId: string) {
    const run = await this.store.run(runId);
    if (!run) throw new Error('there is no such run');
    return run;
  }

  /** Everything that is leased may be taken by others. */
  async leasesRunOut(): Promise<void> {
    await this.subject.sql(`UPDATE "runs" SET "leaseUntil" = 1 WHERE "leaseOwner" IS NOT NULL`);
  }

  async pausesAreOver(): Promise<void> {
    await this.subject.sql(`UPDATE "runs" SET "nextAttemptAt" = NULL`);
  }
}
