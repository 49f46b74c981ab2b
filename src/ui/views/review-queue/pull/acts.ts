import { messageOf } from '../../../../lib/browser.ts';
import type { ReviewDraft, ReviewFinding } from '../../../../protocol/index.ts';
import { ApiError } from '../../../app/api.ts';
import type { App } from '../../../app/app.ts';
import type { FindingChange, ReviewApi } from '../../review/api.ts';
import { attempt } from '../../review/live.ts';
import { counted } from '../../review/words.ts';

/** Conflict: another user has changed it since it was read. */
export type Conflict = { readonly message: string };

/** Result of publishing. */
export type Published =
  | { readonly outcome: 'begun' }
  /** `message` is the reason; a user may still publish. */
  | { readonly outcome: 'blocked'; readonly message: string }
  | { readonly outcome: 'refused' };

/** Actions on a draft and its findings. Each shows its result as a notice. */
export function draftActs(app: App, api: ReviewApi, reload: () => void) {
  const andReload = async (work: Promise<unknown>, done: string): Promise<boolean> => {
    const worked = await attempt(app, work, done);
    reload();
    return worked;
  };
  /** Resolves with the conflict, with null after a success, or with undefined after another error. */
  const onVersion = async (work: Promise<unknown>, done: string): Promise<Conflict | null | undefined> => {
    try {
      await work;
      app.toast({ text: done, ms: 2_500 });
      return null;
    } catch (fault) {
      if (fault instanceof ApiError && fault.status === 412) return { message: fault.message };
      app.toast({ text: messageOf(fault), tone: 'danger' });
      return undefined;
    } finally {
      reload();
    }
  };
  return {
    setStatus: ({ findingId, title }: ReviewFinding, status: ReviewFinding['status']) =>
      andReload(api.editFinding(findingId, { status }), `“${title}” is ${status}.`),
    /** Skips all other findings. Resolves with false if a finding could not be changed. */
    only: (findings: readonly ReviewFinding[], chosen: ReviewFinding) => {
      const work = async () => {
        for (const each of findings) {
          const status = each.findingId === chosen.findingId ? 'accepted' : 'skipped';
          if (each.status !== status) await api.editFinding(each.findingId, { status });
        }
      };
      return andReload(work(), `Only “${chosen.title}” is accepted.`);
    },
    saveFinding: (findingId: string, change: FindingChange, version: number) =>
      onVersion(api.editFinding(findingId, change, version), 'The finding is changed.'),
    saveSummary: (draft: Pick<ReviewDraft, 'draftId' | 'version'>, summary: string) =>
      onVersion(api.editSummary(draft, summary), 'The summary is changed.'),
    resolve: ({ findingId, title }: ReviewFinding, resolution: 'fixed' | 'dismissed', note: string) =>
      andReload(api.resolve(findingId, resolution, note), `“${title}” is ${resolution}.`),
    discard: ({ draftId }: ReviewDraft) => andReload(api.discard(draftId), 'The draft is discarded.'),
    retryWrite: (writeId: string) => andReload(api.retryWrite(writeId), 'It is sent again.'),

    async publish({ draftId, findings }: ReviewDraft, override: boolean): Promise<Published> {
      const count = findings.filter(({ status }) => status === 'accepted').length;
      try {
        await api.publish(draftId, override);
        app.toast({ text: `${counted(count, 'finding')} on the way to the pull request.`, ms: 4_000 });
        return { outcome: 'begun' };
      } catch (fault) {
        if (fault instanceof ApiError && fault.code === 'draftBlocked' && fault.details['isOverridable'] !== false)
          return { outcome: 'blocked', message: fault.message };
        app.toast({ text: messageOf(fault), tone: 'danger' });
        return { outcome: 'refused' };
      } finally {
        reload();
      }
    },
  };
}
export type DraftActs = ReturnType<typeof draftActs>;
