import { lstatSync, renameSync, rmSync } from 'node:fs';
import { messageOf, readBoundedFile, writeFileAtomic } from '../lib/index.ts';
import type { HubLock } from '../protocol/index.ts';
import { writeFileAtomicAsync } from '../supervise/index.ts';
import type { Claim } from './claim.ts';

/** The address of this Hub as its clients find it, in `hub.lock`. */
export interface PublishedAddress {
  readonly file: string;
  /** Writes the file for the first time. */
  publish(): Promise<void>;
  /** The problem with the file or the claim; null while the file is as published. */
  problem(): string | null;
  /**
   * Writes the file again, at once. Nothing happens between the check of our claim and the write, so the file of a
   * successor is never overwritten.
   *
   * @returns false when another Hub has the claim
   * @throws Error when the claim cannot be renewed or the file cannot be written
   */
  publishAgain(): boolean;
  /** Removes the file, unless it is a successor's. */
  withdraw(): void;
}

/** @param claim the lock that makes this process the Hub of its home */
export function createAddress(file: string, claim: Claim, content: HubLock): PublishedAddress {
  const text = `${JSON.stringify(content, null, 2)}\n`;

  function fileProblem(): string | null {
    const stats = lstatSync(file, { throwIfNoEntry: false });
    if (!stats) return 'it is missing';
    if (!stats.isFile()) return 'it is not a regular file';
    if (process.platform !== 'win32' && (stats.mode & 0o777) !== 0o600) return 'its mode is not 0600';
    try {
      return readBoundedFile(file) === text ? null : 'its content is not ours';
    } catch (error) {
      return messageOf(error);
    }
  }

  return {
    file,
    publish: () => writeFileAtomicAsync(file, text),
    problem: () => (claim.intact() ? fileProblem() : `${claim.file} is not the file this Hub has locked`),
    publishAgain() {
      if (!claim.intact() && !claim.renew()) return false;
      // A file is replaced by the write itself; a directory is moved aside, for it may hold the user's own files.
      if (lstatSync(file, { throwIfNoEntry: false })?.isDirectory())
        renameSync(file, `${file}.moved-${process.hrtime.bigint()}`);
      writeFileAtomic(file, text);
      return true;
    },
    withdraw() {
      const isDirectory = lstatSync(file, { throwIfNoEntry: false })?.isDirectory() ?? false;
      // With our claim intact there is no successor, so even a damaged file is ours to remove.
      if (!isDirectory && (claim.intact() || fileProblem() === null)) rmSync(file, { force: true });
    },
  };
}
