import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { readBoundedFile, writeFileAtomic } from '../../../lib/index.ts';
import { GuardRecord } from './guard-record.ts';
import { removeRecord, StandingName } from './placeholders.ts';

/** Size limit of a record in bytes. Commands with a larger record end with their server. */
const maxBytes = 16 * 1024 * 1024;
const idForm = /^[0-9a-f-]{36}$/;

/** Record of one workspace's open sandboxes for the next server: their placeholders and the state of the git guard. */
const StoredMounts = v.object({
  version: v.literal(1),
  /** See `keptDirectory`. */
  kept: v.string(),
  workspacePath: v.string(),
  /** Ids of sandboxes; null: a sandbox of one command. */
  sandboxes: v.array(v.nullable(v.pipe(v.string(), v.regex(idForm)))),
  placeholders: v.array(StandingName),
  guard: GuardRecord,
});
export type StoredMounts = v.InferOutput<typeof StoredMounts>;

/** Workspace and server whose mounts a record holds. */
export interface MountsOwner {
  /** Directory of the records. */
  readonly records: string;
  readonly kept: string;
  readonly workspacePath: string;
}

/** File name suffix of a record, also used by earlier versions. */
const suffix = '.walls';

/** Name of a record, unique for each workspace of each server. */
const nameOf = ({ kept, workspacePath }: Pick<MountsOwner, 'kept' | 'workspacePath'>): string =>
  createHash('sha256').update(`${kept}\0${workspacePath}`).digest('hex').slice(0, 32);

const fileOf = (owner: MountsOwner): string => join(owner.records, `${nameOf(owner)}${suffix}`);

/** File that the keeper of a sandbox creates when all processes of the sandbox have ended. */
export const sandboxEndFile = (owner: MountsOwner, sandbox: string): string =>
  join(owner.records, `${nameOf(owner)}.${sandbox}.end`);

/** Stores mounts. Needs no flush, because no process outlives the machine. @returns false: not stored, and the earlier record stays */
export function writeMounts(
  owner: MountsOwner,
  mounts: Omit<StoredMounts, 'version' | 'kept' | 'workspacePath'>,
): boolean {
  const { kept, workspacePath } = owner;
  try {
    const text = JSON.stringify({ version: 1, kept, workspacePath, ...mounts });
    if (Buffer.byteLength(text) > maxBytes) throw new RangeError('the record is too large');
    mkdirSync(owner.records, { recursive: true, mode: 0o700 });
    writeFileAtomic(fileOf(owner), text, { isFlushed: false });
    return true;
  } catch {
    return false;
  }
}

export const removeMounts = (owner: MountsOwner): void => removeRecord(fileOf(owner));

/** Reads the mounts of all servers of a home, and removes files that are not records of mounts. */
export function readMounts(records: string): readonly StoredMounts[] {
  return namesIn(records)
    .filter((name) => name.endsWith(suffix))
    .flatMap((name) => {
      const file = join(records, name);
      const mounts = readOne(file);
      if (mounts && name === `${nameOf(mounts)}${suffix}`) return [mounts];
      removeRecord(file);
      return [];
    });
}

function readOne(file: string): StoredMounts | undefined {
  try {
    const read = v.safeParse(v.pipe(v.string(), v.parseJson(), StoredMounts), readBoundedFile(file, { maxBytes }));
    return read.success ? read.output : undefined;
  } catch {
    return undefined;
  }
}

/** End of a sandbox, in milliseconds by the file system's clock; undefined: the sandbox runs, or its end is unknown. */
export function sandboxEnd(owner: MountsOwner, sandbox: string): number | undefined {
  return statSync(sandboxEndFile(owner, sandbox), { throwIfNoEntry: false })?.mtimeMs;
}

/** Removes the files that record the ends of sandboxes. */
export function removeSandboxEnds(owner: MountsOwner, sandboxes: readonly string[]): void {
  for (const sandbox of sandboxes) rmSync(sandboxEndFile(owner, sandbox), { recursive: true, force: true });
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    // No server has opened a sandbox here.
    return [];
  }
}
