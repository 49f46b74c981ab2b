import type { InputPart } from '../../../../protocol/index.ts';

/** A message that the server has not accepted yet. */
export interface Unsent {
  readonly messageId: string;
  readonly input: readonly InputPart[];
}

type Kind = 'draft' | 'pictures' | 'outbox';

/** Storage key of a thread. One origin may serve several workspaces, each below its own path. */
const keyOf = (kind: Kind, threadId: string | null): string =>
  `oratorio.${kind}:${new URL('.', document.baseURI).pathname}:${threadId ?? 'new'}`;

/** Text that this tab has stored over a reload; '' without one. */
function stored(kind: Kind, threadId: string | null): string {
  try {
    return sessionStorage.getItem(keyOf(kind, threadId)) ?? '';
  } catch {
    // The browser stores nothing.
    return '';
  }
}

function store(kind: Kind, threadId: string | null, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(keyOf(kind, threadId));
    else sessionStorage.setItem(keyOf(kind, threadId), text);
  } catch {
    // The browser stores nothing, or no more.
  }
}

const storeList = (kind: Kind, threadId: string | null, list: readonly unknown[]): void =>
  store(kind, threadId, list.length === 0 ? '' : JSON.stringify(list));

function storedList(kind: Kind, threadId: string | null): readonly unknown[] {
  try {
    const list: unknown = JSON.parse(stored(kind, threadId) || '[]');
    return Array.isArray(list) ? list : [];
  } catch {
    // Another page of this origin has written there.
    return [];
  }
}

/** Unsent text of a thread in this tab. */
export const draftOf = (threadId: string | null): string => stored('draft', threadId);

/** Stores an unsent text, so that it survives a reload. */
export const keepDraft = (threadId: string | null, text: string): void => store('draft', threadId, text);

/** Pictures that were attached in this tab when it was left; they are handed out once. */
export function takePictures(threadId: string | null): readonly string[] {
  const kept = storedList('pictures', threadId);
  store('pictures', threadId, '');
  return kept.filter((each) => typeof each === 'string').filter((each) => each.startsWith('data:image/'));
}

/** Keeps attached pictures over a reload of this tab, as far as the browser has room. */
export const keepPictures = (threadId: string | null, pictures: readonly string[]): void => {
  if (pictures.length > 0) storeList('pictures', threadId, pictures);
};

/** Messages of this tab that the server had not accepted when the thread was left. */
export const keptOutbox = (threadId: string | null): readonly Unsent[] =>
  threadId === null ? [] : (storedList('outbox', threadId) as readonly Unsent[]);

export function keepOutbox(threadId: string | null, unsent: readonly Unsent[]): void {
  if (threadId !== null) storeList('outbox', threadId, unsent);
}
