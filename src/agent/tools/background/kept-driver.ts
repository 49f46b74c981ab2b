import { closeSync, constants, openSync, writeSync } from 'node:fs';
import type { BackgroundDriverEvent, EndedTree } from '../../../../machines/index.ts';
import { messageOf } from '../../../lib/index.ts';
import type { ProcessIdentity } from '../../../protocol/index.ts';
import {
  findKeeper,
  isAlive,
  type KeptCommand,
  keptFiles,
  keptMarker,
  killMarked,
  ProcessTree,
  readKept,
} from '../../../supervise/index.ts';
import { keeperEnd } from '../exec/adopt-kept.ts';
import type { KeptPlace } from '../exec/command-place.ts';
import {
  type BegunCommand,
  followerOf,
  forgetKept,
  HandOverError,
  type KeepSettings,
  openOutput,
  politeMs,
  startKeeper,
  withReport,
} from '../exec/kept-command.ts';
import type { OutputFollower } from '../exec/output-follower.ts';
import type { DrivenCommand, OutputReaders, ProcessDriver } from './command-driver.ts';

/** A command with its sandbox, if it has one. */
interface KeptDrivenCommand extends DrivenCommand {
  readonly place?: KeptPlace | undefined;
}

/** A command to start, or one that an earlier server has started. */
export type KeptSource =
  | { readonly begun: BegunCommand; readonly command: KeptDrivenCommand }
  | { readonly found: KeptCommand };

/** Drives a background process below a keeper: it outlives the server, and the next one finds it. */
export class KeptDriver implements ProcessDriver {
  readonly #source: KeptSource;
  readonly #kept: KeptCommand;
  readonly #keep: KeepSettings;
  readonly #readers: OutputReaders;
  readonly #handOver = new AbortController();
  #keeper: ProcessIdentity | undefined;
  #release: (() => void) | undefined;
  #follower: OutputFollower | undefined;
  #input: number | undefined;
  /** Absent once the exit was reported. */
  #report: ((event: BackgroundDriverEvent) => void) | undefined;

  constructor(source: KeptSource, keep: KeepSettings, readers: OutputReaders) {
    this.#source = source;
    this.#kept = 'begun' in source ? source.begun.command : source.found;
    this.#keep = keep;
    this.#readers = readers;
  }

  start(report: (event: BackgroundDriverEvent) => void): void {
    this.#report = report;
    this.#run(report).catch((error: unknown) => {
      if (!(error instanceof HandOverError)) report({ type: 'COMMAND.REFUSED', error: messageOf(error) });
    });
  }

  /** Leaves the command to the next server. */
  handOver(): void {
    this.#handOver.abort(new HandOverError());
    this.#follower?.close();
    this.#release?.();
    if ('begun' in this.#source) this.#source.command.place?.handOver();
    this.#closeInput();
  }

  async endTree(isPolite: boolean): Promise<EndedTree> {
    const { directory } = this.#keep;
    const marker = keptMarker(directory, this.#kept.id);
    const report = this.#keeper && (await new ProcessTree(this.#keeper, marker).end(isPolite ? politeMs : 0));
    if (!report) await killMarked(marker);
    await this.#follower?.end();
    this.#closeInput();
    this.#readers.onEnd();
    this.#reportExit();
    forgetKept(this.#keep, this.#kept);
    return { survivors: report?.remaining.length ?? 0 };
  }

  write(text: string): boolean {
    try {
      const { input } = keptFiles(this.#keep.directory, this.#kept.id);
      this.#input ??= openSync(input, constants.O_WRONLY | constants.O_NONBLOCK);
      const bytes = Buffer.from(text);
      return writeSync(this.#input, bytes) === bytes.length;
    } catch {
      // The pipe is full, or gone.
      return false;
    }
  }

  #closeInput(): void {
    if (this.#input !== undefined) closeSync(this.#input);
    this.#input = undefined;
  }

  async #run(report: (event: BackgroundDriverEvent) => void): Promise<void> {
    const { directory } = this.#keep;
    const { id } = this.#kept;
    const output = 'begun' in this.#source ? await this.#spawn(this.#source) : openOutput(this.#keep, id);
    const files = keptFiles(directory, id);
    if (output !== undefined) this.#follower = followerOf(files, output, this.#readers);
    if ('found' in this.#source) {
      const found = await findKeeper(directory, this.#source.found);
      if (typeof found === 'object') this.#keeper = found;
    }
    const keeper = this.#keeper;
    if (keeper) {
      report({ type: 'COMMAND.SPAWNED', pid: keeper.pid });
      if (isAlive(keeper) !== 'gone') await keeperEnd(this.#kept, keeper, this.#keep, this.#handOver.signal);
    } else report({ type: 'COMMAND.SPAWNED', pid: 0 });
    this.#reportExit();
  }

  /** Reads the exit from the record. The end of a stopped tree may be seen before that of its keeper, and removes the record. */
  #reportExit(): void {
    const none = { cause: 'exited', exitCode: null, signal: null } as const;
    const { exitCode, signal } = withReport(none, readKept(this.#keep.directory, this.#kept.id)?.lines ?? []);
    this.#report?.({ type: 'COMMAND.EXITED', exitCode, signal });
    this.#report = undefined;
  }

  async #spawn({ begun, command }: Extract<KeptSource, { begun: BegunCommand }>): Promise<number> {
    const started = startKeeper(
      { ...command, line: command.place?.line, signal: new AbortController().signal },
      begun,
      this.#keep,
    );
    this.#keeper = started.keeper;
    this.#release = () => started.program.release();
    if (!started.keeper) await started.program.ended;
    started.program.ended.catch(() => undefined);
    return started.output;
  }
}
