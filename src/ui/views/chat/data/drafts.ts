import { read, write } from '../../../app/preferences.ts';

/** Storage key of a draft. One origin may serve several workspaces, each below its own path. */
const keyOf = (threadId: string | null): string =>
  `oratorio.draft:${new URL('.', document.baseURI).pathname}:${threadId ?? 'new'}`;

/** Unsent text of a thread from an earlier page; empty without one. */
export const draftOf = (threadId: string | null): string => read(keyOf(threadId)) ?? '';

/** Stores an unsent text, so that it survives a reload. */
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

const picturesKey = (threadId: string | null): string => keyOf(threadId).replace('draft:', 'pictures:');

/** Pictures that were attached in this tab when it was left; they are handed out once. */
export function takePictures(threadId: string | null): readonly string[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(picturesKey(threadId)) ?? '[]');
    sessionStorage.removeItem(picturesKey(threadId));
    return Array.isArray(kept) ? kept.filter((each) => typeof each === 'string' && each.startsWith('data:image/')) : [];
  } catch {
    // The browser stores nothing, so there is nothing to hand out.
    return [];
  }
}

/** Keeps attached pictures over a reload of this tab, as far as the browser has room. */
export function keepPictures(threadId: string | null, pictures: readonly string[]): void {
  if (pictures.length === 0) return;
  try {
    sessionStorage.setItem(picturesKey(threadId), JSON.stringify(pictures));
  } catch {
    // The browser stores nothing, or no more.
  }
}
