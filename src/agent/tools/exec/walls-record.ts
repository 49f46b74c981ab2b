import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { readBoundedFile, writeFileAtomic } from '../../../lib/index.ts';
import { GuardRecord } from './guard-record.ts';
import { removeRecord, StandingName } from './placeholders.ts';

/** Largest record, in bytes. Commands whose walls need more end with their server. */
const maxBytes = 16 * 1024 * 1024;
const idForm = /^[0-9a-f-]{36}$/;

/** Open sandboxes of one workspace in one server, stored for the next server: their placeholders and the state of the git guard. */
const StoredWalls = v.object({
  version: v.literal(1),
  /** See `keptDirectory`. */
  kept: v.string(),
  workspacePath: v.string(),
  /** Ids of rooms; null: a sandbox of one command. */
  sandboxes: v.array(v.nullable(v.pipe(v.string(), v.regex(idForm)))),
  placeholders: v.array(StandingName),
  guard: GuardRecord,
});
export type StoredWalls = v.InferOutput<typeof StoredWalls>;

/** Workspace and server whose walls a record holds. */
export interface WallsOwner {
  /** Directory of the records. */
  readonly records: string;
  readonly kept: string;
  readonly workspacePath: string;
}

const suffix = '.walls';

/** Name of a record, unique for each workspace of each server. */
const nameOf = ({ kept, workspacePath }: Pick<WallsOwner, 'kept' | 'workspacePath'>): string =>
  createHash('sha256').update(`${kept}\0${workspacePath}`).digest('hex').slice(0, 32);

const fileOf = (owner: WallsOwner): string => join(owner.records, `${nameOf(owner)}${suffix}`);

/** File that the keeper of a room creates when all processes of the room have ended. */
export const roomEndFile = (owner: WallsOwner, room: string): string =>
  join(owner.records, `${nameOf(owner)}.${room}.end`);

/** Stores walls. Needs no flush, because no process outlives the machine. @returns false: not stored, and the earlier record stays */
export function writeWalls(owner: WallsOwner, walls: Omit<StoredWalls, 'version' | 'kept' | 'workspacePath'>): boolean {
  const { kept, workspacePath } = owner;
  try {
    const text = JSON.stringify({ version: 1, kept, workspacePath, ...walls });
    if (Buffer.byteLength(text) > maxBytes) throw new RangeError('the record is too large');
    mkdirSync(owner.records, { recursive: true, mode: 0o700 });
    writeFileAtomic(fileOf(owner), text, { isFlushed: false });
    return true;
  } catch {
    return false;
  }
}

export const removeWalls = (owner: WallsOwner): void => removeRecord(fileOf(owner));

/** Reads the walls of all servers of a home, and removes files that are not records of walls. */
export function readWalls(records: string): readonly StoredWalls[] {
  return namesIn(records)
    .filter((name) => name.endsWith(suffix))
    .flatMap((name) => {
      const file = join(records, name);
      const walls = readOne(file);
      if (walls && name === `${nameOf(walls)}${suffix}`) return [walls];
      removeRecord(file);
      return [];
    });
}

function readOne(file: string): StoredWalls | undefined {
  try {
    const read = v.safeParse(v.pipe(v.string(), v.parseJson(), StoredWalls), readBoundedFile(file, { maxBytes }));
    return read.success ? read.output : undefined;
  } catch {
    return undefined;
  }
}

/** End of a room, in milliseconds by the file system's clock; undefined: the room runs, or its end is unknown. */
export function roomEnd(owner: WallsOwner, room: string): number | undefined {
  return statSync(roomEndFile(owner, room), { throwIfNoEntry: false })?.mtimeMs;
}

/** Removes the files that record the ends of rooms. */
export function removeRoomEnds(owner: WallsOwner, rooms: readonly string[]): void {
  for (const room of rooms) rmSync(roomEndFile(owner, room), { recursive: true, force: true });
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    // No server has opened a sandbox here.
    return [];
  }
}
