import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { Logger } from '../../log/index.ts';
import { changedPaths, needsRestart } from './changes.ts';
import { SettingsError } from './error.ts';
import { type LoadedSettings, loadSettings, type SettingsPlace } from './load.ts';
import type { BackendSettings } from './schema.ts';

/** A change of the settings while the backend runs. */
export interface SettingsChange {
  readonly settings: BackendSettings;
  /** Paths of the settings that have changed. */
  readonly changed: readonly string[];
  /** Paths of the changed settings that hold only after a restart. */
  readonly restartNeededFor: readonly string[];
}

export interface SourceOptions {
  readonly place: SettingsPlace;
  readonly logger: Logger;
  /** Silence after a change of a file before it is read; default 200 ms. */
  readonly debounceMs?: number;
  /** Interval of polls for changes that the system does not report (mounted files); default 5 s. */
  readonly pollMs?: number;
}

/**
 * The settings of a running backend. They are replaced as a whole: a holder of `current` has one consistent state. A file that
 * cannot be used changes nothing, and `problem` names the reason until it can.
 */
export class SettingsSource {
  readonly place: SettingsPlace;
  readonly #logger: Logger;
  readonly #debounceMs: number;
  readonly #listeners = new Set<(change: SettingsChange) => void>();
  readonly #atStart: BackendSettings;
  #loaded: LoadedSettings;
  #problem: SettingsError | undefined;
  #watchers = new Map<string, FSWatcher>();
  #debounce: NodeJS.Timeout | undefined;
  readonly #poll: NodeJS.Timeout;
  #isClosed = false;

  /** Reads the settings and watches their sources. @throws SettingsError */
  constructor({ place, logger, debounceMs = 200, pollMs = 5_000 }: SourceOptions) {
    this.place = place;
    this.#logger = logger;
    this.#debounceMs = debounceMs;
    this.#loaded = loadSettings(place);
    this.#atStart = this.#loaded.settings;
    for (const warning of this.#loaded.warnings) logger.warn('settings', { warning });
    this.#poll = setInterval(() => this.reload(), pollMs).unref();
    this.#watch();
  }

  get current(): BackendSettings {
    return this.#loaded.settings;
  }

  get loaded(): LoadedSettings {
    return this.#loaded;
  }

  /** Reason why the current file is not used. */
  get problem(): SettingsError | undefined {
    return this.#problem;
  }

  /** Settings whose present value holds only after a restart. */
  get restartNeededFor(): readonly string[] {
    return changedPaths(this.#atStart, this.current).filter(needsRestart);
  }

  /** Calls `listener` after each change. An error of a listener is logged and does not stop the others. @returns ends the subscription */
  subscribe(listener: (change: SettingsChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reads everything again. @returns whether the new settings can be used */
  reload(): boolean {
    if (this.#isClosed) return false;
    try {
      this.#take(this.#read());
      return true;
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      if (this.#problem?.message !== error.message)
        this.#logger.error('invalid settings; the previous ones remain in effect', { problem: error.message });
      this.#problem = error;
      return false;
    }
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#poll);
    clearTimeout(this.#debounce);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    this.#listeners.clear();
  }

  /** Reads the settings. A missing file that was there before is being replaced, or a mistake: it does not reset the settings. */
  #read(): LoadedSettings {
    const loaded = loadSettings(this.place);
    if (this.#loaded.hasFile && !loaded.hasFile)
      throw new SettingsError([{ source: this.place.file, keyPath: '', expected: 'there, and is gone' }]);
    return loaded;
  }

  #take(loaded: LoadedSettings): void {
    const before = this.#loaded;
    if (this.#problem !== undefined) this.#logger.info('the settings can be used again');
    this.#problem = undefined;
    if (loaded.fingerprint === before.fingerprint && loaded.revision === before.revision) return;
    // Unchanged values stay the same object: values derived from them stay valid.
    this.#loaded = loaded.fingerprint === before.fingerprint ? { ...loaded, settings: before.settings } : loaded;
    this.#watch();
    for (const warning of loaded.warnings) {
      if (!before.warnings.includes(warning)) this.#logger.warn('settings', { warning });
    }
    const changed = changedPaths(before.settings, this.current);
    if (changed.length === 0) return;
    const restartNeededFor = changed.filter(needsRestart);
    this.#logger.info('settings have changed', { changed, restartNeededFor });
    this.#emit({ settings: this.current, changed, restartNeededFor });
  }

  #emit(change: SettingsChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#logger.bug(error);
      }
    }
  }

  /** Watches directories, not files: a file that is replaced is another one. */
  #watch(): void {
    const files = [this.place.file, ...this.#loaded.secretFiles].map((file) => resolve(file));
    const wanted = new Set(files.map((file) => dirname(file)));
    for (const [directory, watcher] of this.#watchers) {
      if (wanted.has(directory)) continue;
      watcher.close();
      this.#watchers.delete(directory);
    }
    for (const directory of wanted) if (!this.#watchers.has(directory)) this.#watchDirectory(directory);
  }

  #watchDirectory(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, (_, name) => this.#changed(directory, name));
      watcher.on('error', () => this.#watchers.delete(directory));
      this.#watchers.set(directory, watcher);
    } catch (error) {
      // The regular poll still finds changes.
      this.#logger.debug('a directory of settings cannot be watched', { directory, error });
    }
  }

  #changed(directory: string, name: string | null): void {
    const files = [this.place.file, ...this.#loaded.secretFiles].map((file) => resolve(file));
    // Mounted secrets are links through a directory that is replaced, whose name is not in our list.
    const isOurs =
      name === null ||
      name.startsWith('..') ||
      files.some((file) => dirname(file) === directory && basename(file) === name);
    if (!isOurs || this.#isClosed) return;
    clearTimeout(this.#debounce);
    this.#debounce = setTimeout(() => this.reload(), this.#debounceMs).unref();
  }
}
