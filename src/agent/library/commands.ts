import { join } from 'node:path';
import { HeadReader } from './head.ts';
import { type LibraryPlace, namesIn, readFileIn } from './places.ts';
import type { LibraryProblem } from './skills.ts';

/** A prompt command: a template that `/name` stands for. */
export interface PromptCommand {
  readonly name: string;
  readonly description: string;
  readonly argumentHint?: string | undefined;
  readonly path: string;
}

const nameWords = /^[A-Za-z0-9][\w-]{0,63}$/;
const ending = '.md';

/** All commands by name: one of the workspace before one of the user with the same name. */
export function findCommands(places: readonly LibraryPlace[]): {
  readonly commands: ReadonlyMap<string, PromptCommand & { readonly template: string }>;
  readonly problems: readonly LibraryProblem[];
} {
  const commands = new Map<string, PromptCommand & { readonly template: string }>();
  const problems: LibraryProblem[] = [];
  for (const place of places) {
    const heads = new HeadReader();
    for (const file of namesIn(place)) {
      const name = file.slice(0, -ending.length);
      if (!file.endsWith(ending) || commands.has(name)) continue;
      const found = readCommand(place, name, heads);
      if (found && 'problem' in found) problems.push({ path: join(place.path, file), problem: found.problem });
      else if (found) commands.set(name, found);
    }
  }
  return { commands, problems };
}

/** One command by its name. */
export function findCommand(
  places: readonly LibraryPlace[],
  name: string,
): (PromptCommand & { readonly template: string }) | undefined {
  if (!nameWords.test(name)) return undefined;
  for (const place of places) {
    const found = readCommand(place, name, new HeadReader());
    if (found && !('problem' in found)) return found;
  }
  return undefined;
}

function readCommand(
  place: LibraryPlace,
  name: string,
  heads: HeadReader,
): (PromptCommand & { readonly template: string }) | { readonly problem: string } | undefined {
  if (!nameWords.test(name)) return { problem: 'its name must be letters, digits, - and _' };
  const path = join(place.path, `${name}${ending}`);
  const read = readFileIn(place, path);
  if (!read || 'problem' in read) return read;
  const headed = heads.read(read.text);
  if (typeof headed === 'string') return { problem: headed };
  if (headed.body === '') return { problem: 'it is empty' };
  const { description, 'argument-hint': hint } = headed.head;
  return {
    ...{ name, path, template: headed.body },
    description: typeof description === 'string' ? oneLine(description) : oneLine(headed.body),
    ...(typeof hint === 'string' && { argumentHint: oneLine(hint) }),
  };
}

const oneLine = (text: string): string => (text.trim().split('\n', 1)[0] ?? '').slice(0, 200);

/** Longest expansion, in characters. */
const maxExpansion = 200_000;

/** Puts arguments into a template, in one pass: the text of an argument is never expanded. Missing arguments are empty. */
export function expand(template: string, argumentsText: string): string {
  const words = splitWords(argumentsText);
  let text = '';
  let at = 0;
  for (const { 0: name, 1: digit, index } of template.matchAll(/\$ARGUMENTS|\$([1-9])/g)) {
    // A template may name its arguments thousands of times.
    if (text.length >= maxExpansion) break;
    text += template.slice(at, index) + (digit === undefined ? argumentsText : (words[Number(digit) - 1] ?? ''));
    at = index + name.length;
  }
  return (text + template.slice(at)).slice(0, maxExpansion);
}

/** Words as a shell would read them: quotes hold blanks, a backslash holds the next character. An open quote ends with the text. */
export function splitWords(text: string): readonly string[] {
  const words: string[] = [];
  for (const [word] of text.matchAll(/(?:"(?:\\.|[^"\\])*"?|'[^']*'?|\\.|[^\s"'\\])+/gs)) {
    words.push(
      word.replace(
        /"((?:\\.|[^"\\])*)"?|'([^']*)'?|\\(.)/gs,
        (_, double?: string, single?: string, escaped?: string) =>
          double === undefined ? (single ?? escaped ?? '') : double.replace(/\\(["\\$`])/g, '$1'),
      ),
    );
  }
  return words;
}

/** A command at the beginning of a text. */
export function commandIn(text: string): { readonly name: string; readonly argumentsText: string } | undefined {
  const [, name, argumentsText = ''] = /^\/([A-Za-z0-9][\w-]{0,63})(?:[ \t\n]+([\s\S]*))?$/.exec(text.trim()) ?? [];
  return name === undefined ? undefined : { name, argumentsText };
}
