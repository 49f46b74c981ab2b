import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BackgroundDriverEvent, EndedTree } from '../../../../machines/index.ts';
import { messageOf } from '../../../lib/index.ts';
import { defaults } from '../../../protocol/index.ts';
import { closeBeforeStart, ownIdentity, ProcessTree, readIdentity } from '../../../supervise/index.ts';
import { PacedText } from '../exec/paced-text.ts';

export interface DrivenCommand {
  /** Program and arguments. Its standard error should go to standard output. */
  readonly argv: readonly string[];
  readonly cwd: string;
  /** The whole environment, with the marker in it. */
  readonly env: Readonly<Record<string, string>>;
  /** Different for each command. */
  readonly marker: string;
}

/** The operating system's side of a background process. */
export interface ProcessDriver {
  /** Starts the command, or finds it. */
  start(report: (event: BackgroundDriverEvent) => void): void;
  /** Ends the command with its descendants, and reads the last of its output. */
  endTree(isPolite: boolean): Promise<EndedTree>;
  /** Writes to standard input. @returns false: it is closed, or too much input waits already */
  write(text: string): boolean;
}

/** Readers of the output of a background process. */
export interface OutputReaders {
  readonly onText: (text: string) => void;
  /** Called when output was lost. */
  readonly onSkip: () => void;
  /** Called when no more output will come. */
  readonly onEnd: () => void;
}

/** Time between SIGTERM and SIGKILL. */
const politeMs = 2_000;
/** Time after the exit in which the last output is read. */
const drainMs = 100;
/** Most characters of input that may wait for a process that does not read. */
export const maxWaitingInput = 65_536;

/** Spawns a background process that ends with this server, feeds it, and ends all of it. */
export class CommandDriver implements ProcessDriver {
  readonly #command: DrivenCommand;
  readonly #readers: OutputReaders;
  #child: ChildProcess | undefined;
  #tree: ProcessTree | undefined;
  #closed: Promise<void> = Promise.resolve();

  constructor(command: DrivenCommand, readers: OutputReaders) {
    this.#command = command;
    this.#readers = readers;
  }

  start(report: (event: BackgroundDriverEvent) => void): void {
    const { argv, cwd, env, marker } = this.#command;
    const [program = '', ...args] = argv;
    const text = new PacedText(this.#readers.onText);
    let child: ChildProcess;
    try {
      closeBeforeStart();
      child = spawn(program, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'ignore'], windowsHide: true });
    } catch (error) {
      report({ type: 'COMMAND.REFUSED', error: messageOf(error) });
      return;
    }
    this.#child = child;
    const { pid, stdin, stdout } = child;
    child.on('error', (error) => {
      if (child.pid === undefined) report({ type: 'COMMAND.REFUSED', error: messageOf(error) });
    });
    if (pid === undefined) return;
    const identity = readIdentity(pid);
    this.#tree = new ProcessTree(
      typeof identity === 'string' ? { ...ownIdentity(), pid, startedTicks: '' } : identity,
      marker,
      true,
    );
    // The process has ended or no longer reads; the next input reports that.
    stdin?.on('error', () => undefined);
    stdout?.on('data', (chunk: Buffer) => text.add(chunk, stdout));
    this.#closed = new Promise((resolve) => {
      stdout?.once('close', () => {
        text.end();
        resolve();
      });
    });
    child.once('exit', (exitCode, signal) => report({ type: 'COMMAND.EXITED', exitCode, signal }));
    report({ type: 'COMMAND.SPAWNED', pid });
  }

  async endTree(isPolite: boolean): Promise<EndedTree> {
    const report = await this.#tree?.end(isPolite ? politeMs : 0, defaults.supervise.killVerifyMs);
    await Promise.race([this.#closed, sleep(drainMs)]);
    for (const stream of [this.#child?.stdin, this.#child?.stdout]) stream?.destroy();
    this.#readers.onEnd();
    return { survivors: report?.remaining.length ?? 0 };
  }

  write(text: string): boolean {
    const stdin = this.#child?.stdin;
    if (!stdin?.writable || stdin.writableLength > maxWaitingInput) return false;
    stdin.write(text);
    return true;
  }
}
