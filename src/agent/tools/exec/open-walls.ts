import { join } from 'node:path';
import { directoryName } from '../../../config/index.ts';
import { type GitGuard, gitGuardOf } from './git-guard.ts';
import type { GitFinding } from './held-directory.ts';
import { Placeholders } from './placeholders.ts';
import { type SandboxPlaces, type Walls, wallsFor, wordsOf } from './walls.ts';
import { removeWalls, type StoredWalls, type WallsOwner, writeWalls } from './walls-record.ts';

/** Walls that are up, until `close`. */
export interface GuardedWalls {
  /** Call it before each command. @param isEmpty checks whether no process is left behind these walls */
  readonly begin: (isEmpty: () => boolean) => void;
  /** Judges the git directories after a command. @returns entries that were set aside */
  readonly examine: () => Promise<readonly GitFinding[]>;
  /** Judges the git directories, also of a large workspace. The findings stay for a command. */
  readonly judge: () => Promise<void>;
  /** Changes when the walls would be others now. */
  readonly fingerprint: () => string;
  /**
   * Judges the git directories. Call it when no process is left behind the walls.
   *
   * @param untilMs moment of their end, if the user could change files since then
   */
  readonly end: (untilMs?: number) => Promise<void>;
  /** Takes the walls down: judges the git directories, if `end` has not, and clears set-id bits. @param untilMs see `end` */
  readonly close: (untilMs?: number) => Promise<void>;
  /** Takes entries that were set aside and that no command has reported. */
  readonly findings: () => readonly GitFinding[];
  /** Leaves the walls to the next server: nothing is judged or removed any more. */
  readonly handOver: () => void;
}

/** Walls that this server has made. */
export interface OpenWalls extends GuardedWalls {
  readonly walls: Walls;
  /** Words for bubblewrap, without those that isolate processes. */
  readonly words: readonly string[];
  /** Placeholders stand among the files of the workspace: the walls must not outlive the command. */
  readonly isBrief: boolean;
  /** The next server can take the walls over. */
  readonly isStored: boolean;
}

const placeholders = new Placeholders();

/** A sandbox behind walls that are stored. */
interface StoredSandbox {
  readonly rooms: StoredWalls['sandboxes'];
  readonly placeholders: StoredWalls['placeholders'];
}

/** Sandboxes by the workspace and server that `WallsOwner` names. */
const stored = new Map<string, Map<symbol, StoredSandbox>>();

const keyOf = ({ records, kept, workspacePath }: WallsOwner): string => [records, kept, workspacePath].join('\0');

function save(owner: WallsOwner, guard: GitGuard): boolean {
  const sandboxes = [...(stored.get(keyOf(owner))?.values() ?? [])];
  if (sandboxes.length === 0) {
    removeWalls(owner);
    return true;
  }
  return writeWalls(owner, {
    sandboxes: sandboxes.flatMap(({ rooms }) => rooms),
    placeholders: sandboxes.flatMap((each) => each.placeholders),
    guard: guard.record,
  });
}

/** Stores a sandbox with all others of its workspace. @returns false: not stored */
function store(owner: WallsOwner, guard: GitGuard, sandbox: symbol, content: StoredSandbox): boolean {
  const key = keyOf(owner);
  const sandboxes = stored.get(key) ?? new Map<symbol, StoredSandbox>();
  stored.set(key, sandboxes.set(sandbox, content));
  if (save(owner, guard)) return true;
  // The record without this sandbox stays: commands behind the other walls run on.
  sandboxes.delete(sandbox);
  return false;
}

/** Removes a sandbox of the record. Without others the record goes, too. */
function unstore(owner: WallsOwner, guard: GitGuard, sandbox: symbol): void {
  const sandboxes = stored.get(keyOf(owner));
  sandboxes?.delete(sandbox);
  if (sandboxes) save(owner, guard);
}

/** Walls of a sandbox whose placeholders have been made. */
function guarded(guard: GitGuard, sandbox: symbol, paths: string[], owner: WallsOwner | undefined): GuardedWalls {
  let isLeft = false;
  return {
    begin: (isEmpty) => guard.begin(sandbox, isEmpty),
    examine: async () => (isLeft ? [] : guard.examine()),
    judge: () => guard.judge(),
    fingerprint: () => guard.fingerprint(),
    findings: () => guard.findings(),
    end: (untilMs) => guard.end(sandbox, untilMs),
    async close(untilMs) {
      if (isLeft) return;
      isLeft = true;
      await guard.close(sandbox, () => placeholders.release(paths.splice(0)), untilMs);
      if (owner) unstore(owner, guard, sandbox);
    },
    handOver() {
      if (isLeft) return;
      isLeft = true;
      placeholders.forget(paths.splice(0));
      guard.forget();
    },
  };
}

const ownerOf = ({ records, kept, workspacePath }: SandboxPlaces): WallsOwner | undefined =>
  records === undefined || kept === undefined ? undefined : { records, kept, workspacePath };

/**
 * Finds the places of a sandbox, makes placeholders for missing names, and begins to watch over git directories.
 *
 * @param room id, for the record
 */
export async function openWalls(places: SandboxPlaces, room: string | null = null): Promise<OpenWalls> {
  const guard = gitGuardOf(places.workspacePath);
  const ofGit = await guard.open(places.environment ?? process.env);
  const paths: string[] = [];
  const sandbox = Symbol(places.workspacePath);
  const owner = ownerOf(places);
  const made = guarded(guard, sandbox, paths, owner);
  try {
    const walls = wallsFor(places, ofGit);
    const words = wordsOf(places, walls, { placeholders, paths });
    if (places.records !== undefined) placeholders.record(places.records);
    guard.settle();
    const isStored =
      owner !== undefined &&
      store(owner, guard, sandbox, { rooms: [room], placeholders: [...placeholders.namesOf(paths)] });
    const own = join(places.workspacePath, directoryName);
    const isBrief = paths.some((path) => path !== own && !path.includes('/.git/'));
    return { walls, words, isBrief, isStored, ...made };
  } catch (error) {
    await made.close();
    throw error;
  }
}

/** Takes over the stored walls of an earlier server. @param rooms those that live, and null for each other sandbox */
export function takeStored(
  records: string,
  { kept, workspacePath, placeholders: names, guard: record }: StoredWalls,
  rooms: StoredWalls['sandboxes'],
): GuardedWalls {
  const owner = { records, kept, workspacePath };
  const guard = gitGuardOf(workspacePath);
  const sandbox = Symbol(workspacePath);
  guard.take(record, sandbox);
  const paths = placeholders.take(names.filter(({ path }) => guard.isOwn(path)));
  // Sandboxes that a server in this process has handed over.
  stored.delete(keyOf(owner));
  store(owner, guard, sandbox, { rooms, placeholders: [...placeholders.namesOf(paths)] });
  return guarded(guard, sandbox, paths, owner);
}
