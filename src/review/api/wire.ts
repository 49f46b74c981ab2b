import type {
  Repository,
  ReviewDraft,
  ReviewFinding,
  ReviewItem,
  ReviewRun,
  SourceWrite,
} from '../../protocol/index.ts';
import type { BackendSettings, ConfiguredRepository } from '../settings/index.ts';
import type {
  ItemActivity,
  StoredDraft,
  StoredFinding,
  StoredItem,
  StoredRepository,
  StoredRun,
  StoredWrite,
} from '../store/index.ts';

const iso = (ms: number): string => new Date(ms).toISOString();
/** `{[key]: value}`, or `{}` without a value: the wire has no null. */
const given = <K extends string, V>(key: K, value: V | null | undefined): Partial<Record<K, V>> =>
  value === null || value === undefined ? {} : ({ [key]: value } as Partial<Record<K, V>>);
const givenTime = <K extends string>(key: K, ms: number | null): Partial<Record<K, string>> =>
  given(key, ms === null ? null : iso(ms));

export function wireItem(item: StoredItem, activity: ItemActivity | undefined): ReviewItem {
  const { itemId, repositoryKey, number, title, author, authorAssociation, state, isDraft, isFork, isPaused } = item;
  const { labels, baseRef, baseSha, headRef, headSha, url } = item;
  return {
    ...{ itemId, repositoryKey, number, title, author, authorAssociation, state, isDraft, isFork, isPaused },
    ...{ labels: [...labels], baseRef, baseSha, headRef, headSha, url },
    updatedAt: iso(item.updatedAt),
    ...given('reviewedHeadSha', item.reviewedHeadSha),
    openFindings: activity?.openFindings ?? 0,
    ...given('activeRunId', activity?.activeRunId),
    ...given('waitingRunId', activity?.waitingRunId),
  };
}

export function wireRun(run: StoredRun, settings: BackendSettings): ReviewRun {
  const { runId, itemId, repositoryKey, number, trigger, scope, headSha, baseSha, state, attempt } = run;
  return {
    ...{ runId, itemId, repositoryKey, number, trigger, scope, headSha, baseSha, state, attempt },
    ...given('focus', run.focus),
    ...given('deliveryId', run.deliveryId),
    ...given('sinceSha', run.sinceSha),
    maxAttempts: settings.AgentServer.MaxRunAttempts,
    ...givenTime('nextAttemptAt', run.nextAttemptAt),
    ...given('threadId', run.threadId),
    ...given('turnId', run.turnId),
    ...given('draftId', run.draftId),
    ...given('error', run.error),
    createdAt: iso(run.createdAt),
    ...givenTime('startedAt', run.startedAt),
    ...givenTime('finishedAt', run.finishedAt),
  };
}

/** Omits the fields of a finding that only the store needs. */
export function wireFinding(finding: StoredFinding): ReviewFinding {
  const { itemId: _, commentId: __, threadNodeId: ___, url, warnings, ...rest } = finding;
  return { ...rest, warnings: [...warnings], ...given('url', url) };
}

export function wireDraft(draft: StoredDraft): ReviewDraft {
  const { draftId, runId, itemId, headSha, status, summary, reviewedFiles, totalFiles, version } = draft;
  return {
    ...{ draftId, runId, itemId, headSha, status, summary, reviewedFiles, totalFiles, version },
    findings: draft.findings.map(wireFinding),
    skippedFiles: [...draft.skippedFiles],
    warnings: [...draft.warnings],
    dropped: [...draft.dropped],
    ...given('blockedBy', draft.blockedBy),
    ...givenTime('publishedAt', draft.publishedAt),
    ...given('url', draft.url),
  };
}

export function wireWrite(write: StoredWrite): SourceWrite {
  const { writeId, kind, dedupeKey, status, attempts } = write;
  const url = write.response?.['url'];
  return {
    ...{ writeId, kind, dedupeKey, status, attempts },
    ...given('runId', write.runId),
    ...given('lastError', write.lastError),
    ...given('url', typeof url === 'string' ? url : undefined),
    createdAt: iso(write.createdAt),
    ...givenTime('sentAt', write.sentAt),
  };
}

export function wireRepository(
  repository: StoredRepository,
  configured: ConfiguredRepository | undefined,
  settings: BackendSettings,
  openItems: number,
): Repository {
  const { repositoryKey, instance, owner, name, autoReview, lastSyncError } = repository;
  return {
    ...{ repositoryKey, instance, owner, name, autoReview, openItems },
    writesEnabled: settings.GitHub.WritesEnabled,
    ...given('workspacePath', configured?.workspacePath),
    ...given('installationId', repository.installationId),
    ...givenTime('lastSyncAt', repository.lastSyncAt),
    ...given('lastSyncError', lastSyncError && { ...lastSyncError, at: iso(lastSyncError.at) }),
  };
}
