import { read, write } from '../../../app/preferences.ts';
import type { FileSection } from './sections.ts';

/** Most files whose marks are stored for one review. */
const maxMarks = 1_000;

/** Name of the stored marks of a review. One origin may serve several workspaces, each below its own path. */
export const marksKey = (threadId: string, turnId: string | null): string =>
  `oratorio.kept:${new URL('.', document.baseURI).pathname}:${threadId}:${turnId ?? 'all'}`;

/** Paths whose stored mark matches the current change: a later change needs a new decision. */
export function keptPaths(key: string, sections: readonly FileSection[]): readonly string[] {
  const stored = marksIn(read(key));
  return sections.flatMap((section) => (stored.get(section.file.path) === markOf(section) ? [section.file.path] : []));
}

/** Stores which changes the person keeps. The mark of a change whose text is unknown is lost with the next reading. */
export function saveKept(key: string, sections: readonly FileSection[], kept: readonly string[]): void {
  const wanted = new Set(kept);
  const marks = sections.flatMap((section) => {
    const mark = wanted.has(section.file.path) ? markOf(section) : null;
    return mark === null ? [] : [[section.file.path, mark]];
  });
  write(key, JSON.stringify(marks.slice(0, maxMarks)));
}

function marksIn(text: string | null): ReadonlyMap<string, string> {
  try {
    const marks: unknown = JSON.parse(text ?? '[]');
    return new Map(Array.isArray(marks) ? marks.filter((each) => Array.isArray(each) && each.length === 2) : []);
  } catch {
    // Another program has written this key.
    return new Map();
  }
}

/** FNV-1a of a change; null: its text is not known. */
export function markOf({ file, modes, hunks }: FileSection): string | null {
  if (hunks === null) return null;
  const text = JSON.stringify([file.change, file.kind, modes, hunks]);
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return `${text.length}.${(hash >>> 0).toString(36)}`;
}
