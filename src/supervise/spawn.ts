import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fchmodSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { FileRefusedError, messageOf, openToAppend } from '../lib/index.ts';
import { identityOf, isAlive, readProcess } from './identity.ts';
import { closeBeforeStart } from './inherited.ts';
import { logKeeper } from './log-keeper.ts';
import { type LogRedactor, startLogRedactor } from './log-redactor.ts';
import { type ManagedProcess, manage, type ProcessExit, type ProcessLogs } from './managed.ts';
import { ProcessTree } from './process-tree.ts';
import { listGroup } from './procfs.ts';
import { markerVariable } from './scan.ts';
import { groupIsEmpty } from './signals.ts';

/** Settings of a start. */
export interface SpawnOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The whole environment but the marker: see `childEnvironment`. */
  readonly env: Readonly<Record<string, string>>;
  /** Written to standard input, which is then closed. Without it standard input is empty. */
  readonly stdin?: string;
  /** An existing directory; `stdout.log` and `stderr.log` are appended to in it. */
  readonly logDirectory: string;
  /** Unlike any other: names this start in the environment of all descendants. */
  readonly marker: string;
  /** Size at which each log file is cut (see `capLog`). */
  readonly logBytes: number;
  /** Never written to the log files. With any, a small process of its own copies the output (`startLogRedactor`). */
  readonly secrets?: readonly string[];
}

const permanentSpawnErrors = new Set(['ENOENT', 'EACCES', 'ENOTDIR', 'ENOEXEC', 'EPERM']);

/**
 * True for an error that the same command line meets every time: no such file, not executable, no directory.
 *
 * @param code of the system's error
 */
export const isPermanentSpawnError = (code: string): boolean => permanentSpawnErrors.has(code);

/** A process could not be started. `code` is the system's (ENOENT, EACCES, …); the message names the file at fault. */
export class SpawnError extends Error {
  override readonly name = 'SpawnError';
  readonly code: string;
  readonly command: string;

  constructor(code: string, command: string, message: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
    this.command = command;
  }
}

/** Names of the log files in `directory`. */
export function logFiles(directory: string): ProcessLogs {
  return { stdout: join(directory, 'stdout.log'), stderr: join(directory, 'stderr.log') };
}

/**
 * Starts a process that may outlive us: a session and process group of its own, output to files or through a redactor (a
 * pipe to us would break with our death), no channel. It does not keep our event loop alive.
 * @throws SpawnError when it does not start.
 */
export async function spawnManaged(options: SpawnOptions): Promise<ManagedProcess> {
  const logs = logFiles(options.logDirectory);
  const { child, drained } = await start(options, logs);
  const pid = child.pid ?? 0;
  // Nothing has reaped the child before this turn of the loop ends, so even one that has exited is still in the table.
  const entry = readProcess(pid);
  const identity = identityOf(typeof entry === 'string' ? { pid, startedTicks: '' } : entry);
  const tree = new ProcessTree(identity, options.marker, true);
  const forget = logKeeper.add(Object.values(logs), options.logBytes);
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('exit', (exitCode, signal) => {
      // The number of a group with members is not reused: its present members are ours.
      if (process.platform === 'linux' && !groupIsEmpty(pid)) tree.remember(listGroup(pid));
      forget();
      resolve({ exitCode, signal, observed: true });
    });
  });
  child.on('error', () => {});
  child.unref();
  const isOurChild = () => child.exitCode === null && child.signalCode === null;
  const poll = () => {
    if (isOurChild() && isAlive(identity) === 'gone') child.ref();
  };
  return manage({ tree, logs, exited, drained, isOurChild, poll, detach: forget });
}

interface Started {
  readonly child: ChildProcess;
  /** All output is in the log files. */
  readonly drained: Promise<void>;
}

async function start(options: SpawnOptions, logs: ProcessLogs): Promise<Started> {
  const { command, args, cwd, env, stdin, marker } = options;
  const output: number[] = [];
  let redactor: LogRedactor | undefined;
  try {
    for (const file of [logs.stdout, logs.stderr]) output.push(openLog(file, command));
    if (options.secrets?.length) redactor = await startLogRedactor(logs, options.secrets);
    closeBeforeStart();
    const child = spawn(command, args, {
      cwd,
      env: { ...env, [markerVariable]: marker },
      detached: true,
      windowsHide: true,
      stdio: [stdin === undefined ? 'ignore' : 'pipe', ...(redactor?.inputs ?? output)],
    });
    if (child.pid === undefined) throw await new Promise((resolve) => child.once('error', resolve));
    // A child that closes its input or dies before it has read all is judged by its exit, not by our broken pipe.
    child.stdin?.on('error', () => {}).end(stdin);
    return { child, drained: redactor?.drained ?? Promise.resolve() };
  } catch (error) {
    throw error instanceof SpawnError ? error : explain(error as NodeJS.ErrnoException, command, cwd);
  } finally {
    redactor?.release();
    for (const fd of output) closeSync(fd);
  }
}

/** Append mode makes `capLog`'s truncation safe: the next line goes to the new end. */
function openLog(file: string, command: string): number {
  try {
    const fd = openToAppend(file);
    fchmodSync(fd, 0o600);
    return fd;
  } catch (error) {
    const cause = error instanceof FileRefusedError ? (error.cause ?? error) : error;
    const { code = 'UNKNOWN' } = cause as NodeJS.ErrnoException;
    throw new SpawnError(code, command, `Cannot start ${command}: its log ${messageOf(error)}`, error);
  }
}

/** The system says ENOENT for a missing program, interpreter or working directory alike. */
function explain(error: NodeJS.ErrnoException, command: string, cwd: string): SpawnError {
  const code = error.code ?? 'UNKNOWN';
  return new SpawnError(code, command, `Cannot start ${command}: ${reason(code, error, command, cwd)}`, error);
}

function reason(code: string, error: Error, command: string, cwd: string): string {
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) return `its directory ${cwd} does not exist (${code})`;
  if (code === 'EACCES') return 'it is not executable, or its directory is not accessible (EACCES)';
  if (code !== 'ENOENT') return error.message;
  const exists = command.includes('/') && statSync(command, { throwIfNoEntry: false }) !== undefined;
  return exists ? 'its interpreter does not exist (ENOENT)' : 'no such program (ENOENT)';
}
