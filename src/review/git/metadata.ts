import { readdir, rm } from 'node:fs/promises';
import * as v from 'valibot';
import { type JsonFile, readJson, writeFileAtomicAsync } from '../../supervise/index.ts';
import { insideRoot, isKey, makeKey, shortHash } from './paths.ts';
import type { RepositoryName } from './types.ts';

const sha = v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/));

/**
 * Record of a worktree: `<root>/<key>.json`, written before the worktree is begun and removed after it is gone. It
 * holds no path: all paths follow from checked names.
 */
export const WorktreeRecord = v.object({
  version: v.literal(1),
  runId: v.string(),
  number: v.number(),
  /** Key of the store. */
  store: v.pipe(v.string(), v.check(isKey)),
  headSha: sha,
  state: v.picklist(['active', 'released']),
  outcome: v.optional(v.picklist(['succeeded', 'failed'])),
  /** Start of the state; milliseconds of the wall clock. */
  since: v.number(),
});
export type WorktreeRecord = v.InferOutput<typeof WorktreeRecord>;

/** Makes a readable key that the run alone identifies: its last part is a hash of the run's id. */
export function worktreeKey({ owner, name }: RepositoryName, number: number, runId: string): string {
  return makeKey([owner.slice(0, 18), name.slice(0, 18), String(number)], runId);
}

export function readRecord(root: string, key: string): JsonFile<WorktreeRecord> {
  return readJson(insideRoot(root, key, '.json'), WorktreeRecord);
}

export async function writeRecord(root: string, key: string, record: WorktreeRecord): Promise<void> {
  await writeFileAtomicAsync(insideRoot(root, key, '.json'), JSON.stringify(record));
}

/** Removes a record; a missing one is not an error. */
export async function dropRecord(root: string, key: string): Promise<void> {
  await rm(insideRoot(root, key, '.json'), { force: true });
}

/** The keys of all records below `root`, readable or not. */
export async function recordKeys(root: string): Promise<string[]> {
  return (await readdir(root)).flatMap((name) => {
    const key = name.replace(/\.json$/, '');
    return key !== name && isKey(key) ? [key] : [];
  });
}

/** The worktree of a run. */
export async function findRecord(root: string, runId: string): Promise<{ key: string; record: WorktreeRecord } | null> {
  const ending = `-${shortHash(runId)}`;
  for (const key of await recordKeys(root)) {
    if (!key.endsWith(ending)) continue;
    const found = readRecord(root, key);
    if (found.kind === 'ok' && found.value.runId === runId) return { key, record: found.value };
  }
  return null;
}
