import * as v from 'valibot';
import { json, type RequestContext } from '../../http/index.ts';
import { DraftHunks } from '../../protocol/index.ts';
import { hunksFact, type StoredDraft, type StoredFinding } from '../store/index.ts';
import { apiError, notFound } from './errors.ts';
import { etagOf, filterOf, parseQuery, pathValue, wantedVersion } from './query.ts';
import { reviewRoutes } from './route-table.ts';
import type { ApiHandler, Services } from './service.ts';
import { DraftChange, FindingChange, PublishInput, ResolveInput } from './shapes.ts';
import { wireDraft, wireFinding } from './wire.ts';

const Hunks = v.pipe(v.string(), v.parseJson(), DraftHunks.entries.hunks);
const editable: ReadonlySet<StoredDraft['status']> = new Set(['draft', 'publishFailed']);

/** Handlers for drafts and their findings. */
export function draftHandlers({ store, actions }: Services) {
  async function draftOf(draftId: string): Promise<StoredDraft> {
    const draft = await store.draft(draftId);
    if (!draft) throw notFound('draft');
    return draft;
  }

  async function findingOf(context: RequestContext): Promise<StoredFinding> {
    const finding = await store.finding(pathValue(context, 'findingId'));
    if (!finding) throw notFound('finding');
    return finding;
  }

  function mustBeEditable({ status, draftId }: StoredDraft): void {
    if (!editable.has(status))
      throw apiError('invalidState', `The draft is ${status} and cannot be changed.`, { draftId, status });
  }

  const stale = ({ version }: StoredDraft) =>
    apiError('versionStale', 'The draft has changed meanwhile: read it again.', { version });

  const shown = (status: number, draft: StoredDraft) => json(status, wireDraft(draft), etagOf(draft.version));

  return {
    async listDrafts({ query }) {
      const filter = filterOf(parseQuery(reviewRoutes.listDrafts, query), {
        itemId: 'itemId',
        status: 'status',
        cursor: 'cursor',
      });
      const { rows, next } = await store.drafts(filter);
      return json(200, { rows: rows.map(wireDraft), next });
    },

    getDraft: async (context) => shown(200, await draftOf(pathValue(context, 'draftId'))),

    async getDraftHunks(context) {
      const { runId } = await draftOf(pathValue(context, 'draftId'));
      const hunks = v.safeParse(Hunks, await store.fact(hunksFact(runId)));
      // Hunks saved by another version that do not match the schema count as missing: the findings quote their lines.
      return json(200, { hunks: hunks.success ? hunks.output : {} });
    },

    async editDraft(context) {
      const version = wantedVersion(context);
      const { summary } = await context.json(DraftChange);
      const draft = await draftOf(pathValue(context, 'draftId'));
      mustBeEditable(draft);
      const { draftId, itemId } = draft;
      const changed = await store.updateDraft(draftId, version, { summary });
      if (!changed) throw stale(draft);
      await store.publish('draft.changed', { draftId, itemId });
      return shown(200, changed);
    },

    async publishDraft(context) {
      const { override } = await context.json(PublishInput);
      const { draftId } = await draftOf(pathValue(context, 'draftId'));
      await actions.publish(draftId, { override });
      return shown(202, await draftOf(draftId));
    },

    async discardDraft(context) {
      const { draftId } = await draftOf(pathValue(context, 'draftId'));
      await actions.discard(draftId);
      return shown(200, await draftOf(draftId));
    },

    async editFinding(context) {
      const wanted = context.header('if-match') === undefined ? undefined : wantedVersion(context);
      const { status, severity, title, body, newText } = await context.json(FindingChange);
      const { findingId, draftId, itemId, kind } = await findingOf(context);
      const draft = await draftOf(draftId);
      mustBeEditable(draft);
      if (newText !== undefined && kind !== 'suggestion')
        throw apiError('invalidState', 'Only a suggestion has a replacement text.', { findingId });
      const version = wanted ?? draft.version;
      const change = {
        ...(status !== undefined && { status }),
        ...(severity !== undefined && { severity }),
        ...(title !== undefined && { title }),
        ...(body !== undefined && { body }),
        ...(newText !== undefined && { newText }),
      };
      const changed = await store.updateFinding(findingId, change, version);
      if (!changed) throw stale(draft);
      await store.publish('draft.changed', { draftId, itemId, findingId });
      return json(200, wireFinding(changed), etagOf(version + 1));
    },

    async resolveFinding(context) {
      const { resolution, note } = await context.json(ResolveInput);
      const { findingId, isPublished, isResolved } = await findingOf(context);
      if (!isPublished || isResolved)
        throw apiError('invalidState', 'Only a published, unresolved finding can be resolved.', { findingId });
      await actions.resolveFinding(findingId, resolution, note ?? null);
      return json(200, wireFinding(await findingOf(context)));
    },
  } as const satisfies Record<string, ApiHandler>;
}
