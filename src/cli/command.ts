import type { Output } from './output.ts';

/** One option of a command. A `--no-x` is declared with that name and read as `x: false`; with `--x` declared too, `x` is undefined while neither is given. */
export interface OptionSpec {
  /** Without dashes, e.g. `json`, `no-start`. */
  readonly name: string;
  readonly alias?: string;
  /** Placeholder of its value in the help; absent: it is a switch. */
  readonly value?: string;
  /** Allowed values. */
  readonly choices?: readonly string[];
  /** Whether the option may be given more than once; its values are then in `lists`. */
  readonly repeats?: boolean;
  readonly describe: string;
}

export interface ArgumentSpec {
  readonly name: string;
  readonly choices?: readonly string[];
  /** Words that shell completion offers. */
  readonly completes: 'directories' | 'choices' | 'nothing';
}

/** One row of the command table: help, parsing and shell completion are made from it. */
export interface CommandSpec {
  /** One to three words, e.g. `hub stop`. */
  readonly name: string;
  /** First sentence: for the list of commands. The rest: for the help of the command. */
  readonly describe: readonly string[];
  readonly argument?: ArgumentSpec;
  /** Option whose value can also be the second argument. */
  readonly second?: OptionSpec;
  readonly options: readonly OptionSpec[];
  /** Arguments after the program's name. */
  readonly examples: readonly string[];
  /** Whether the command is a server that handles SIGINT and SIGTERM itself. */
  readonly servesForeground?: boolean;
  /** Imports the command, so that only the command that runs is loaded. */
  readonly load: () => Promise<{ readonly run: (context: CommandContext) => Promise<number> }>;
}

export type OptionValues = Readonly<Record<string, string | boolean | undefined>>;

/** Input of a command, which returns its exit code, or throws an error that `explain` can explain. */
export interface CommandContext {
  readonly argument: string | undefined;
  readonly options: OptionValues;
  /** Values of the options that may be given more than once. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
  readonly output: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Directory the command was given in, absolute; undefined when it was deleted. */
  readonly cwd: string | undefined;
  /**
   * Absolute form of a path of the command line.
   * @throws CliError workspaceNotFound for a relative path when the current directory was deleted
   */
  readonly absolute: (path: string) => string;
  /** User home of the product, absolute. */
  readonly home: string;
  /** Aborts at the first Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
}
