import { read, write } from '../../../app/preferences.ts';

/** One origin may serve several workspaces, each below its own path. */
const keyOf = (threadId: string | null): string =>
  `oratorio.draft:${new URL('.', document.baseURI).pathname}:${threadId ?? 'new'}`;

/** The text that was being written in a thread when the tab was left; empty without one. */
export const draftOf = (threadId: string | null): string => read(keyOf(threadId)) ?? '';

/** Keeps a text over a reload. Where the browser stores nothing it holds for this tab. */
export function keepDraft(threadId: string | null, text: string): void {
  if (text !== '') write(keyOf(threadId), text);
  else {
    try {
      localStorage.removeItem(keyOf(threadId));
    } catch {
      // The browser stores nothing, so there is nothing to remove.
    }
  }
}
