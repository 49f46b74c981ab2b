import { join } from 'node:path';
import { directoryName } from '../../../config/index.ts';
import { type GitGuard, gitGuardOf } from './git-guard.ts';
import type { GitFinding } from './held-directory.ts';
import { type Mounts, mountsFor, type SandboxPlaces, wordsOf } from './mounts.ts';
import { type MountsOwner, removeMounts, type StoredMounts, writeMounts } from './mounts-record.ts';
import { Placeholders } from './placeholders.ts';

/** Mounts of a sandbox that is open until `close`: its mounts, placeholders and checks of git directories. */
export interface GuardedMounts {
  /** Call it before each command. @param isEmpty returns whether no process is left in the sandbox */
  readonly begin: (isEmpty: () => boolean) => void;
  /** Checks the git directories after a command. @returns entries that were set aside */
  readonly examine: () => Promise<readonly GitFinding[]>;
  /** Checks the git directories, even of a large workspace. The next command reports the findings. */
  readonly judge: () => Promise<void>;
  /** Hash that changes when a sandbox opened now would have different mounts. */
  readonly fingerprint: () => string;
  /**
   * Checks the git directories. Call it when no process is left in the sandbox.
   *
   * @param untilMs end of the last process, if the user could have changed files since
   */
  readonly end: (untilMs?: number) => Promise<void>;
  /** Removes the mounts: checks the git directories, unless `end` did, and clears set-id bits. @param untilMs see `end` */
  readonly close: (untilMs?: number) => Promise<void>;
  /** Returns, once, the entries that were set aside and that no command has reported. */
  readonly findings: () => readonly GitFinding[];
  /** Leaves the mounts to the next server: this server checks and removes nothing more. */
  readonly handOver: () => void;
}

/** Mounts that this server has created. */
export interface OpenMounts extends GuardedMounts {
  readonly mounts: Mounts;
  /** Arguments for bubblewrap, without those that isolate processes. */
  readonly words: readonly string[];
  /** Some placeholders are among the files of the workspace, so the mounts must not outlive the command. */
  readonly isBrief: boolean;
  /** The next server can take over the mounts. */
  readonly isStored: boolean;
}

const placeholders = new Placeholders();

/** A sandbox with stored mounts. */
interface StoredSandbox {
  readonly ids: StoredMounts['sandboxes'];
  readonly placeholders: StoredMounts['placeholders'];
}

/** Sandboxes by the workspace and server that `MountsOwner` names. */
const stored = new Map<string, Map<symbol, StoredSandbox>>();

const keyOf = ({ records, kept, workspacePath }: MountsOwner): string => [records, kept, workspacePath].join('\0');

function save(owner: MountsOwner, guard: GitGuard): boolean {
  const sandboxes = [...(stored.get(keyOf(owner))?.values() ?? [])];
  if (sandboxes.length === 0) {
    removeMounts(owner);
    return true;
  }
  return writeMounts(owner, {
    sandboxes: sandboxes.flatMap(({ ids }) => ids),
    placeholders: sandboxes.flatMap((each) => each.placeholders),
    guard: guard.record,
  });
}

/** Stores a sandbox together with the others of its workspace. @returns whether it was stored */
function store(owner: MountsOwner, guard: GitGuard, sandbox: symbol, content: StoredSandbox): boolean {
  const key = keyOf(owner);
  const sandboxes = stored.get(key) ?? new Map<symbol, StoredSandbox>();
  stored.set(key, sandboxes.set(sandbox, content));
  if (save(owner, guard)) return true;
  // The record without this sandbox stays, because commands in the other sandboxes still run.
  sandboxes.delete(sandbox);
  return false;
}

/** Removes a sandbox from the record, and the record with its last sandbox. */
function unstore(owner: MountsOwner, guard: GitGuard, sandbox: symbol): void {
  const sandboxes = stored.get(keyOf(owner));
  sandboxes?.delete(sandbox);
  if (sandboxes) save(owner, guard);
}

/** Mounts of a sandbox whose placeholders exist. */
function guarded(guard: GitGuard, sandbox: symbol, paths: string[], owner: MountsOwner | undefined): GuardedMounts {
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

const ownerOf = ({ records, kept, workspacePath }: SandboxPlaces): MountsOwner | undefined =>
  records === undefined || kept === undefined ? undefined : { records, kept, workspacePath };

/**
 * Opens a sandbox: finds its paths, creates placeholders for missing names, and starts to guard git directories.
 *
 * @param id for the record
 */
export async function openMounts(places: SandboxPlaces, id: string | null = null): Promise<OpenMounts> {
  const guard = gitGuardOf(places.workspacePath);
  const ofGit = await guard.open(places.environment ?? process.env);
  const paths: string[] = [];
  const sandbox = Symbol(places.workspacePath);
  const owner = ownerOf(places);
  const made = guarded(guard, sandbox, paths, owner);
  try {
    const mounts = mountsFor(places, ofGit);
    const words = wordsOf(places, mounts, { placeholders, paths });
    if (places.records !== undefined) placeholders.record(places.records);
    guard.settle();
    const isStored =
      owner !== undefined &&
      store(owner, guard, sandbox, { ids: [id], placeholders: [...placeholders.namesOf(paths)] });
    const own = join(places.workspacePath, directoryName);
    const isBrief = paths.some((path) => path !== own && !path.includes('/.git/'));
    return { mounts, words, isBrief, isStored, ...made };
  } catch (error) {
    await made.close();
    throw error;
  }
}

/** Takes over the stored mounts of an earlier server. @param ids shared sandboxes with running commands; null for a sandbox of one command */
export function adoptStored(
  records: string,
  { kept, workspacePath, placeholders: names, guard: record }: StoredMounts,
  ids: StoredMounts['sandboxes'],
): GuardedMounts {
  const owner = { records, kept, workspacePath };
  const guard = gitGuardOf(workspacePath);
  const sandbox = Symbol(workspacePath);
  guard.take(record, sandbox);
  const paths = placeholders.take(names.filter(({ path }) => guard.isOwn(path)));
  // Forgets sandboxes that another server in this process has handed over.
  stored.delete(keyOf(owner));
  store(owner, guard, sandbox, { ids, placeholders: [...placeholders.namesOf(paths)] });
  return guarded(guard, sandbox, paths, owner);
}
