/**
 * Commands that only read, and only what ReadFile may read without approval. After codex, `is_safe_command.rs`; without git, which
 * runs what a repository configures.
 */
import { resolve } from 'node:path';

/** Operands that may name files; undefined: the arguments do more than read. */
type Operands = (args: readonly string[]) => readonly string[] | undefined;

const isOption = (word: string): boolean => word.startsWith('-') && word !== '-';

/** Words that may name files: all but options, and what is attached to an option with `=`. */
const files: Operands = (args) =>
  args.flatMap((word) => {
    if (!isOption(word)) return [word];
    const value = /^--?[\w-]+=(.*)$/s.exec(word)?.[1];
    return value === undefined ? [] : [value];
  });

const none: Operands = () => [];

const without =
  (refused: RegExp, then: Operands = files): Operands =>
  (args) =>
    args.some((word) => refused.test(word)) ? undefined : then(args);

/** The first word is an expression: options that give it otherwise are refused. */
const afterExpression: Operands = (args) => files(args)?.slice(1);

/** By program. Recursive searches of contents are refused as far as they reach hidden files, where our own directory is. */
const programs: Readonly<Record<string, Operands>> = {
  ...{ cat: files, cd: files, cut: files, head: files, ls: files, nl: files, paste: files, rev: files, stat: files },
  ...{ echo: none, expr: none, false: none, id: none, pwd: none, seq: none, tr: none, true: none, uname: none },
  ...{ which: none, whoami: none },
  tail: without(/^(-[a-zA-Z]*[fF]|--f|--retry|--pid)/),
  wc: without(/^--files0/),
  grep: without(
    /^(-[a-zA-Z]*[defrRDP]|--(regexp|file|recursive|dereference|directories|devices|perl))/,
    afterExpression,
  ),
  rg: without(
    /^(-[a-zA-Z0-9]*[efzLu.]|--(pre|hostname|search-zip|file|regexp|follow|hidden|unrestricted|no-ignore|ignore-file))/,
    afterExpression,
  ),
  sort: without(/^(-[a-zA-Z0-9]*[oST]|--(o|co|te|files0))/),
  uniq: (args) => (args.filter((word) => !isOption(word)).length <= 1 ? files(args) : undefined),
  find: without(/^-(exec|ok|delete|f(ls|print)|follow|L$|files0)/),
  sed: ([option, script = '', ...rest]) =>
    option === '-n' && /^\d{1,9}(,\d{1,9})?p$/.test(script) && !rest.some(isOption) ? rest : undefined,
};

const builtins: ReadonlySet<string> = new Set(['cd', 'echo', 'false', 'pwd', 'true']);

export interface ReadOnlyPlace {
  /** Real directory that the commands start in. */
  readonly cwd: () => Promise<string>;
  /** Whether a path may be read without approval. @param path absolute */
  readonly mayRead: (path: string) => Promise<boolean>;
  /** Whether a program of this name is found outside of the workspace, whose files are untrusted. */
  readonly isTrustedProgram: (name: string) => boolean;
  /** Whether the user has blocked paths: a search of a tree could reach them. */
  readonly hasBlockedPaths: boolean;
}

/** Whether commands only read what may be read without approval. @param commands of a plain script */
export async function isReadOnly(commands: readonly (readonly string[])[], place: ReadOnlyPlace): Promise<boolean> {
  if (!commands.every(([program = '']) => Object.hasOwn(programs, program))) return false;
  // A `cd` may fail, or move a part of a pipeline only: what follows must be right in every directory.
  const directories = new Set([await place.cwd()]);
  for (const [program = '', ...args] of commands) {
    if (!builtins.has(program) && !place.isTrustedProgram(program)) return false;
    if (program === 'rg' && place.hasBlockedPaths) return false;
    const operands = programs[program]?.(args);
    if (!operands) return false;
    for (const directory of [...directories]) {
      for (const operand of operands) {
        // Standard input is empty.
        if (operand === '-' && program !== 'cd') continue;
        const path = resolve(directory, operand);
        if (operand === '-' || operand.startsWith('~') || !(await place.mayRead(path))) return false;
        if (program === 'cd') directories.add(path);
      }
    }
    if (program === 'cd' && args.length !== 1) return false;
  }
  return commands.length > 0;
}
