/**
 * The command line tool: one file per command in `commands/`, one table of them in `commands.ts`, and this entry, which
 * ties a command line to its process. Never here: work of the Hub or the agent server; a command asks them.
 */
import { isMissingPart } from '../lib/index.ts';
import { type ExitName, exitCodes } from './exit-codes.ts';
import { parse } from './parse.ts';
import { type Interruption, runCommandLine } from './run.ts';

/** Set by `bin/oratorio.js` for its child: process id of the launcher. */
const launcherVariable = 'ORATORIO_LAUNCHER_PID';

/** Whether this command line runs a server, which continues without a reader of its output. */
function runsServer(argv: readonly string[]): boolean {
  try {
    const parsed = parse(argv);
    return parsed.kind === 'run' && parsed.command.servesForeground === true;
  } catch {
    // `run` reports a command line that cannot be parsed.
    return false;
  }
}

/**
 * Ends without a failure when the reader of a pipe has closed it (`oratorio list | head -1`). Any other reason, such as a
 * full disk, means that the caller does not have the result.
 */
function endUnwritten(error: NodeJS.ErrnoException): void {
  if (isServer) return;
  if (error.code === 'EPIPE') process.exit(exitCodes.ok.code);
  process.stderr.write(`✖ Standard output cannot be written: ${error.message}\n`);
  process.exit(exitCodes.failure.code);
}

/** Longest wait of an ended server for a reader of its output. */
const flushDeadlineMs = 1_000;

/** Two signals within this time are one Ctrl-C, sent by the terminal and forwarded by the launcher. */
const oneKeystrokeMs = 200;

/** The first Ctrl-C (or SIGTERM) asks the command to end, the second ends the process. */
function interruption(): Interruption {
  const controller = new AbortController();
  let exit: ExitName = 'interrupted';
  let first = 0;
  const onSignal = (name: ExitName) => () => {
    if (controller.signal.aborted) {
      if (performance.now() - first > oneKeystrokeMs) process.exit(exitCodes[name].code);
      return;
    }
    first = performance.now();
    exit = name;
    controller.abort(new Error('interrupted'));
  };
  process.on('SIGINT', onSignal('interrupted'));
  process.on('SIGTERM', onSignal('terminated'));
  return { signal: controller.signal, exit: () => exit };
}

const argv = process.argv.slice(2);
const isServer = runsServer(argv);

/** @returns undefined for a directory that was deleted */
function currentDirectory(): string | undefined {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
}

/** How often a child of the launcher checks that the launcher still runs. */
const launcherCheckMs = 1_000;

/** Ends this process when the launcher that forwards its signals (`bin/oratorio.js`) is killed. */
function endWithLauncher(): void {
  const launcher = process.env[launcherVariable];
  delete process.env[launcherVariable];
  if (launcher === undefined) return;
  setInterval(() => {
    if (process.ppid !== Number(launcher)) process.kill(process.pid, 'SIGTERM');
  }, launcherCheckMs).unref();
}

async function main(): Promise<void> {
  endWithLauncher();
  const { stdout, stderr, env } = process;
  stdout.on('error', endUnwritten);
  // Without a reader of standard error only explanations are lost.
  stderr.on('error', () => undefined);
  const exitCode = await runCommandLine(argv, { stdout, stderr, env, cwd: currentDirectory(), interruption });
  if (isServer) setTimeout(() => process.exit(exitCode), flushDeadlineMs).unref();
  // The output is flushed first; an open keep-alive connection must not hold the process.
  stdout.write('', (error) => {
    if (error) endUnwritten(error);
    process.exit(exitCode);
  });
}

// Only a part of the program that cannot be loaded gets here: an upgrade, a limit of open files, or a damaged installation.
main().catch((error: Error) => {
  const advice = isMissingPart(error)
    ? 'Oratorio was updated while this command ran: run it again. If that fails, install Oratorio again.'
    : 'Check the limit of open files (ulimit -n), or install Oratorio again.';
  process.stderr.write(`✖ ${error.message}\n  ${advice}\n`);
  process.exit(exitCodes.failure.code);
});
