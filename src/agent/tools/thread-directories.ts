import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const threadName = /^[\w-]{1,128}$/;

/** One directory for each thread, which goes with its thread. */
export class ThreadDirectories {
  /** Absolute; its last part is made when it is needed. */
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  /** Directory of a thread, whether it exists or not. @returns undefined for an id that is not a file name */
  of(threadId: string): string | undefined {
    return threadName.test(threadId) ? join(this.directory, threadId) : undefined;
  }

  /** Makes the directory of a thread. @returns undefined for a thread without one, and on a disk that takes no more */
  open(threadId: string): string | undefined {
    const directory = this.of(threadId);
    try {
      if (directory !== undefined) mkdirSync(directory, { recursive: true, mode: 0o700 });
      return directory;
    } catch {
      return undefined;
    }
  }

  /** Removes the directory of a thread. */
  forget(threadId: string): void {
    const directory = this.of(threadId);
    // Most threads have none, and `rmSync` finds that out by an error.
    if (directory === undefined || !lstatSync(directory, { throwIfNoEntry: false })) return;
    rmSync(directory, { recursive: true, force: true });
  }

  /** Removes the directories of threads that are gone. */
  sweep(isThread: (threadId: string) => boolean): void {
    for (const name of namesIn(this.directory)) if (!isThread(name)) this.forget(name);
  }
}

/** Names in a directory; none when it cannot be read. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
