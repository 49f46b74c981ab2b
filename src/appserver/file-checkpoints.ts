import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ExpectedChanges, FileCheckpoints, FilePlace } from '../agent/index.ts';
import type { WorkspaceCheckpoints, WorkspaceCheckpointsOptions } from '../checkpoints/index.ts';
import type { Config } from '../config/index.ts';

export interface FileCheckpointsOptions extends Omit<WorkspaceCheckpointsOptions, 'limits'> {
  readonly settings: Config['Checkpoints'];
  /** Logs a failure of the recovery. */
  readonly onProblem: (error: unknown) => void;
}

const mib = 2 ** 20;
const dayMs = 86_400_000;

/** Checkpoints that are loaded with the first turn, or at once when an earlier process was killed in the middle of one. */
export class LazyCheckpoints implements FileCheckpoints {
  readonly #options: FileCheckpointsOptions;
  #loading: Promise<WorkspaceCheckpoints> | undefined;
  #loaded: WorkspaceCheckpoints | undefined;
  #recovering: Promise<void> | undefined;

  constructor(options: FileCheckpointsOptions) {
    this.#options = options;
    if (isUnclean(options.directory)) this.#recover();
  }

  /** Loads the code that the first turn needs. That turn reports a part that cannot be loaded. */
  async preload(): Promise<void> {
    await this.#load().catch(() => {
      this.#loading = undefined;
    });
  }

  recovered(): Promise<void> | undefined {
    return this.#recovering;
  }

  begin(place: FilePlace, changes: ExpectedChanges): void {
    if (this.#loaded) this.#loaded.begin(place, changes);
    else void this.#load().then((checkpoints) => checkpoints.begin(place, changes), this.#options.onProblem);
  }

  resume(place: FilePlace, changes: ExpectedChanges): void {
    this.#recover((checkpoints) => checkpoints.resume(place, changes));
  }

  async secure(place: FilePlace): Promise<void> {
    await (await this.#load()).secure(place);
  }

  working(place: FilePlace): () => void {
    return this.#loaded?.working(place) ?? (() => {});
  }

  settle(place: FilePlace): Promise<void> | undefined {
    if (this.#loaded) return this.#loaded.settle(place);
    // A turn that ends so early has run no tool.
    void this.#loading?.then((checkpoints) => checkpoints.settle(place)).catch(() => undefined);
    return undefined;
  }

  async restore(request: Parameters<FileCheckpoints['restore']>[0]): ReturnType<FileCheckpoints['restore']> {
    return (await this.#load()).restore(request);
  }

  async list(...request: Parameters<FileCheckpoints['list']>): ReturnType<FileCheckpoints['list']> {
    return (await this.#load()).list(...request);
  }

  async turnsFrom(...request: Parameters<FileCheckpoints['turnsFrom']>): ReturnType<FileCheckpoints['turnsFrom']> {
    return (await this.#load()).turnsFrom(...request);
  }

  async diff(...request: Parameters<FileCheckpoints['diff']>): ReturnType<FileCheckpoints['diff']> {
    return (await this.#load()).diff(...request);
  }

  async merge(...request: Parameters<FileCheckpoints['merge']>): ReturnType<FileCheckpoints['merge']> {
    return (await this.#load()).merge(...request);
  }

  async announceCopy(...request: Parameters<FileCheckpoints['announceCopy']>): Promise<void> {
    await (await this.#load()).announceCopy(...request);
  }

  async keepCopy(...request: Parameters<FileCheckpoints['keepCopy']>): Promise<void> {
    await (await this.#load()).keepCopy(...request);
  }

  async removeCopy(...request: Parameters<FileCheckpoints['removeCopy']>): Promise<void> {
    await (await this.#load()).removeCopy(...request);
  }

  async copyTo(...request: Parameters<FileCheckpoints['copyTo']>): Promise<unknown> {
    return (await this.#load()).copyTo(...request);
  }

  async head(...request: Parameters<FileCheckpoints['head']>): ReturnType<FileCheckpoints['head']> {
    return (await this.#load()).head(...request);
  }

  async depart(...request: Parameters<FileCheckpoints['depart']>): ReturnType<FileCheckpoints['depart']> {
    return (await this.#load()).depart(...request);
  }

  async arrive(...request: Parameters<FileCheckpoints['arrive']>): ReturnType<FileCheckpoints['arrive']> {
    return (await this.#load()).arrive(...request);
  }

  async forget(threadId: string): Promise<void> {
    if (existsSync(this.#options.directory)) await (await this.#load()).forget(threadId);
  }

  async close(): Promise<void> {
    await this.#recovering;
    await (await this.#loading)?.close();
  }

  /** Completes the work of a dead process. @param prepare runs before it */
  #recover(prepare?: (checkpoints: WorkspaceCheckpoints) => void): void {
    const before = this.#recovering;
    const recovering = this.#load()
      .then(async (checkpoints) => {
        prepare?.(checkpoints);
        await checkpoints.recovered();
      })
      .catch(this.#options.onProblem)
      .then(() => before)
      .finally(() => {
        if (this.#recovering === recovering) this.#recovering = undefined;
      });
    this.#recovering = recovering;
  }

  #load(): Promise<WorkspaceCheckpoints> {
    this.#loading ??= this.#create();
    return this.#loading;
  }

  async #create(): Promise<WorkspaceCheckpoints> {
    const { WorkspaceCheckpoints, defaultLimits } = await import('../checkpoints/index.ts');
    const { MaxFileMiB, MaxIgnoredFileMiB, MaxEntries, MaxStoreMiB, RetentionDays } = this.#options.settings;
    this.#loaded = new WorkspaceCheckpoints({
      ...this.#options,
      limits: {
        ...defaultLimits,
        fileBytes: MaxFileMiB * mib,
        ignoredFileBytes: MaxIgnoredFileMiB * mib,
        entries: MaxEntries,
        storeBytes: MaxStoreMiB * mib,
        ageMs: RetentionDays * dayMs,
      },
    });
    return this.#loaded;
  }
}

/** SQLite removes the log of a database only when it is closed. */
function isUnclean(directory: string): boolean {
  if (!existsSync(directory)) return false;
  return readdirSync(directory).some((tree) => existsSync(join(directory, tree, 'checkpoints.db-wal')));
}
