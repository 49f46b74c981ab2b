import { fit } from '../../../../lib/browser.ts';
import { wordsOf } from '../data/call-words.ts';
import type { PromptCommand } from '../data/rpc.ts';
import type { Transcript } from '../data/transcript.ts';

/** Text that can replace the word before the cursor. */
export interface Suggestion {
  readonly text: string;
  readonly detail: string;
}

export interface Offer {
  /** Start of the replaced word. */
  readonly from: number;
  readonly suggestions: readonly Suggestion[];
}

const maxShown = 8;

/** Beginning of a path before the cursor, after `@`; null outside a mention. */
export function mentionBefore(text: string, cursor: number): string | null {
  const [, plain, quoted] = /(?:^|\s)@(?:([^\s@"]*)|"([^"\n]*))$/.exec(text.slice(0, cursor)) ?? [];
  return plain ?? quoted ?? null;
}

/** Commands after `/` at the beginning; files after `@`. */
export function offerFor(
  text: string,
  cursor: number,
  { commands, files }: { readonly commands: readonly PromptCommand[]; readonly files: () => readonly string[] },
): Offer | null {
  const before = text.slice(0, cursor);
  const command = /^\/([\w:.-]*)$/.exec(before);
  if (command) {
    const all = commands.map(({ name, description }) => ({ text: `/${name} `, detail: description ?? '' }));
    return best(0, command[1] ?? '', all);
  }
  const query = mentionBefore(text, cursor);
  if (query === null) return null;
  return best(
    before.lastIndexOf('@'),
    query,
    files().map((path) => ({ text: `@${written(path)} `, detail: '' })),
  );
}

/** Writes a path so that a message recognises it as a file: with a slash or a dot, and in quotes if it has blanks. */
function written(path: string): string {
  const file = /[./]/.test(path) ? path : `./${path}`;
  return /\s/.test(file) ? `"${file}"` : file;
}

function best(from: number, query: string, all: readonly Suggestion[]): Offer | null {
  const scored = all.flatMap((suggestion) => {
    const score = fit(query, suggestion.text.slice(1));
    return score === null ? [] : [{ suggestion, score }];
  });
  const suggestions = scored
    .sort((a, b) => b.score - a.score)
    .slice(0, maxShown)
    .map(({ suggestion }) => suggestion);
  return suggestions.length === 0 ? null : { from, suggestions };
}

/** Files named in calls of this conversation, newest first. */
export function filesOf({ rows }: Transcript): readonly string[] {
  const named = rows.flatMap((row) => {
    if (row.kind !== 'tool' || !/^(?:Read|Write|Edit)File$/.test(row.tool)) return [];
    const { target } = wordsOf(row);
    return target === '' ? [] : [target];
  });
  return [...new Set(named.reverse())];
}
