import type { Readable, Writable } from 'node:stream';
import { createLogger, type Logger } from '../log/index.ts';
import type { AppServer, AppServerOptions } from './app-server.ts';
import { startAppServer } from './start-app-server.ts';
import { exitCodes, StartupError } from './startup-error.ts';

export interface RunOptions extends Omit<AppServerOptions, 'logger'> {
  readonly logger?: Logger;
  /** Called once, when it answers. */
  readonly onServing?: (server: Omit<AppServer, 'close' | 'handOver' | 'serveStdio'>) => void;
  /** Called once, when it ends: turns may take this long to reach a safe point. */
  readonly onStopping?: (withinMs: number) => void;
  /** Speaks JSON-RPC here too; its end of input ends the server. */
  readonly stdio?: { readonly input: Readable; readonly output: Writable } | undefined;
}

/** End of a run. `problem` is one line for people, absent after an orderly end. */
export interface RunOutcome {
  readonly exitCode: number;
  readonly problem?: string;
}

/**
 * Serves a workspace until it sleeps, or until SIGTERM or SIGINT, even during its start. Resolves when all resources are released.
 * Never throws: a failure is in the outcome.
 */
export async function runAppServer(options: RunOptions): Promise<RunOutcome> {
  const { logger = createLogger({ name: 'appserver' }), onServing, onStopping, stdio, ...rest } = options;
  const stop = stopSignal();
  try {
    const server = await startAppServer({ ...rest, logger });
    if (!stop.isAsked()) onServing?.(server);
    const hungUp = stdio && server.serveStdio(stdio.input, stdio.output).then(() => 'end of input');
    const asleep = server.asleep.then(() => 'sleep');
    const signal = await Promise.race([stop.asked, asleep, ...(hungUp ? [hungUp] : [])]);
    const turns = server.handOver();
    onStopping?.(turns.kind === 'suspend' ? turns.withinMs : 0);
    logger.info('stopping', { signal, turns });
    await server.close(turns);
    return { exitCode: exitCodes.ok };
  } catch (error) {
    if (error instanceof StartupError) return { exitCode: error.exitCode, problem: error.message };
    if (isDiskRefusal(error)) {
      // The log may be on the same disk: then the Hub knows no more than the exit code.
      return { exitCode: exitCodes.system, problem: `the disk takes no more: ${error.message}; make room (df -h)` };
    }
    const errorId = logger.bug(error);
    return { exitCode: exitCodes.bug, problem: `this is a bug; see ${errorId} in the log` };
  } finally {
    stop.release();
  }
}

/** Codes of a disk that is full, beyond its quota or read-only, and of a file beyond its limit. */
const diskRefusals: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EFBIG']);

const isDiskRefusal = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && diskRefusals.has(String(error.code));

const ignore = () => undefined;

/** Resolves with the first signal that asks this process to end. */
function stopSignal() {
  let isAsked = false;
  let resolve: (signal: NodeJS.Signals) => void = () => {};
  const asked = new Promise<NodeJS.Signals>((settle) => {
    resolve = settle;
  });
  const onSignal = (signal: NodeJS.Signals) => {
    isAsked = true;
    resolve(signal);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  // A write beyond the limit on the size of files then fails for its caller, like a full disk.
  process.on('SIGXFSZ', ignore);
  return {
    asked,
    isAsked: () => isAsked,
    release() {
      process.off('SIGTERM', onSignal);
      process.off('SIGINT', onSignal);
      process.off('SIGXFSZ', ignore);
    },
  };
}
