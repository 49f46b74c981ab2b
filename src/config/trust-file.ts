import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { FileRefusedError, readBoundedFile, writeFileAtomic } from '../lib/index.ts';
import { Agreement } from './agreement.ts';
import { TrustError } from './error.ts';

/** The user's decision about one workspace. */
const TrustDecision = v.object({
  /** Canonical path of the workspace. */
  path: v.string(),
  /** Uid that owns the workspace's `.oratorio`; null on systems without uids. */
  owner: v.nullable(v.number()),
  /** Hash of the sensitive settings that the user agreed to, see `sensitiveHash`. */
  settingsHash: v.string(),
  trustedAt: v.pipe(v.string(), v.isoTimestamp()),
  /** Missing in decisions of earlier versions. */
  agreement: v.optional(Agreement),
});
export type TrustDecision = v.InferOutput<typeof TrustDecision>;

const TrustDocument = v.object({ version: v.literal(1), workspaces: v.array(TrustDecision) });

/** File of the user's decisions, below the home. */
export const trustFile = (home: string): string => join(home, 'trust.json');

export interface ReadTrust {
  readonly decisions: readonly TrustDecision[];
  /** Why the file cannot be used; no workspace is trusted then. */
  readonly problem?: string;
}

/** Reads the user's decisions. Never throws: a damaged file trusts no workspace. */
export function readTrustFile(home: string): ReadTrust {
  const file = trustFile(home);
  try {
    const text = readBoundedFile(file, { maxBytes: maxTrustBytes });
    if (text === undefined) return { decisions: [] };
    const parsed = v.safeParse(TrustDocument, JSON.parse(text));
    if (parsed.success) return { decisions: parsed.output.workspaces };
    return damaged(`${file} is not a list of trust decisions`);
  } catch (error) {
    if (error instanceof FileRefusedError) return damaged(error.message);
    if (error instanceof SyntaxError) return damaged(`${file} is not JSON`);
    throw error;
  }
}

const maxTrustBytes = 4_194_304;

const damaged = (fault: string): ReadTrust => ({
  decisions: [],
  problem: `${fault}: no workspace is trusted. Correct or remove the file, then run oratorio trust for your workspaces.`,
});

/**
 * Changes the decisions: no change of another process is lost.
 *
 * @throws TrustError when the file is damaged, or another process holds its lock for too long
 */
export function changeTrustFile(
  home: string,
  change: (decisions: readonly TrustDecision[]) => readonly TrustDecision[],
): void {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const file = trustFile(home);
  const release = lock(`${file}.lock`);
  try {
    const { decisions, problem } = readTrustFile(home);
    if (problem !== undefined) throw new TrustError(problem);
    const document = { version: 1, workspaces: change(decisions) };
    writeFileAtomic(file, `${JSON.stringify(document, null, 2)}\n`);
  } finally {
    release();
  }
}

const lockWaitMs = 10_000;
const lockPollMs = 10;

/**
 * Takes a lock file for the few milliseconds of one change. The file holds the pid of its owner; that of a dead process is
 * taken over.
 */
function lock(file: string): () => void {
  const mine = `${process.pid} ${randomBytes(8).toString('hex')}`;
  const temporary = join(dirname(file), `.trust.${mine.replace(' ', '.')}.tmp`);
  const deadline = performance.now() + lockWaitMs;
  writeFileSync(temporary, mine, { flag: 'wx', mode: 0o600 });
  try {
    // The content is there before the name is: a reader never sees a lock without its owner.
    while (!linked(temporary, file)) {
      if (performance.now() > deadline)
        throw new TrustError(`${file} is held by another process: try again, or remove it`);
      if (!removeAbandoned(file, mine)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockPollMs);
    }
  } finally {
    rmSync(temporary, { force: true });
  }
  return () => {
    if (ownerOf(file) === mine) rmSync(file, { force: true });
  };
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function ownerOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Removes a lock whose process is gone. @returns whether the lock may be free now */
function removeAbandoned(file: string, mine: string): boolean {
  const owner = ownerOf(file);
  if (owner === undefined) return true;
  if (isRunning(Number(owner.split(' ')[0]))) return false;
  // Moved, then compared: another process may have removed the same lock and taken a new one meanwhile.
  const aside = `${file}.${mine.replace(' ', '.')}`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    throw error;
  }
  if (ownerOf(aside) !== owner) linked(aside, file);
  rmSync(aside, { force: true });
  return true;
}

function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
