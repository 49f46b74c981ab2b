import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { TextTail } from '../lib/index.ts';
import type { ProcessIdentity } from '../protocol/index.ts';
import { monotonicMs } from './clock.ts';
import { ControlGroup } from './control-group.ts';
import { Descendants } from './descendants.ts';
import { readIdentity } from './identity.ts';
import { closeBeforeStart } from './inherited.ts';
import { killMarked } from './marked.ts';
import type { ProcessRecord } from './process-record.ts';
import { killGroupVerified } from './process-tree.ts';
import { markerVariable } from './scan.ts';
import { SpawnError } from './spawn.ts';

export interface PipedProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The whole environment but the marker. */
  readonly env: Readonly<Record<string, string>>;
  /** Our own marker: the child's begins with it, so that ending this process by its marker ends the child too. */
  readonly parentMarker: string | undefined;
  /** Bytes of the stored end of standard error. */
  readonly stderrBytes: number;
  /** Between SIGTERM and SIGKILL for remaining processes of a dead process's group. */
  readonly sweepGraceMs: number;
  /**
   * Stores the descendants for the case that this process is killed. With it the child also gets a control group of its own,
   * where this user may make one.
   */
  readonly record?: ProcessRecord | undefined;
}

export interface PipedExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/**
 * A process to converse with: leader of a group of its own, with pipes on all three standard streams. Its
 * standard error is read at once, and only the end is stored, so a process that writes much is never blocked.
 * (`spawnManaged` gives a child files instead of pipes: such a child cannot converse.)
 */
export class PipedProcess {
  readonly pid: number;
  readonly input: Writable;
  readonly output: Readable;
  /** The process itself has ended. */
  readonly exited: Promise<PipedExit>;
  /**
   * Resolves when no process is left: no member of its group or session, none with its marker, no seen descendant, none in its
   * control group. Never rejects.
   */
  readonly gone: Promise<PipedExit>;
  /** Descendants, for `poll` while the process works; absent where processes have no start times. */
  readonly descendants: Descendants | undefined;
  /** Resolves after the exit, when output and standard error are read to their ends. */
  readonly closed: Promise<void>;
  readonly #child: Child;
  readonly #stderr: TextTail;

  private constructor(child: Child, pid: number, marker: string, stderr: TextTail, options: PipedProcessOptions) {
    const { sweepGraceMs, record } = options;
    const group = record && ControlGroup.make();
    let joined: Promise<boolean> | undefined;
    this.#child = child;
    this.#stderr = stderr;
    this.pid = pid;
    this.input = child.stdin;
    this.output = child.stdout;
    // In the table even if it has exited already: nothing has reaped it before this turn of the loop ends.
    const identity = readIdentity(pid);
    if (typeof identity !== 'string') {
      const write = (seen: readonly ProcessIdentity[]) => record?.write(identity, seen, group?.directory);
      this.descendants = new Descendants(identity, { onPoll: write });
      write([]);
      joined = group?.add(identity);
    }
    this.closed = new Promise((resolve) => {
      child.once('close', () => resolve());
    });
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    this.gone = this.exited.then(async (exit) => {
      await sweepGroup(pid, sweepGraceMs);
      if (typeof identity === 'string') await killMarked(marker);
      else await endProcessTree(identity, marker);
      const left = (await this.descendants?.end()) ?? [];
      await joined;
      const isGroupGone = group === undefined || (await group.end());
      if (left.length === 0 && isGroupGone) await record?.clear();
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      return exit;
    });
  }

  /** @throws SpawnError when the process does not start; the message names the cause. */
  static async start(options: PipedProcessOptions): Promise<PipedProcess> {
    const { command, args, cwd, env, parentMarker, stderrBytes } = options;
    const marker = parentMarker ? `${parentMarker}/${randomUUID()}` : randomUUID();
    try {
      closeBeforeStart();
      const child = spawn(command, args, {
        cwd,
        env: { ...env, [markerVariable]: marker },
        detached: true,
        windowsHide: true,
        stdio: ['pipe', 'pipe', 'pipe'],
      });
      const { pid } = child;
      if (pid === undefined) throw await new Promise((resolve) => child.once('error', resolve));
      child.on('error', () => {});
      const stderr = new TextTail(stderrBytes);
      child.stderr.on('data', (chunk: Buffer) => stderr.write(chunk)).on('error', () => {});
      return new PipedProcess(child, pid, marker, stderr, options);
    } catch (error) {
      throw cannotStart(error as NodeJS.ErrnoException, command, cwd);
    }
  }

  /** End of its standard error, at most `chars` characters. */
  stderr(chars: number): string {
    return this.#stderr.read(chars);
  }

  /** SIGTERM to the group. Does nothing once the process has ended: then its group is being swept. */
  terminate(): void {
    if (this.#isOurs()) signalGroup(this.pid, 'SIGTERM');
  }

  /** SIGKILL to the group. */
  kill(): void {
    if (!this.#isOurs()) return;
    signalGroup(this.pid, 'SIGKILL');
    // Where there are no groups.
    this.#child.kill('SIGKILL');
  }

  /** A child that has not been reaped: no other process can have its number. */
  #isOurs(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }
}

/** True when the group had a member to signal. */
function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  if (process.platform === 'win32') return false;
  try {
    process.kill(-leader, signal);
    return true;
  } catch {
    return false;
  }
}

/** The number of a group with members is not reused: its members at the moment its leader has died are ours. */
async function sweepGroup(leader: number, graceMs: number): Promise<void> {
  const deadline = monotonicMs() + graceMs;
  let isThere = signalGroup(leader, 'SIGTERM');
  while (isThere && monotonicMs() < deadline) {
    await sleep(10);
    isThere = signalGroup(leader, 0);
  }
  if (isThere) signalGroup(leader, 'SIGKILL');
}

/** Also those that left the group: they carry the marker. */
async function endProcessTree(identity: Parameters<typeof killGroupVerified>[0], marker: string): Promise<void> {
  for (;;) {
    const { remaining } = await killGroupVerified(identity, marker);
    if (remaining.length === 0) return;
    await sleep(1_000);
  }
}

function cannotStart(error: NodeJS.ErrnoException, command: string, cwd: string): SpawnError {
  const code = error.code ?? 'UNKNOWN';
  return new SpawnError(code, command, `${command} cannot be started: ${reason(error, code, cwd)}.`, error);
}

/** The system reports ENOENT for a missing program and for a missing working directory alike. */
function reason(error: Error, code: string, cwd: string): string {
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) return `its directory ${cwd} does not exist`;
  if (code === 'ENOENT') return 'there is no such program';
  if (code === 'EACCES') return 'it may not be executed';
  return error.message;
}
