import { ReviewError } from '../errors.ts';
import type { StoredDraft, StoredItem, StoredWrite } from '../store/index.ts';
import { ReviewRunError } from './errors.ts';
import { deleteNotes, readNotes } from './notes.ts';
import { putWrite } from './outbox.ts';
import { cleaned, leakIn, plainKey, planOf } from './plan.ts';
import { secretsOf } from './secrets.ts';
import { applyWrite } from './settle.ts';
import type { RunContext } from './types.ts';

type DraftChange = Parameters<RunContext['store']['updateDraft']>[2];
const allWrites = 1_000;
const beginnable: ReadonlySet<StoredDraft['status']> = new Set(['draft', 'publishFailed']);
/** Kinds of writes that publish a draft, without check runs and replies. */
const draftWrites: ReadonlySet<StoredWrite['kind']> = new Set(['review', 'summary', 'fileComment', 'resolveThread']);

/** Publishes drafts: adds their writes to the outbox and applies the results that `settle` receives. */
export class Publication {
  readonly #context: RunContext;
  readonly #listeners = new Set<() => void>();

  constructor(context: RunContext) {
    this.#context = context;
  }

  /** Calls `listener` when a write was settled in this process. @returns removes the listener */
  onSettled(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Adds all writes of a draft to the outbox. Idempotent.
   *
   * @throws ReviewError draftBlocked, when the draft contains a secret
   */
  async begin(draft: StoredDraft): Promise<void> {
    const { store, settings } = this.#context;
    const { draftId, runId, itemId, headSha } = draft;
    const secrets = secretsOf(this.#context);
    const leak = leakIn(draft, secrets);
    if (leak) {
      await this.change(draftId, { blockedBy: leak });
      throw new ReviewError('draftBlocked', leak.message, { blockedBy: leak, isOverridable: false });
    }
    // A draft that is being published cannot be edited.
    const current = await this.change(draftId, { status: 'publishing' }, ({ status }) => beginnable.has(status));
    if (current.status !== 'publishing')
      throw new ReviewError('invalidState', `The draft is ${current.status}.`, {
        draftId,
        status: current.status,
      });
    const item = await store.item(itemId);
    if (!item) throw new ReviewRunError('itemMissing', 'The pull request is missing from the store.');
    const repository = await store.repository(item.repositoryKey);
    if (!repository) throw new ReviewRunError('itemMissing', 'The repository is missing from the store.');
    const { rows } = await store.writes({ runId, limit: allWrites });
    const plan = planOf({
      draft: cleaned(current, secrets),
      notes: await readNotes(store, { runId, headSha }),
      item,
      open: await store.openFindings(itemId),
      isQuietWhenClean: settings().Review.QuietWhenClean,
      round: rows.filter(({ kind, status }) => kind === 'review' && status === 'failed').length,
    });
    for (const write of plan.writes) await putWrite(this.#context, { repository, number: item.number }, write, runId);
    for (const { finding, resolution, note } of plan.resolutions) {
      const withNote = note === null ? {} : { resolutionNote: note };
      await store.updateFinding(finding.findingId, { isResolved: true, resolution, ...withNote });
    }
    const added = plan.warnings.filter((text) => !current.warnings.includes(text));
    if (added.length > 0) await this.change(draftId, { warnings: [...current.warnings, ...added] });
    await this.#conclude(runId, plan.writes.length === 0);
  }

  /** Applies the result of a write and notifies the listeners. */
  async settle(write: StoredWrite): Promise<void> {
    const { store } = this.#context;
    const { writeId, kind, status, runId } = write;
    await applyWrite(store, write);
    await store.publish('write.changed', { writeId, kind, status });
    if (runId !== null && draftWrites.has(kind)) await this.#conclude(runId, false);
    for (const listener of this.#listeners) listener();
  }

  /** Marks a draft as published or failed once none of its writes is pending. */
  async #conclude(runId: string, isEmpty: boolean): Promise<void> {
    const { store } = this.#context;
    const draft = await store.draftOfRun(runId);
    if (draft?.status !== 'publishing' && draft?.status !== 'publishFailed') return;
    const writes = await this.#writesOf(draft);
    const hasFindings = draft.findings.some(({ status }) => status === 'accepted');
    const deciding = writes.find(({ kind }) => kind === (hasFindings ? 'review' : 'summary'));
    const isBegun = isEmpty || writes.length > 0;
    if (!isBegun || (hasFindings && !deciding) || writes.some(({ status }) => status === 'pending')) return;
    if (deciding?.status === 'failed') return this.#failed(draft);
    await this.#published(draft, deciding, writes);
  }

  /** Latest round of each write of a draft, because a failed publication can be repeated. */
  async #writesOf({ runId }: StoredDraft): Promise<StoredWrite[]> {
    const { rows } = await this.#context.store.writes({ runId, limit: allWrites });
    const last = new Map<string, StoredWrite>();
    for (const write of rows) {
      const key = plainKey(write.dedupeKey);
      if (draftWrites.has(write.kind) && !last.has(key)) last.set(key, write);
    }
    return [...last.values()];
  }

  async #failed({ draftId, status }: StoredDraft): Promise<void> {
    if (status === 'publishing') await this.change(draftId, { status: 'publishFailed' });
  }

  async #published(
    { draftId, runId, itemId, headSha, warnings }: StoredDraft,
    deciding: StoredWrite | undefined,
    writes: readonly StoredWrite[],
  ): Promise<void> {
    const { store } = this.#context;
    const url = deciding?.response?.['url'];
    const lost = writes.filter(({ status }) => status === 'failed').map(({ kind }) => lostText[kind] ?? kind);
    const isPublished = { status: 'published', publishedAt: await store.now(), blockedBy: null } as const;
    const item = await store.item(itemId);
    if (item) await this.#reviewed(item, runId, headSha);
    await this.change(draftId, {
      ...isPublished,
      url: typeof url === 'string' ? url : null,
      warnings: [...new Set([...warnings, ...lost])],
    });
    await deleteNotes(store, runId);
  }

  /** Saves the reviewed head, after which the next incremental review starts, unless a newer head has been reviewed already. */
  async #reviewed({ itemId, headSha: present, reviewedHeadSha }: StoredItem, runId: string, headSha: string) {
    const { store } = this.#context;
    if (present !== headSha && reviewedHeadSha !== null) return;
    const run = await store.run(runId);
    if (!run) return;
    await store.updateItem(itemId, { reviewedHeadSha: headSha, reviewedBaseSha: run.baseSha });
    await store.publish('item.changed', { itemId });
  }

  /**
   * Changes a draft; reads it again and retries when others change it at the same time.
   *
   * @param isWanted whether the change still applies
   * @returns the changed draft, or the unchanged one when the change no longer applies
   * @throws ReviewError notFound; conflict after `draftTries` attempts
   */
  async change(
    draftId: string,
    change: DraftChange,
    isWanted: (draft: StoredDraft) => boolean = () => true,
  ): Promise<StoredDraft> {
    const { store, times } = this.#context;
    for (let tries = 0; tries < times.draftTries; tries += 1) {
      const draft = await store.draft(draftId);
      if (!draft) throw new ReviewError('notFound', 'Unknown draft.', { draftId });
      if (!isWanted(draft)) return draft;
      const changed = await store.updateDraft(draftId, draft.version, change);
      if (!changed) continue;
      await store.publish('draft.changed', { draftId, itemId: changed.itemId, status: changed.status });
      return changed;
    }
    throw new ReviewError('conflict', 'Others are changing the draft: try again.', { draftId });
  }

  /** Continues publications requested in a process that ended before their writes were in the outbox. */
  async resume(): Promise<void> {
    const { store, logger } = this.#context;
    const { rows } = await store.drafts({ status: 'publishing', limit: 100 });
    for (const draft of rows) {
      // An unfinished run continues its publication itself.
      if ((await store.run(draft.runId))?.finishedAt === null) continue;
      await this.begin(draft).catch((error: unknown) =>
        logger.warn('could not publish a draft; publish it again on the page', { draftId: draft.draftId, error }),
      );
    }
  }
}

const lostText: Readonly<Partial<Record<StoredWrite['kind'], string>>> = {
  summary: 'The summary could not be posted.',
  fileComment: 'A comment on a whole file could not be posted.',
  resolveThread: 'A thread could not be resolved.',
};
