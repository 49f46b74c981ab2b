import { type ReadonlySignal, signal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import type { DashboardSession } from '../../../protocol/index.ts';
import { ApiError } from '../../app/api.ts';
import type { App } from '../../app/app.ts';
import { paths } from './paths.ts';
import { amount, counted, titleOf } from './words.ts';

/** Time in which a deletion can be undone: the request is sent after it. */
const undoMs = 8_000;

/** Traces that are being deleted. Outlives the list: leaving it does not cancel a deletion. */
export interface Deletions {
  /** Keys of the sessions to hide. */
  readonly hidden: ReadonlySignal<ReadonlySet<string>>;
  /** Deletes the trace, unless the user undoes this. */
  remove(session: DashboardSession): void;
  /** Deletes every trace except those of running sessions. */
  clear(): Promise<void>;
  /** Calls `listener` when a hidden session still exists and must be fetched again. Returns a function that ends this. */
  onKept(listener: () => void): () => void;
}

const byApp = new WeakMap<App, Deletions>();

export function deletionsOf(app: App): Deletions {
  const known = byApp.get(app) ?? createDeletions(app);
  byApp.set(app, known);
  return known;
}

function createDeletions(app: App): Deletions {
  const hidden = signal<ReadonlySet<string>>(new Set());
  const listeners = new Set<() => void>();
  const hide = (key: string, isHidden: boolean) => {
    const next = new Set(hidden.peek());
    if (isHidden) next.add(key);
    else next.delete(key);
    hidden.value = next;
  };
  const keep = (key: string) => {
    hide(key, false);
    for (const listener of listeners) listener();
  };

  async function deleteNow(session: DashboardSession): Promise<void> {
    try {
      await app.api.send('DELETE', paths.deleteSession(session.sessionKey));
    } catch (error) {
      keep(session.sessionKey);
      app.toast({ text: refusal(session, error), tone: 'danger', ms: 12_000 });
    }
  }

  return {
    hidden,
    remove(session) {
      const { sessionKey } = session;
      if (hidden.peek().has(sessionKey)) return;
      hide(sessionKey, true);
      const timer = setTimeout(() => void deleteNow(session), undoMs);
      const dismiss = app.toast({
        text: `The trace of “${titleOf(session)}” is deleted in a moment.`,
        ms: undoMs,
        undo: () => {
          clearTimeout(timer);
          dismiss();
          hide(sessionKey, false);
        },
      });
    },
    async clear() {
      try {
        const { deleted, kept } = await app.api.send<{ deleted: number; kept: readonly string[] }>(
          'DELETE',
          paths.deleteSessions,
        );
        const rest = kept.length === 0 ? '' : ` ${counted(kept.length, 'trace')} kept, because a turn runs.`;
        app.toast({ text: `${amount(deleted)} traces deleted.${rest}` });
      } catch (error) {
        app.toast({ text: `Nothing was deleted: ${messageOf(error)}`, tone: 'danger' });
      }
      for (const listener of listeners) listener();
    },
    onKept(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function refusal(session: DashboardSession, error: unknown): string {
  const name = `“${titleOf(session)}”`;
  if (error instanceof ApiError && error.status === 409) {
    return `The trace of ${name} was not deleted: a turn runs in it. Stop the turn, then delete it.`;
  }
  return `The trace of ${name} was not deleted: ${messageOf(error)}`;
}
