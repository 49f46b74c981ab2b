/** Entry of the agent server's process. The Hub runs this file, `oratorio app-server` the same functions. */
import { createLogger } from '../log/index.ts';
import { closeInherited } from '../supervise/index.ts';
import { parseArguments } from './arguments.ts';
import { readLaunchDocument } from './launch-document.ts';
import { type RunOutcome, runAppServer } from './run.ts';
import { exitCodes, StartupError } from './startup-error.ts';

const logger = createLogger({ name: 'appserver' });

/** Longest exit of the process in milliseconds after its turns are suspended, even after an error on the way out. */
const exitDeadlineMs = 1_800;
let exitTimer: NodeJS.Timeout | undefined;

function exitWithin(ms: number): void {
  clearTimeout(exitTimer);
  exitTimer = setTimeout(() => process.exit(exitCodes.ok), ms).unref();
}

async function main(): Promise<RunOutcome> {
  try {
    closeInherited();
    const { workspacePath, isManaged, listen } = parseArguments(process.argv.slice(2));
    const launch = isManaged ? await readLaunchDocument(process.stdin) : undefined;
    const onStopping = (withinMs: number) => exitWithin(withinMs + exitDeadlineMs);
    const env = { ...process.env, ...launch?.environment };
    return await runAppServer({ workspacePath, listen, launch, env, logger, onStopping });
  } catch (error) {
    if (error instanceof StartupError) return { exitCode: error.exitCode, problem: error.message };
    throw error;
  }
}

function die(error: unknown): void {
  logger.bug(error);
  // Inconsistent state is not cleaned up: the kernel frees lock and ports, the supervisor starts afresh.
  process.exit(exitCodes.bug);
}

process.on('uncaughtException', die);
process.on('unhandledRejection', die);
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => exitWithin(exitDeadlineMs));

// No top-level await: the build makes CommonJS of this file, which starts faster (docs/decisions.md).
void main().then(({ exitCode, problem }) => {
  if (problem !== undefined) process.stderr.write(`oratorio app-server: ${problem}\n`);
  process.exit(exitCode);
});
