import { isAbsolute, resolve } from 'node:path';
import type { Writable } from 'node:stream';
import { homeDirectory } from '../config/index.ts';
import { version } from '../protocol/index.ts';
import type { CommandContext } from './command.ts';
import { CliError } from './errors.ts';
import { type ExitName, exitCodes } from './exit-codes.ts';
import { Output } from './output.ts';
import { type Parsed, parse } from './parse.ts';

/** Request of the user to end a command. */
export interface Interruption {
  readonly signal: AbortSignal;
  /** Exit code after the request. */
  readonly exit: () => ExitName;
}

/** Parts of the process that a command line uses. */
export interface Surroundings {
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Absolute; undefined when it was deleted. */
  readonly cwd: string | undefined;
  /** Called unless the command is a foreground server, which handles signals itself. */
  readonly interruption: () => Interruption;
}

/**
 * Runs one command line: parses it, loads only its command, and turns the result or error into an exit code.
 *
 * @param argv without the interpreter and the program
 * @returns the exit code; never throws
 */
export async function runCommandLine(argv: readonly string[], surroundings: Surroundings): Promise<number> {
  const json = argv.includes('--json');
  const output = new Output({ ...surroundings, json });
  try {
    const parsed = parse(argv);
    if (parsed.kind === 'run') return await run(parsed, output, surroundings);
    if (parsed.kind === 'version') output.line(version);
    else (await import('./help.ts')).printHelp(version, parsed.command, parsed.group);
    return exitCodes.ok.code;
  } catch (error) {
    const { explain } = await import('./explain.ts');
    const failure = explain(error);
    if (json) output.document(failure.body);
    output.failure(failure);
    return failure.exitCode;
  }
}

async function run(
  { command, argument, options, lists }: Extract<Parsed, { kind: 'run' }>,
  output: Output,
  { env, cwd, interruption }: Surroundings,
): Promise<number> {
  const { run: start } = await command.load();
  const { signal, exit } = command.servesForeground ? uninterrupted() : interruption();
  const absolute = absoluteFrom(cwd);
  const home = homeDirectory(env);
  const context: CommandContext = { argument, options, lists, output, env, cwd, absolute, home, signal };
  try {
    return await start(context);
  } catch (error) {
    if (signal.aborted) return exitCodes[exit()].code;
    throw error;
  }
}

const absoluteFrom = (cwd: string | undefined) => (path: string) => {
  if (isAbsolute(path)) return resolve(path);
  if (cwd !== undefined) return resolve(cwd, path);
  const hint = 'Change to another directory, or give absolute paths.';
  throw new CliError('workspaceNotFound', 'The current directory does not exist any more.', hint);
};

const uninterrupted = (): Interruption => ({ signal: new AbortController().signal, exit: () => 'ok' });
