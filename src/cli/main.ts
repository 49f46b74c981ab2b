/**
 * The command line tool: one file per command in `commands/`, one table of them in `commands.ts`, and this entry, which
 * ties a command line to its process. Never here: what the Hub or the agent server do; a command asks them.
 */
import { type ExitName, exitCodes } from './exit-codes.ts';
import { type Interruption, runCommandLine } from './run.ts';

/** The reader of a pipe has had enough (`oratorio list | head -1`): that is no failure, and nobody is there to tell. */
function leaveQuietlyWhenUnread(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(exitCodes.ok.code);
    throw error;
  });
}

/** Nobody presses twice within this time: it is one Ctrl-C, sent by the terminal and passed on by the launcher. */
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

leaveQuietlyWhenUnread();
const { stdout, stderr, env } = process;
const exitCode = await runCommandLine(process.argv.slice(2), { stdout, stderr, env, cwd: process.cwd(), interruption });
// What is written is flushed first; a keep-alive connection that is still open must not hold the process.
stdout.write('', () => process.exit(exitCode));
