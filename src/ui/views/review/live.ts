import { messageOf } from '../../../lib/browser.ts';
import { streamEvents } from '../../../protocol/browser.ts';
import type { ReviewEventKind } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import type { StreamEvent } from '../../app/live.ts';

/**
 * Selects the events after which a view fetches again.
 *
 * @param itemId limits the events to those that name this pull request or no pull request
 */
export const isAbout =
  (kinds: readonly ReviewEventKind[], itemId?: string) =>
  ({ event, data }: StreamEvent): boolean => {
    if (event === streamEvents.gap || event === 'backend.started') return true;
    if (!kinds.some((kind) => kind === event)) return false;
    if (itemId === undefined) return true;
    try {
      const { data: facts } = JSON.parse(data) as { readonly data?: { readonly itemId?: unknown } };
      return facts?.itemId === undefined || facts.itemId === itemId;
    } catch {
      return true;
    }
  };

/** Sends a request and shows its result as a notice. Resolves with true after a success. */
export async function attempt(app: App, work: Promise<unknown>, done: string): Promise<boolean> {
  try {
    await work;
    app.toast({ text: done, ms: 3_000 });
    return true;
  } catch (fault) {
    app.toast({ text: messageOf(fault), tone: 'danger' });
    return false;
  }
}
