/**
 * Commands that only read, and only files that ReadFile may read without approval. After codex, `is_safe_command.rs`; without git,
 * which runs programs that a repository configures.
 */
import { resolve } from 'node:path';

/** Operands that may name files; undefined: the arguments do more than read. */
type Operands = (args: readonly string[]) => readonly string[] | undefined;

const isOption = (word: string): boolean => word.startsWith('-') && word !== '-';

/** Words before `--`, options among them, and the operands behind it. */
function parted(args: readonly string[]): readonly [before: readonly string[], behind: readonly string[]] {
  const border = args.indexOf('--');
  return border < 0 ? [args, []] : [args.slice(0, border), args.slice(border + 1)];
}

/** Words that may name files: all but options, and the values attached to options with `=`. */
const files: Operands = (args) => {
  const [before, behind] = parted(args);
  const named = before.flatMap((word) => {
    if (!isOption(word)) return [word];
    const value = /^--?[\w-]+=(.*)$/s.exec(word)?.[1];
    return value === undefined ? [] : [value];
  });
  return [...named, ...behind];
};

const none: Operands = () => [];

const without =
  (refused: RegExp, then: Operands = files): Operands =>
  (args) =>
    args.some((word) => refused.test(word)) ? undefined : then(args);

/**
 * Only these options. Programs of GNU accept every unambiguous beginning of a long option, so no list of refused options
 * would be complete.
 *
 * @param letters short options, alone or together, also with a number behind them
 * @param names long options, in full
 * @param more short options with a value
 */
function only(letters: string, names: string, then: Operands = files, more = /^$/): Operands {
  const short = new RegExp(`^-[${letters}\\d]+$`);
  const long = new Set(names.split(' ').map((name) => `--${name}`));
  const isKnown = (word: string) => short.test(word) || more.test(word) || long.has(word.replace(/=.*$/s, ''));
  return (args) => (parted(args)[0].filter(isOption).every(isKnown) ? then(args) : undefined);
}

/** The first word is an expression: options that give it otherwise are refused. */
const afterExpression: Operands = (args) => files(args)?.slice(1);

const grepOptions =
  'after-context before-context context max-count color colour count ignore-case no-ignore-case invert-match line-number ' +
  'line-regexp word-regexp only-matching quiet silent fixed-strings extended-regexp basic-regexp files-with-matches ' +
  'files-without-match no-filename with-filename no-messages byte-offset text null';
const rgOptions =
  'after-context before-context context max-count color count count-matches ignore-case smart-case case-sensitive invert-match ' +
  'line-number no-line-number column line-regexp word-regexp only-matching quiet fixed-strings files-with-matches ' +
  'files-without-match heading no-heading no-filename with-filename no-messages multiline multiline-dotall max-columns ' +
  'max-depth type type-not sort sortr stats trim vimgrep json text null';
const sortOptions =
  'ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort ' +
  'numeric-sort random-sort reverse sort stable unique version-sort check merge key field-separator zero-terminated debug';

const lsOptions =
  'all almost-all author escape ignore-backups color color-by directory classify file-type full-time group-directories-first ' +
  'no-group human-readable si hide hyperlink indicator-style inode ignore kibibytes numeric-uid-gid literal hide-control-chars ' +
  'show-control-chars quote-name quoting-style reverse recursive size sort time time-style tabsize width context zero';
const nlOptions =
  'body-numbering section-delimiter footer-numbering header-numbering line-increment join-blank-lines number-format ' +
  'no-renumber number-separator starting-line-number number-width';

/** Operands by program. Recursive searches of contents are refused if they reach hidden files, where our own directory is. */
const programs: Readonly<Record<string, Operands>> = {
  // An option alone leads home.
  cd: without(/^-/),
  rev: only('', 'version'),
  cat: only('AbeEnstTuv', 'show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting'),
  cut: only(
    'bcdfnsz',
    'bytes characters fields delimiter complement only-delimited output-delimiter zero-terminated',
    files,
    /^-[bcf][\d,-]+$|^-d.$/,
  ),
  head: only('cnqvz', 'bytes lines quiet silent verbose zero-terminated', files, /^-[cn]-?\d+[kKMGb]?$/),
  // Without -L, -H and the long names for them: below a linked directory are files of others.
  ls: only('aAbBcCdfFgGhiklmnNopqQrRsStTuUvwxXZ1', lsOptions, files),
  nl: only('bdfhilnpsvw', nlOptions, files, /^-[bdfhlnsvwi].{1,8}$/),
  paste: only('dsz', 'delimiters serial zero-terminated', files, /^-s?d.{1,8}$/),
  stat: only('ctxf', 'format printf terse file-system', files, /^-c.+$/s),
  ...{ echo: none, expr: none, false: none, id: none, pwd: none, seq: none, tr: none, true: none, uname: none },
  ...{ which: none, whoami: none },
  tail: only('cnqvz+', 'bytes lines quiet silent verbose zero-terminated'),
  wc: only('clmwL', 'bytes chars lines words max-line-length total'),
  grep: only('abchHilLnoqsvwxyzEFGTABCm', grepOptions, afterExpression),
  rg: only('aciIlnNoqsSvwxFpHhUtTABCm', rgOptions, afterExpression),
  sort: only('bdfghiMnRrsuVcCmz', sortOptions, files, /^-[bdfghiMnRrsuVcCmz]*(k[\d.,bdfghiMnrV]*|t.?)$/),
  uniq: (args) => ((files(args)?.length ?? 0) <= 1 ? files(args) : undefined),
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
  /** Whether commands find a program of this name outside of the workspace, whose files are untrusted. */
  readonly isTrustedProgram: (name: string) => boolean;
  /** Whether the user has blocked paths: a search of a tree could reach them. */
  readonly hasBlockedPaths: boolean;
}

/** Whether commands only read files that may be read without approval. @param commands of a plain script */
export async function isReadOnly(commands: readonly (readonly string[])[], place: ReadOnlyPlace): Promise<boolean> {
  if (!commands.every(([program = '']) => Object.hasOwn(programs, program))) return false;
  // A `cd` may fail, or move a part of a pipeline only: the commands that follow must be right in every directory.
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
