import { posix } from 'node:path';
import type { PermissionRule } from '../../config/index.ts';

/** Longest text that a pattern is compared with. */
const maxTextLength = 20_000;

/** Whether a text matches a pattern with `*` (any characters) and `?` (one). In time proportional to both lengths, without a regular expression. */
export function matchesPattern(pattern: string, text: string): boolean {
  if (text.length > maxTextLength) return false;
  let [at, star, mark] = [0, -1, 0];
  for (let index = 0; index < text.length; ) {
    const wanted = pattern[at];
    if (wanted === '*') {
      star = at;
      mark = index;
      at += 1;
    } else if (wanted === '?' || wanted === text[index]) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      mark += 1;
      index = mark;
      at = star + 1;
    } else return false;
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}

/** Whether a rule is about a tool: by its name without case, or by a pattern of names. */
export const isAboutTool = ({ Tool }: PermissionRule, name: string): boolean =>
  matchesPattern(Tool.toLowerCase(), name.toLowerCase());

/** Words of a prefix. */
export const prefixOf = ({ Prefix }: PermissionRule): readonly string[] | undefined =>
  typeof Prefix === 'string' ? Prefix.split(/\s+/).filter(Boolean) : Prefix;

/** Whether a rule is about a command: its words begin with the prefix, or match the pattern. */
export function isAboutCommand(rule: PermissionRule, words: readonly string[]): boolean {
  const prefix = prefixOf(rule);
  if (prefix) return prefix.length <= words.length && prefix.every((word, index) => word === words[index]);
  return rule.Pattern === undefined || matchesPattern(rule.Pattern, words.join(' '));
}

/**
 * Programs that run other words as a command: those count for rules that forbid.
 * A command of a shell is in one of its words.
 */
const wrappers: ReadonlySet<string> = new Set(
  'eval exec command builtin env xargs nohup time coproc sudo doas sh bash dash zsh ksh trap nice setsid timeout stdbuf find ssh'.split(
    ' ',
  ),
);
const shells: ReadonlySet<string> = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'eval']);

/** Commands that denying rules are compared with: the words, also with the program's bare name, and the commands of a wrapper. */
export function forbiddenReadings(words: readonly string[]): readonly (readonly string[])[] {
  const bare = bareOf(words);
  const inside = wrappers.has(bare[0] ?? '') ? words.slice(1).map((_, index) => bareOf(words.slice(index + 1))) : [];
  return [words, bare, ...inside];
}

const bareOf = ([program = '', ...rest]: readonly string[]): readonly string[] => [posix.basename(program), ...rest];

/** Whether a command may take its script from a pipe or a here-document. @param reading of `forbiddenReadings` */
export const mayReadScript = ([program = '']: readonly string[]): boolean => shells.has(program);

/** Scripts among the words of a shell or of `eval`. */
export function scriptsIn(words: readonly string[]): readonly string[] {
  const isShell = words.some((word) => shells.has(posix.basename(word)));
  return isShell ? words.filter((word) => /\s/.test(word)) : [];
}
