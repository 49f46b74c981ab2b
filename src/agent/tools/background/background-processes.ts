import { randomBytes } from 'node:crypto';
import type { AnyActorRef } from 'xstate';
import type { BackgroundStopper } from '../../../../machines/index.ts';
import { type BackgroundProcessInfo, defaults } from '../../../protocol/index.ts';
import type { OutputFiles } from '../output-files.ts';
import { BackgroundProcess } from './background-process.ts';
import type { DrivenCommand } from './command-driver.ts';

const { maxBackgroundProcesses, maxEndedProcesses, backgroundReadChars } = defaults.agent;

export interface BackgroundProcessesOptions {
  readonly secrets: readonly string[];
  /** Absent: only output that the model reads is available. */
  readonly outputs: OutputFiles | undefined;
  /** Receives the actor of every process before it starts. */
  readonly observe?:
    | ((actor: AnyActorRef, process: BackgroundProcessInfo & { readonly threadId: string }) => void)
    | undefined;
}

export interface BackgroundCommand extends DrivenCommand {
  readonly threadId: string;
  /** Command that the model wrote. */
  readonly command: string;
}

/** Background processes of all conversations of a server. */
export class BackgroundProcesses {
  readonly #options: BackgroundProcessesOptions;
  readonly #processes = new Map<string, BackgroundProcess>();
  #isClosed = false;

  constructor(options: BackgroundProcessesOptions) {
    this.#options = options;
  }

  /** Starts a command. @returns undefined: as many run in this conversation as may */
  start(command: BackgroundCommand): BackgroundProcess | undefined {
    const { threadId } = command;
    if (this.#isClosed || this.#of(threadId).filter(({ isRunning }) => isRunning).length >= maxBackgroundProcesses) {
      return undefined;
    }
    this.#forgetOldest(threadId);
    const { secrets, outputs, observe } = this.#options;
    const id = `proc_${randomBytes(4).toString('hex')}`;
    const process: BackgroundProcess = new BackgroundProcess({
      ...command,
      ...{ id, secrets, maxChars: backgroundReadChars, file: outputs?.begin(threadId) },
      observe: (actor) =>
        observe?.(actor, { id, threadId, command: command.command, state: 'starting', startedAt: '' }),
    });
    this.#processes.set(id, process);
    return process;
  }

  /** Whether a process of any conversation runs. */
  get isBusy(): boolean {
    return [...this.#processes.values()].some(({ isRunning }) => isRunning);
  }

  /** Process of a conversation; undefined: the conversation has no process of this id. */
  get(threadId: string, id: string): BackgroundProcess | undefined {
    const process = this.#processes.get(id);
    return process?.threadId === threadId ? process : undefined;
  }

  /** Ends a process. @returns false: the conversation has no process of this id */
  async stop(threadId: string, id: string, by: BackgroundStopper = 'user'): Promise<boolean> {
    const process = this.get(threadId, id);
    await process?.stop(by);
    return process !== undefined;
  }

  /** Processes of a conversation, oldest first; also those that have ended lately. */
  list(threadId: string): BackgroundProcessInfo[] {
    return this.#of(threadId).map(({ info }) => info);
  }

  /** Ends and forgets all processes of a conversation. */
  async endThread(threadId: string, by: BackgroundStopper = 'thread'): Promise<void> {
    const processes = this.#of(threadId);
    await Promise.all(processes.map((process) => process.stop(by)));
    for (const { id } of processes) this.#processes.delete(id);
  }

  /** Ends all, and starts none any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#processes.values()].map((process) => process.stop('server')));
    this.#processes.clear();
  }

  #of(threadId: string): BackgroundProcess[] {
    return [...this.#processes.values()].filter((process) => process.threadId === threadId);
  }

  #forgetOldest(threadId: string): void {
    const ended = this.#of(threadId).filter(({ isRunning }) => !isRunning);
    for (const { id } of ended.slice(0, Math.max(0, ended.length + 1 - maxEndedProcesses))) this.#processes.delete(id);
  }
}
