import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf, openToAppend } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import { capLog, ensurePrivateDirectory, readTail } from '../supervise/index.ts';
import { HubUnavailableError } from './errors.ts';

/** A command line without the arguments that follow. */
export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

const shownLogBytes = 2_048;
const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** A Hub that was started a moment ago and may not serve yet. */
export interface StartedHub {
  readonly pid: number;
  /** Exit code (or name of the signal) of the ended process; null while it runs. */
  ended(): number | string | null;
  /** The end of its output, without that of earlier Hubs. */
  logTail(): string;
  /** Lets this process end without waiting for the Hub. */
  release(): void;
}

/**
 * Path of the log of the Hub of a user home.
 *
 * @example const file = hubLogFile(home); // <home>/hub/hub.log
 */
export const hubLogFile = (home: string): string => join(home, 'hub', 'hub.log');

/**
 * Flags of Node for the Hub, which allocates little and lives long. A small young generation saves it 15 MiB when many
 * workspaces run.
 */
export const hubFlags = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=1'];

/**
 * Command line that runs a Hub in the foreground with this very Node: the command line tool of this package, sources
 * beside sources, bundle beside bundle.
 *
 * @example const { command, args } = hubCommand();
 */
export function hubCommand(): Command {
  const here = import.meta.url;
  const candidates = here.endsWith('.ts') ? ['../cli/main.ts'] : ['../cli/main.cjs', './cli/main.cjs'];
  const entry = candidates.map((path) => fileURLToPath(new URL(path, here))).find((path) => existsSync(path));
  if (entry === undefined)
    throw new HubUnavailableError('The command line tool that could start a Hub is not installed.');
  return { command: process.execPath, args: [...hubFlags, entry, 'hub'] };
}

/**
 * Starts a Hub for `home` that outlives this process: a session of its own, nothing inherited but a log file (0600).
 *
 * @throws HubUnavailableError when the home cannot be written or the program cannot be run
 */
export async function startHub(home: string, command: Command = hubCommand()): Promise<StartedHub> {
  const log = hubLogFile(home);
  let child: ChildProcess;
  let earlier: number;
  try {
    ensurePrivateDirectory(home);
    ensurePrivateDirectory(join(home, 'hub'));
    closeSync(openToAppend(log));
    await capLog(log, defaults.supervise.logBytes);
    earlier = sizeOf(log);
    child = spawnDetached(command, home, log);
    await new Promise<void>((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  } catch (error) {
    const why = messageOf(error);
    throw new HubUnavailableError(`The Hub cannot be started: ${why}`, { cause: error });
  }
  // A child that could be spawned reports no further error that a caller could handle.
  child.on('error', () => undefined);
  return {
    pid: child.pid ?? 0,
    ended: () => child.exitCode ?? child.signalCode,
    logTail: () => readTail(log, Math.min(shownLogBytes, sizeOf(log) - earlier)).trimEnd(),
    release: () => child.unref(),
  };
}

/** Settings of a review backend, its keys among them, are not the Hub's: it outlives the backend, and starts agents. */
const ofBackend = /^oratorio__|^oratorio_(?:service_token|github_webhook_secret)$/i;
const withoutBackend = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !ofBackend.test(name)));

function spawnDetached({ command, args }: Command, home: string, log: string): ChildProcess {
  const descriptor = openToAppend(log);
  try {
    return spawn(command, args, {
      detached: true,
      // Not the caller's directory, which could then not be removed or unmounted while the Hub lives.
      cwd: home,
      env: { ...withoutBackend(process.env), ORATORIO_HOME: home },
      stdio: ['ignore', descriptor, descriptor],
      windowsHide: true,
    });
  } finally {
    closeSync(descriptor);
  }
}
