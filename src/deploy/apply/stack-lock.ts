import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import * as v from 'valibot';
import {
  ensurePrivateDirectory,
  type Lock,
  LockError,
  probeLock,
  readJson,
  removeStaleTemps,
  waitForLock,
  writeFileAtomic,
} from '../../supervise/index.ts';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import { cancelled, fileFailure, onFile } from './failures.ts';

const holderSchema = v.object({ pid: v.number(), command: v.string(), since: v.string() });
/** Process that works on a stack. */
export type LockHolder = v.InferOutput<typeof holderSchema>;

export interface LockOptions {
  /** Shown to a process that has to wait: `webhook enable`. */
  readonly command: string;
  /** Longest wait; 0: none. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** Called once, before a wait. Null: the holder has not written its name yet. */
  readonly onWait?: (holder: LockHolder | null) => void;
}

/**
 * Does `work` while no other command works on the stack. The kernel lets go of it when this process dies. Makes the
 * directory of the stack, and that of its state, when they are not there.
 *
 * @throws DeployError stackLocked when another command holds it for longer than `waitMs`; cancelled; fileFailed
 */
export async function withStackLock<T>(layout: StackLayout, options: LockOptions, work: () => Promise<T>): Promise<T> {
  makeDirectories(layout);
  const lock = await take(layout, options);
  const holder = holderFile(layout);
  try {
    const { command } = options;
    const who: LockHolder = { pid: process.pid, command, since: new Date().toISOString() };
    onFile(holder, () => {
      removeStaleTemps(layout.state);
      writeFileAtomic(holder, `${JSON.stringify(who)}\n`);
    });
    return await work();
  } finally {
    rmSync(holder, { force: true });
    lock.release();
  }
}

/** Reads the holder of a stack's lock; null when it is free, or its holder has not written its name yet. */
export function lockHolder(layout: StackLayout): LockHolder | null {
  if (probeLock(layout.lock, shared) !== 'held') return null;
  const found = readJson(holderFile(layout), holderSchema);
  return found.kind === 'ok' ? found.value : null;
}

/** Beside the lock, which no other code may open. */
const holderFile = ({ lock }: StackLayout): string => `${lock}.json`;

/** Root and the owner of a stack take the same lock. */
const shared = { owner: 'any' } as const;

function makeDirectories({ directory, state, lock }: StackLayout): void {
  onFile(directory, () => {
    const isNew = mkdirSync(directory, { recursive: true, mode: 0o700 }) !== undefined;
    if (isNew) chmodSync(directory, defaults.directoryModes.stack);
  });
  onFile(lock, () => ensurePrivateDirectory(state));
}

async function take(layout: StackLayout, { waitMs, signal, onWait }: LockOptions): Promise<Lock> {
  const lock = await waitForLock(layout.lock, {
    ...shared,
    waitMs,
    signal,
    onWait: () => onWait?.(lockHolder(layout)),
  }).catch((error: unknown) => {
    if (signal.aborted) throw cancelled();
    throw fileFailure(error instanceof LockError ? error.cause : error, layout.lock);
  });
  if (lock === 'held') throw locked(layout);
  return lock;
}

function locked(layout: StackLayout): DeployError {
  const holder = lockHolder(layout);
  const who = holder
    ? `\`oratorio server ${holder.command}\` (process ${holder.pid}, since ${holder.since})`
    : 'Another command';
  return new DeployError(
    'stackLocked',
    `${who} works on the stack in ${layout.directory}.`,
    'Wait until it has ended, then run the command again.',
  );
}
