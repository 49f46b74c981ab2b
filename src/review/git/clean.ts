import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { removeStaleTemps } from '../../supervise/index.ts';
import { isTrash } from './layout.ts';
import { readRecord, recordKeys, type WorktreeRecord } from './metadata.ts';
import { insideRoot, isKey } from './paths.ts';
import { removeTree } from './remove.ts';
import { discardStore, lastUsed, type StoreContext, storeDirectory, unfinishedDirectory, withStore } from './store.ts';
import type { CleanReport } from './types.ts';
import { dropWorktree, pointerOf } from './worktree.ts';

/** Retention of worktrees after their run, in milliseconds. */
export interface Retention {
  readonly succeededMs: number;
  readonly failedMs: number;
}

export interface CleanOptions {
  readonly now: Date;
  readonly retention: Retention;
  readonly isActive: (runId: string) => boolean | Promise<boolean>;
}

/** A store with more loose objects, or packs, is repacked. */
const tidyLimits = { looseObjects: 2_000, packs: 40 };

/**
 * Removes worktrees that are due, and the remains of crashes: trash, worktrees without a record, records without a worktree, refs
 * of worktrees that are gone. Never touches a foreign file, even when a record names it; one failure stops no other removal.
 */
export async function cleanRoot(context: StoreContext, options: CleanOptions): Promise<CleanReport> {
  const { root } = context.layout;
  const removed: string[] = [];
  const failed: { key: string; error: Error }[] = [];
  const attempt = async (key: string, work: () => Promise<boolean>) => {
    try {
      if (await work()) removed.push(key);
    } catch (error) {
      failed.push({ key, error: error instanceof Error ? error : new Error(String(error)) });
    }
  };
  removeStaleTemps(root);
  for (const key of await recordKeys(root)) await attempt(key, () => cleanRecorded(context, key, options));
  for (const name of await readdir(root)) {
    if (isTrash(name)) await attempt(name, () => removeTree(join(root, name)).then(() => false));
    else if (isKey(name)) await attempt(name, () => cleanUnrecorded(context, name));
  }
  for (const key of new Set(await storeKeys(context))) await attempt(key, () => tidyStore(context, key, options.now));
  return { removed, failed };
}

async function cleanRecorded(context: StoreContext, key: string, options: CleanOptions): Promise<boolean> {
  const { root } = context.layout;
  const path = insideRoot(root, key, '.json');
  const found = readRecord(root, key);
  if (found.kind === 'missing') return false;
  if (found.kind === 'invalid') {
    // The record is lost: the worktree still names its repository.
    const changed = await stat(path).then(({ mtimeMs }) => mtimeMs);
    if (options.now.getTime() - changed < options.retention.failedMs) return false;
    await removeTree(path);
    return await cleanUnrecorded(context, key);
  }
  if (!(await isDue(found.value, options))) return false;
  await withStore(context, found.value.store, undefined, async () => {
    await dropWorktree(context, { key, storeKey: found.value.store });
    await removeTree(path);
  });
  return true;
}

async function isDue(record: WorktreeRecord, { now, retention, isActive }: CleanOptions): Promise<boolean> {
  if (record.state !== 'released' && (await isActive(record.runId))) return false;
  const keepMs = record.outcome === 'succeeded' ? retention.succeededMs : retention.failedMs;
  return now.getTime() - record.since >= keepMs;
}

/** A record is written before its worktree and removed after it, so a worktree without one is left from a crash. */
async function cleanUnrecorded(context: StoreContext, key: string): Promise<boolean> {
  const { root, stores } = context.layout;
  if (readRecord(root, key).kind !== 'missing') return false;
  const pointer = await pointerOf(insideRoot(root, key));
  const [, storeKey = '', name = ''] = /^gitdir: .*\/([^/]+)\.git\/worktrees\/([^/]+)\n$/.exec(pointer ?? '') ?? [];
  const isOurs =
    isKey(storeKey) && name === key && pointer === `gitdir: ${join(stores, `${storeKey}.git`)}/worktrees/${key}\n`;
  if (!isOurs) return false;
  await withStore(context, storeKey, undefined, () => dropWorktree(context, { key, storeKey }));
  return true;
}

async function storeKeys({ layout }: StoreContext): Promise<string[]> {
  const names = await readdir(layout.stores);
  for (const name of names) if (isTrash(name)) await removeTree(join(layout.stores, name));
  return names.flatMap((name) => {
    const key = name.replace(/\.(git|new)$/, '');
    return key !== name && isKey(key) ? [key] : [];
  });
}

/** @returns whether the whole store was removed */
async function tidyStore(context: StoreContext, key: string, now: Date): Promise<boolean> {
  const gitDir = storeDirectory(context.layout, key);
  return await withStore(context, key, undefined, async () => {
    await removeTree(unfinishedDirectory(context.layout, key));
    const numbers = await numbersOf(context, key);
    const used = await lastUsed(gitDir);
    const isIdle = used === null || now.getTime() - used >= context.limits.storeIdleMs;
    if (isIdle && numbers.size === 0) {
      await discardStore(context, { gitDir });
      return true;
    }
    await removeOldRefs(context, gitDir, numbers);
    await repack(context, gitDir);
    return false;
  });
}

/** Numbers of the pull requests whose worktrees belong to a store. */
async function numbersOf({ layout }: StoreContext, storeKey: string): Promise<Set<number>> {
  const numbers = new Set<number>();
  for (const key of await recordKeys(layout.root)) {
    const record = readRecord(layout.root, key);
    if (record.kind === 'ok' && record.value.store === storeKey) numbers.add(record.value.number);
  }
  return numbers;
}

/** Removes the refs of pull requests without a worktree, and git's records of worktrees that are gone. */
async function removeOldRefs(context: StoreContext, gitDir: string, numbers: ReadonlySet<number>): Promise<void> {
  const args = ['for-each-ref', '--format=%(refname)', 'refs/oratorio/pull'];
  const listing = await context.git.text({ gitDir, args, maxBytes: context.limits.listingBytes });
  const old = listing.split('\n').filter((name) => {
    const number = /^refs\/oratorio\/pull\/(\d+)\/head$/.exec(name)?.[1];
    return number !== undefined && !numbers.has(Number(number));
  });
  await context.git.run({ gitDir, args: ['worktree', 'prune', '--expire=now'] });
  if (old.length === 0) return;
  const deletions = old.map((name) => `delete ${name}\n`).join('');
  await context.git.run({ gitDir, args: ['update-ref', '--stdin'], stdin: deletions });
}

/** Nothing is repacked while runs fetch; many small packs make everything slow. */
async function repack({ git, limits }: StoreContext, gitDir: string): Promise<void> {
  const config = [`gc.auto=${tidyLimits.looseObjects}`, `gc.autoPackLimit=${tidyLimits.packs}`, 'gc.autoDetach=false'];
  const args = [...config.flatMap((entry) => ['-c', entry]), 'gc', '--auto', '--quiet'];
  await git.run({ gitDir, args, timeoutMs: limits.fetchMs, memoryBytes: limits.fetchMemoryBytes });
}
