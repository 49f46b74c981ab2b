import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { AnyActorRef } from 'xstate';
import { makeDirectory, readBoundedFile, writeFileAtomic } from '../lib/index.ts';
import { ActivityNotes } from './activity.ts';
import type { Engines } from './calls.ts';
import type { KnownWork } from './death.ts';
import type { Departure } from './departure.ts';
import type { TurnDiff } from './diff.ts';
import { EngineThread } from './engine-thread.ts';
import { type CheckpointLimits, smallTreeEntries } from './limits.ts';
import type { CheckpointInfo } from './list.ts';
import { type Owner, ownerKey } from './owner.ts';
import { countEntries } from './size.ts';
import { type RestoreResult, TreeCheckpoints } from './tree-checkpoints.ts';

export interface WorkspaceCheckpointsOptions {
  /** Directory of all trees, in the state of the workspace, where no tool of the agent writes. */
  readonly directory: string;
  readonly limits: CheckpointLimits;
  /** Our own directories that may lie in a workspace: no checkpoint covers them. */
  readonly ownDirectories?: readonly string[];
  /** Environment of git, without keys; undefined: git is not run. */
  readonly gitEnvironment: Readonly<Record<string, string>> | undefined;
  /** Takes back those turns of a conversation that are still there. */
  readonly rollback: (threadId: string, turnIds: readonly string[]) => void;
  /** Whether a conversation works in a directory. */
  readonly isInUse: (directory: string) => boolean;
  /** Facts about a turn that a dead server left open, from its stored calls; undefined: none. */
  readonly workOf?: ((threadId: string, turnId: string) => KnownWork | undefined) | undefined;
  readonly observe?: ((actor: AnyActorRef, treeId: string, root: string) => void) | undefined;
  /** Default: in a thread of their own. */
  readonly engines?: Engines | undefined;
}

/** A turn in a tree of files. */
export interface TurnPlace {
  readonly threadId: string;
  readonly turnId: string;
  /** Canonical path of the tree. */
  readonly workspacePath: string;
}

export interface RestoreFiles {
  readonly threadId: string;
  readonly workspacePath: string;
  readonly turnIds: readonly string[];
  readonly paths?: readonly string[] | undefined;
  readonly force: boolean;
  /** Turns of the conversation that go with the files. */
  readonly conversation: readonly string[];
}

/** Whether a turn will need its files saved: a tool of it may change them, or another program does the whole turn. */
type ExpectedChanges = 'none' | 'possible' | 'certain';

interface OpenTurn {
  readonly edge: 'start' | 'resume';
  start: Promise<void> | undefined;
  /** Whether the files are saved in their earlier state: from now on tools may change them. */
  hasStarted: boolean;
  /** Whether a tool may have changed files. */
  isNeeded?: true;
}

const rootFile = 'root';

/** Checkpoints of the trees in which the conversations of one workspace work: the workspace itself, and worktrees. */
export class WorkspaceCheckpoints {
  readonly #options: WorkspaceCheckpointsOptions;
  readonly #engines: Engines;
  readonly #trees = new Map<string, TreeCheckpoints>();
  readonly #sizes = new Map<string, Promise<number>>();
  readonly #turns = new Map<string, OpenTurn>();
  readonly #notes = new Map<string, ActivityNotes>();

  constructor(options: WorkspaceCheckpointsOptions) {
    this.#options = options;
    this.#engines = options.engines ?? new EngineThread();
    this.#openUnclean();
  }

  /** Resolves when the work that a dead process began is completed. @throws CheckpointError */
  async recovered(): Promise<void> {
    await Promise.all([...this.#trees.values()].map((tree) => tree.ready()));
  }

  /**
   * Begins a turn. A tree that is large, or will surely be needed, is saved now, beside the first steps of the turn; a small one
   * when a tool needs it.
   */
  begin(place: TurnPlace, changes: ExpectedChanges = 'possible'): void {
    this.#open(place, changes, 'start');
  }

  /**
   * Continues a turn of a dead server, under its id. Call it before any other turn works: it marks the death, as `workOf` knows it. The
   * changes until the first tool of the turn are the user's; `secure`, `working` and `settle` follow as for a turn that begins.
   */
  resume(place: TurnPlace, changes: ExpectedChanges = 'possible'): void {
    this.#tree(place.workspacePath);
    this.#open(place, changes, 'resume');
  }

  #open(place: TurnPlace, changes: ExpectedChanges, edge: OpenTurn['edge']): void {
    const turn: OpenTurn = { edge, start: undefined, hasStarted: false };
    this.#turns.set(keyOf(place), turn);
    if (changes === 'none') return;
    if (changes === 'certain') {
      this.#engines.prepare?.();
      // `secure` meets the same error, and reports it.
      void this.#start(place, turn).catch(() => undefined);
      return;
    }
    void this.#sizeOf(place.workspacePath).then(
      (size) => {
        if (size >= smallTreeEntries && this.#turns.get(keyOf(place)) === turn)
          void this.#start(place, turn).catch(() => {});
      },
      // The mark that a tool waits for meets the same error, and reports it.
      () => undefined,
    );
  }

  /** Resolves when the state of the files before the first tool of the turn is saved. @throws CheckpointError */
  async secure(place: TurnPlace): Promise<void> {
    const turn = this.#turns.get(keyOf(place));
    if (!turn) return;
    turn.isNeeded = true;
    await this.#start(place, turn);
  }

  /** Notes that a call which may change files begins. @returns notes its end */
  working(place: TurnPlace): () => void {
    const treeId = treeIdOf(place.workspacePath);
    let notes = this.#notes.get(treeId);
    if (!notes) {
      this.#tree(place.workspacePath);
      notes = new ActivityNotes(this.#directoryOf(treeId));
      this.#notes.set(treeId, notes);
    }
    return notes.begin(ownerOf(place));
  }

  /** Saves the files at the end of a turn that may have changed them; undefined: no state was saved at its start. */
  settle(place: TurnPlace): Promise<void> | undefined {
    const turn = this.#turns.get(keyOf(place));
    this.#turns.delete(keyOf(place));
    if (!turn?.start) return undefined;
    const owner = ownerOf(place);
    const tree = this.#tree(place.workspacePath);
    if (turn.hasStarted && turn.isNeeded) return tree.mark({ edge: 'end', ...owner });
    // No tool has changed files: the turn ends without a scan, and does not wait for the current one.
    void turn.start.then(() => tree.ask('dropTurn', owner)).catch(() => undefined);
    return undefined;
  }

  /** Restores files. @throws CheckpointError */
  restore({ threadId, workspacePath, turnIds, paths, force, conversation }: RestoreFiles): Promise<RestoreResult> {
    const request = { thread: threadId, turns: turnIds, paths, force, conversation };
    return this.#tree(workspacePath).restore(request);
  }

  list(threadId: string, workspacePath: string): Promise<readonly CheckpointInfo[]> {
    return this.#tree(workspacePath).ask('list', threadId);
  }

  /**
   * Turns from this one on that can be taken back together: those of the thread, or one restore alone.
   * @returns undefined: there is no such checkpoint
   */
  turnsFrom(threadId: string, workspacePath: string, turnId: string): Promise<readonly string[] | undefined> {
    return this.#tree(workspacePath).ask('turnsFrom', threadId, turnId);
  }

  /** @param turnId undefined: all turns of the thread */
  diff(threadId: string, workspacePath: string, turnId: string | undefined, isUnified: boolean): Promise<TurnDiff> {
    return this.#tree(workspacePath).ask('diff', { thread: threadId, turn: turnId, isUnified });
  }

  /**
   * Notes a directory for a copy, before it is made: a later start removes it when no conversation works in it.
   * @throws CheckpointError
   */
  announceCopy(target: string, workspacePath: string): Promise<void> {
    return this.#tree(workspacePath).ask('announceCopy', target);
  }

  /** Keeps a copy, once a conversation that works in it is stored. @throws CheckpointError */
  keepCopy(target: string, workspacePath: string): Promise<void> {
    return this.#tree(workspacePath).ask('keepCopy', target);
  }

  /** Removes an announced copy, even an unfinished one. @throws CheckpointError */
  removeCopy(target: string, workspacePath: string): Promise<void> {
    return this.#tree(workspacePath).ask('removeCopy', target);
  }

  /** Copies the current files of a tree, or those at the end of a turn, into an empty directory. @throws CheckpointError */
  copyTo(
    target: string,
    workspacePath: string,
    end: { readonly threadId: string; readonly turnId: string } | undefined,
  ) {
    const owner = end && { thread: end.threadId, turn: end.turnId };
    return this.#tree(workspacePath).ask('copyTo', target, owner);
  }

  /** Brings the changes of a fork in its own tree into another tree, as one restore of `into`. @throws CheckpointError */
  async merge(
    fork: { readonly threadId: string; readonly workspacePath: string },
    into: { readonly threadId: string; readonly workspacePath: string },
    force: boolean,
  ): Promise<RestoreResult> {
    const changes = await this.#tree(fork.workspacePath).ask('forkChanges', fork.threadId);
    return this.#tree(into.workspacePath).restore({ thread: into.threadId, fork: changes, force });
  }

  /** Commit of a tree; null without one. @throws CheckpointError */
  head(workspacePath: string): Promise<string | null> {
    return this.#tree(workspacePath).ask('head');
  }

  /** Writes the changed files of a conversation to the file of a transfer. @throws CheckpointError */
  depart(threadId: string, workspacePath: string, file: string): Promise<Departure> {
    return this.#tree(workspacePath).ask('depart', threadId, file);
  }

  /** Brings the files of a transfer into a tree, as one restore. @throws CheckpointError */
  arrive(threadId: string, workspacePath: string, transfer: string, departed?: number): Promise<RestoreResult> {
    return this.#tree(workspacePath).restore({ thread: threadId, transfer, departed });
  }

  /** Forgets the checkpoints of a deleted thread. @throws CheckpointError */
  async forget(threadId: string): Promise<void> {
    for (const root of this.#roots()) await this.#tree(root).ask('forget', threadId);
  }

  async close(): Promise<void> {
    for (const notes of this.#notes.values()) notes.close();
    await Promise.all([...this.#trees.values()].map((tree) => tree.close()));
  }

  #start(place: TurnPlace, turn: OpenTurn): Promise<void> {
    turn.start ??= this.#tree(place.workspacePath)
      .mark({ edge: turn.edge, ...ownerOf(place) })
      .then(() => {
        turn.hasStarted = true;
      });
    return turn.start;
  }

  #sizeOf(root: string): Promise<number> {
    let size = this.#sizes.get(root);
    if (!size) {
      size = countEntries(root, smallTreeEntries);
      this.#sizes.set(root, size);
    }
    return size;
  }

  #tree(root: string): TreeCheckpoints {
    const treeId = treeIdOf(root);
    const known = this.#trees.get(treeId);
    if (known) return known;
    const { limits, rollback, isInUse, workOf, observe, gitEnvironment, ownDirectories = [] } = this.#options;
    const directory = this.#directoryOf(treeId);
    makeDirectory(directory, 0o700);
    const file = join(directory, rootFile);
    if (!existsSync(file)) writeFileAtomic(file, root, { isFlushed: false });
    const tree = new TreeCheckpoints({
      place: { treeId, root, directory, limits, ownDirectories, gitEnvironment },
      ...{ engines: this.#engines, rollback, isInUse },
      ...(workOf && { workOf: ({ thread, turn }) => workOf(thread, turn) }),
      ...(observe && { observe: (actor) => observe(actor, treeId, root) }),
    });
    this.#trees.set(treeId, tree);
    return tree;
  }

  /** Opens trees of a killed process at once to complete them: SQLite removes its log only when it is closed. */
  #openUnclean(): void {
    for (const root of this.#roots()) {
      if (existsSync(join(this.#directoryOf(treeIdOf(root)), 'checkpoints.db-wal'))) this.#tree(root);
    }
  }

  /** Roots of all trees that have a store. */
  #roots(): string[] {
    const { directory } = this.#options;
    if (!existsSync(directory)) return [];
    return readdirSync(directory).flatMap((treeId) => {
      const root = readBoundedFile(join(directory, treeId, rootFile)) ?? '';
      return treeIdOf(root) === treeId ? [root] : [];
    });
  }

  #directoryOf(treeId: string): string {
    return join(this.#options.directory, treeId);
  }
}

/**
 * Reads the changes of a turn, or of all turns of a thread, from the store of a workspace whose agent server is down.
 *
 * @param directory of all trees. @throws CheckpointError, Error
 */
export function storedChanges(
  directory: string,
  workspacePath: string,
  request: { readonly threadId: string; readonly turnId: string | undefined; readonly isUnified: boolean },
): Promise<TurnDiff> {
  const { threadId: thread, turnId: turn, isUnified } = request;
  const place = join(directory, treeIdOf(workspacePath));
  return new EngineThread().storedDiff(workspacePath, place, { thread, turn, isUnified });
}

const keyOf = (place: TurnPlace): string => ownerKey(ownerOf(place));

const ownerOf = ({ threadId, turnId }: TurnPlace): Owner => ({ thread: threadId, turn: turnId });

const treeIdOf = (root: string): string => createHash('sha256').update(root).digest('hex').slice(0, 24);
