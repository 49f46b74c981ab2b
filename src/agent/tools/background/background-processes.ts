import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync } from 'node:fs';
import type { AnyActorRef } from 'xstate';
import type { BackgroundStopper } from '../../../../machines/index.ts';
import { type BackgroundProcessInfo, defaults } from '../../../protocol/index.ts';
import { endKeptCommand, type KeptCommand, keptFiles, listKept, readKept } from '../../../supervise/index.ts';
import type { ToolContext } from '../../tool.ts';
import type { KeptPlace } from '../exec/command-place.ts';
import { beginKept, type KeepSettings, takeOver } from '../exec/kept-command.ts';
import type { OutputFiles } from '../output-files.ts';
import { BackgroundProcess, type BackgroundProcessOptions } from './background-process.ts';
import { CommandDriver, type DrivenCommand } from './command-driver.ts';
import { KeptDriver, type KeptSource } from './kept-driver.ts';

const { maxBackgroundProcesses, maxEndedProcesses, backgroundReadChars } = defaults.agent;

export interface BackgroundProcessesOptions {
  /** Absent: all end with this server. */
  readonly keep?: KeepSettings | undefined;
  readonly secrets: readonly string[];
  /** Takes errors of the work after the end of a process. */
  readonly onBug: (error: unknown) => void;
  /** Absent: only output that the model reads is available. */
  readonly outputs: OutputFiles | undefined;
  /** Receives the actor of every process before it starts. */
  readonly observe?:
    | ((actor: AnyActorRef, process: BackgroundProcessInfo & { readonly threadId: string }) => void)
    | undefined;
}

export interface BackgroundCommand extends DrivenCommand, Pick<ToolContext, 'threadId' | 'turnId' | 'callId'> {
  /** Id of the record of a command that may outlive this server. The marker is that of `keptMarker`. */
  readonly keptId?: string | undefined;
  /** Sandbox that the next server takes over. Absent: the command runs without a sandbox, or ends with this server. */
  readonly place?: KeptPlace | undefined;
  /** Command that the model wrote. */
  readonly command: string;
}

/** Background processes of all conversations of a server. */
export class BackgroundProcesses {
  readonly #options: BackgroundProcessesOptions;
  readonly #processes = new Map<string, BackgroundProcess>();
  /** Drivers of the processes that outlive this server. */
  readonly #kept = new Map<string, KeptDriver>();
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
    const { keep } = this.#options;
    const { keptId } = command;
    const id = `proc_${randomBytes(4).toString('hex')}`;
    if (!keep || keptId === undefined) return this.#add(id, command, (readers) => new CommandDriver(command, readers));
    const background = { id, command: command.command };
    const { walls, room } = command.place ?? {};
    const sandbox = { ...(walls !== undefined && { walls }), ...(room && { room }) };
    const begun = beginKept(keep, command, { id: keptId, timeoutMs: null, background, ...sandbox });
    return this.#addKept({ begun, command }, begun.command, keep, background);
  }

  /**
   * Adopts the processes that an earlier server has started.
   *
   * @param isThread whether a conversation is stored; processes of other ones are ended
   */
  async adopt(isThread: (threadId: string) => boolean): Promise<void> {
    const { keep } = this.#options;
    if (!keep) return;
    const all = listKept(keep.directory);
    if (all.length > 0) takeOver(keep.directory);
    for (const found of all) {
      const { background, threadId } = found;
      if (!background) continue;
      if (isThread(threadId)) {
        const process = this.#addKept({ found }, found, keep, background);
        process.ended.then(() => keep.leave?.(found)).catch(this.#options.onBug);
      } else {
        await endKeptCommand(keep.directory, found);
        await keep.leave?.(found);
      }
    }
  }

  /** Leaves the processes to the next server, and starts none any more. Those that end with this server run on until \`close\`. */
  handOver(): void {
    this.#isClosed = true;
    for (const driver of this.#kept.values()) driver.handOver();
    for (const id of this.#kept.keys()) this.#processes.delete(id);
    this.#kept.clear();
  }

  #addKept(
    source: KeptSource,
    { id: keptId, threadId, startedAt }: KeptCommand,
    keep: KeepSettings,
    { id, command }: { readonly id: string; readonly command: string },
  ): BackgroundProcess {
    const { record } = keptFiles(keep.directory, keptId);
    const readChars = readKept(keep.directory, keptId)?.readChars ?? 0;
    const process = this.#add(
      id,
      { threadId, command },
      (readers) => {
        const driver = new KeptDriver(source, keep, readers);
        this.#kept.set(id, driver);
        return driver;
      },
      {
        earlier: { startedAt: new Date(startedAt).toISOString(), readChars },
        onRead: (chars) => existsSync(record) && appendFileSync(record, `read ${chars}\n`),
      },
    );
    void process.ended.then(() => this.#kept.delete(id));
    return process;
  }

  #add(
    id: string,
    { threadId, command }: Pick<BackgroundCommand, 'threadId' | 'command'>,
    driver: BackgroundProcessOptions['driver'],
    further: Pick<BackgroundProcessOptions, 'earlier' | 'onRead'> = {},
  ): BackgroundProcess {
    const { secrets, outputs, observe } = this.#options;
    const process: BackgroundProcess = new BackgroundProcess({
      ...{ id, threadId, command, secrets, driver, ...further },
      ...{ maxChars: backgroundReadChars, file: outputs?.begin(threadId) },
      observe: (actor) => observe?.(actor, { id, threadId, command, state: 'starting', startedAt: '' }),
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
