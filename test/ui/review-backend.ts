/** The review backend as its page sees it: the real API over a real SQLite store, with a page, and actions that only keep books. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '../../src/log/index.ts';
import type { FindingHunk, ReviewEventKind, ReviewRunState, SyncJob } from '../../src/protocol/index.ts';
import { createReviewServer, observationRoutes, type ReviewActions } from '../../src/review/api/index.ts';
import { createInspection } from '../../src/review/backend/inspection.ts';
import { ReviewError } from '../../src/review/errors.ts';
import { reviewPagePath, reviewPageRoutes } from '../../src/review/page/index.ts';
import { SettingsSource } from '../../src/review/settings/index.ts';
import {
  hunksFact,
  type ItemFacts,
  openReviewStore,
  type ReviewStore,
  type RunChange,
  type StoredDraft,
  type StoredFinding,
  type StoredItem,
} from '../../src/review/store/index.ts';
import { pagePort } from './page-server.ts';

export const reviewToken = 'service-token-of-the-tests';
export const repositoryKey = 'github:github.com/octo/bookshop';

const settingsText = (repositories: readonly string[]) =>
  JSON.stringify({
    Oratorio: {
      GitHub: { AppId: 7, Repositories: repositories, WebhookSecret: 'hush-hush-hush', WritesEnabled: true },
      AgentServer: {
        RepositoryWorkspaceRoutes: [{ Project: 'octo/bookshop', WorkspacePath: '/srv/work/bookshop' }],
      },
      Automation: { AutoReviewRepositories: ['octo/bookshop'] },
    },
  });

export const pullOf = (number: number, change: Partial<ItemFacts> = {}): ItemFacts => ({
  repositoryKey,
  number,
  title: `Change ${number}`,
  description: '',
  author: 'ada',
  authorAssociation: 'MEMBER',
  isBot: false,
  state: 'open',
  isDraft: false,
  isFork: false,
  labels: [],
  baseRef: 'main',
  baseSha: 'b'.repeat(40),
  headRef: `feature-${number}`,
  headSha: String(number).padStart(40, '0'),
  url: `https://github.com/octo/bookshop/pull/${number}`,
  updatedAt: Date.now() - 60_000 * number,
  ...change,
});

let made = 0;

export function findingOf(change: Partial<StoredFinding> = {}): Omit<StoredFinding, 'itemId' | 'draftId'> {
  made += 1;
  return {
    findingId: `f${made}`,
    severity: 'major',
    kind: 'suggestion',
    title: 'The voucher is applied twice',
    body: 'A voucher that covers the whole order is taken off again when the tax is worked out.',
    path: 'src/shop/cart.ts',
    side: 'RIGHT',
    line: 42,
    startLine: 41,
    oldText: 'const total = sum(lines);\nreturn total - voucher - voucher;\n',
    newText: 'const total = sum(lines);\nreturn total - voucher;\n',
    placement: 'inline',
    fingerprint: `fp${made}`,
    status: 'accepted',
    isResolved: false,
    isPublished: false,
    warnings: [],
    commentId: null,
    threadNodeId: null,
    url: null,
    ...change,
  };
}

type NewDraft = Partial<Omit<StoredDraft, 'findings'>> & {
  /** The diff around findings, by their ids. */
  readonly hunks?: Readonly<Record<string, FindingHunk>>;
  readonly findings?: readonly Omit<StoredFinding, 'itemId' | 'draftId'>[];
};

const portVariable = 'Oratorio__Server__Port';
/** Settings after `--port`, with a variable of the user. */
const variables = { [portVariable]: '5187', Oratorio__Review__MaxFindings: '9' };

/** Starts the API with the page of `pageDirectory`; `repositories`: names in the settings. */
export async function startReviewBackend(pageDirectory: string, repositories: readonly string[] = ['octo/bookshop']) {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-review-page-'));
  const file = join(directory, 'oratorio.config.json');
  writeFileSync(file, settingsText(repositories));
  const logger = createLogger({ name: 'test', level: 'silent' });
  const store = await openReviewStore({ directory, owner: 'test', logger });
  const settings = new SettingsSource({
    place: { file, env: variables, options: new Map([[portVariable, '--port']]), stateRoot: directory },
    logger,
  });
  await store.syncRepositories(
    repositories.map((full) => {
      const [owner = '', name = ''] = full.split('/');
      return { repositoryKey: `github:github.com/${full}`, instance: 'github.com', owner, name, autoReview: true };
    }),
  );
  const calls: { readonly act: string; readonly given: unknown }[] = [];
  const inspection = createInspection(logger);
  const observed = observationRoutes({
    token: () => reviewToken,
    inspection: inspection.source,
    stately: inspection.stately,
    charts: async () => [],
    metrics: async () => ({ contentType: 'text/plain', text: '' }),
  });
  const server = await createReviewServer({
    isOwn: () => true,
    ...{ store, settings, logger, node: 'one', version: '1.2.3' },
    token: () => reviewToken,
    actions: actionsOn(store, (act, given) => calls.push({ act, given })),
    more: [...observed, ...reviewPageRoutes({ directory: pageDirectory })],
  });
  const { port } = await server.http.listen({ host: '127.0.0.1', port: await pagePort() });
  const origin = `http://127.0.0.1:${port}`;
  const emit = (kind: ReviewEventKind, data: Record<string, unknown> = {}) => store.publish(kind, data);

  /** A pull request that is known. */
  async function pull(number: number, change: Partial<ItemFacts> = {}): Promise<StoredItem> {
    const { item } = await store.upsertItem(pullOf(number, change));
    await emit('item.changed', { itemId: item.itemId });
    return item;
  }

  async function begin(item: StoredItem) {
    await store.enqueueRun({ ...wishFor(item), trigger: 'auto', scope: 'full', focus: null });
    const claim = await store.claimRun('test', 3_600_000, { global: 99, perRepository: 99, perSource: 99 });
    if (!claim) throw new Error('There is no run to claim.');
    return claim;
  }

  return {
    url: `${origin}${reviewPagePath}`,
    ...{ origin, store, settings, calls, emit, pull },
    /** Handed to an actor that is to be seen on the page. */
    inspect: inspection.inspect,

    /** A review of it that is in this state. */
    async run(item: StoredItem, state: ReviewRunState, change: RunChange = {}) {
      const { run, lease } = await begin(item);
      await store.updateRun(run.runId, lease, { state, ...change });
      await emit('run.changed', { runId: run.runId, itemId: item.itemId });
      return { runId: run.runId, lease };
    },

    /** A finished review with a draft. */
    async draft(
      item: StoredItem,
      { findings = [findingOf()], hunks = {}, ...change }: NewDraft = {},
    ): Promise<StoredDraft> {
      const { run, lease } = await begin(item);
      await store.setFact(hunksFact(run.runId), JSON.stringify(hunks));
      const draftId = `draft-${run.runId}`;
      const draft = await store.putDraft(lease, {
        ...{ draftId, runId: run.runId, itemId: item.itemId, headSha: item.headSha, status: 'draft' },
        ...{ summary: 'The change is small and mostly right.', reviewedFiles: 3, totalFiles: 4 },
        ...{
          skippedFiles: [{ path: 'package-lock.json', reason: 'generated' }],
          warnings: [],
          dropped: [
            {
              ...{ severity: 'minor', title: 'Repeated remark', path: 'src/cart.ts', side: 'RIGHT', line: 3 },
              reason: 'alreadyPublished',
            },
          ],
          blockedBy: null,
        },
        ...change,
        findings: findings.map((finding) => ({ ...finding, draftId, itemId: item.itemId })),
      });
      await store.updateRun(run.runId, lease, { state: 'done', threadId: 'thread_review_1', turnId: 'turn_1' });
      await store.updateItem(item.itemId, { reviewedHeadSha: item.headSha });
      await emit('draft.changed', { draftId, itemId: item.itemId });
      return draft;
    },

    async close() {
      inspection.end();
      await server.close();
      settings.close();
      await store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
export type ReviewBackend = Awaited<ReturnType<typeof startReviewBackend>>;

const wishFor = ({ itemId, repositoryKey, number, headSha, baseSha }: StoredItem) => ({
  ...{ itemId, repositoryKey, number, headSha, baseSha },
  sinceSha: null,
});

/** Actions of the review backend without a forge and without an agent. */
function actionsOn(store: ReviewStore, note: (act: string, given: unknown) => void): ReviewActions {
  async function change(draftId: string, change: Parameters<ReviewStore['updateDraft']>[2]): Promise<void> {
    const draft = await store.draft(draftId);
    if (!draft) throw new ReviewError('notFound', 'Unknown draft.');
    await store.updateDraft(draftId, draft.version, change);
    await store.publish('draft.changed', { draftId, itemId: draft.itemId });
  }
  return {
    async dispatch(item, wish) {
      note('dispatch', { number: item.number, ...wish });
      const made = await store.enqueueRun({ ...wishFor(item), trigger: 'manual', ...wish });
      await store.publish('run.changed', { runId: made.run.runId, itemId: item.itemId });
      return made;
    },
    async cancel(runId) {
      note('cancel', { runId });
      const run = await store.requestCancel(runId);
      if (!run) throw new ReviewError('notFound', 'Unknown review run.');
      await store.publish('run.changed', { runId, itemId: run.itemId });
      return run;
    },
    async publish(draftId, { override }) {
      note('publish', { override });
      const draft = await store.draft(draftId);
      const blockedBy = draft?.blockedBy;
      const isOverridable = blockedBy?.code !== 'leak';
      if (blockedBy && (!override || !isOverridable))
        throw new ReviewError('draftBlocked', blockedBy.message, { blockedBy, isOverridable });
      for (const { findingId, status } of draft?.findings ?? [])
        if (status === 'accepted')
          await store.updateFinding(findingId, {
            isPublished: true,
            url: 'https://github.com/octo/bookshop/pull/1#r1',
          });
      await change(draftId, {
        status: 'published',
        publishedAt: Date.now(),
        url: 'https://github.com/octo/bookshop/pull/1',
      });
    },
    traceUrl: async ({ threadId }) =>
      threadId === null ? undefined : `http://127.0.0.1:1/dashboard/#token=of-it&at=%2Fsessions%2F${threadId}`,
    async discard(draftId) {
      note('discard', {});
      await change(draftId, { status: 'discarded' });
    },
    async resolveFinding(findingId, resolution, text) {
      note('resolve', { resolution, note: text });
      const finding = await store.updateFinding(findingId, {
        isResolved: true,
        resolution,
        ...(text !== null && { resolutionNote: text }),
      });
      await store.publish('draft.changed', { draftId: finding?.draftId, itemId: finding?.itemId });
    },
    async sync(repositoryKey) {
      note('sync', { repositoryKey });
      const counts = { repositories: 1, changedItems: 2, apiCalls: 3, notModified: 0 };
      const job: Omit<SyncJob, 'createdAt'> = {
        ...counts,
        jobId: `sync-${Date.now()}`,
        trigger: 'manual',
        status: 'succeeded',
        ...(repositoryKey !== undefined && { repositoryKey }),
      };
      await store.putSyncJob(job);
      await store.publish('sync.changed', { jobId: job.jobId });
      return { ...job, createdAt: new Date().toISOString() };
    },
    async retryWrite({ writeId }) {
      note('retryWrite', { writeId });
      await store.updateWrite(writeId, { status: 'pending' });
      await store.publish('write.changed', { writeId });
    },
  };
}
