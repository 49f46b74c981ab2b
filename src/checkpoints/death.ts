import { createHash } from 'node:crypto';
import { closeSync, constants, openSync } from 'node:fs';
import { relative } from 'node:path';
import { type LastActivity, lastActivity } from './activity.ts';
import { type BytePath, bytePath, parentOf } from './byte-path.ts';
import { isGone } from './errors.ts';
import type { History, MarkEdge, SavedTurn } from './history.ts';
import { type Owner, ownerKey, ownerOf, userOwner } from './owner.ts';
import { piecesOf } from './pieces.ts';
import type { FoundChange, Snapshots } from './snapshots.ts';
import { spansOf } from './spans.ts';
import type { Tree } from './tree.ts';

/** Facts about a turn of a dead server, from its stored calls. */
export interface KnownWork {
  /**
   * Latest moment at which the turn is known to have worked, in milliseconds: the end of its last call with effects, or the exit of a
   * command that outlived the server. 0: it had no such call.
   */
  readonly lastWorkedAt: number;
  /** Whether a call with effects had begun and not ended. */
  readonly isWorking: boolean;
  /** SHA-256 of the contents that file tools have written, in hexadecimal digits, by absolute path. */
  readonly written?: Readonly<Record<string, string>>;
}

/** Store and tree in which turns were left open. */
export interface DeathPlace {
  readonly history: History;
  readonly snapshots: Snapshots;
  readonly tree: Tree;
  /** Directory of the store. */
  readonly directory: string;
}

interface DeadTurn {
  readonly owner: Owner;
  /** Last moment at which the turn is known to have worked. */
  readonly until: number;
  /** Whether a call may have worked on until the unknown moment of the death. */
  readonly isWorking: boolean;
  readonly written: ReadonlyMap<BytePath, string>;
}

/**
 * Ends the turns that a dead process left open. A change is a turn's when it is not later than the turn's last known work, or when
 * the file has the content that a file tool wrote. Later changes are the user's; while a call ran at the death, its command may have
 * made them as well, so an undo asks, as for a missing entry whose removal has no time. Without any sign of life all changes are
 * uncertain.
 *
 * @param known facts by `ownerKey`
 * @returns number of the turns
 */
export async function markDeath(place: DeathPlace, known: Readonly<Record<string, KnownWork>>): Promise<number> {
  const { history, snapshots, tree, directory } = place;
  const open = history.openTurns;
  if (open.length === 0) return 0;
  const note = lastActivity(directory);
  const turns = open.map((turn) => deadTurn(place, turn, known[ownerKey(turn)], note));
  const attribution = new Attribution(place, turns);
  await snapshots.take(
    (take, found) => {
      const owners = attribution.of(found());
      const marks = new Map<string, number>();
      const edges: readonly MarkEdge[] = ['crash', 'afterCrash'];
      let seq = take('crash', open.map(ownerOf));
      marks.set(attribution.key({ edge: 'crash', owners: open.map(ownerOf) }), seq);
      for (const edge of edges) {
        for (const each of owners.values()) {
          const key = attribution.key(each);
          if (each.edge !== edge || marks.has(key)) continue;
          const added = take(edge, each.owners);
          marks.set(key, added);
          if (edge === 'crash') seq = added;
        }
        if (edge === 'crash') for (const turn of open) history.endTurn(turn, seq, true);
      }
      return (path) => {
        const each = owners.get(path);
        return (each && marks.get(attribution.key(each))) ?? seq;
      };
    },
    { aliveUntil: Math.max(...turns.map(({ until }) => until)) },
  );
  tree.close();
  return open.length;
}

function deadTurn(
  { history, tree }: DeathPlace,
  turn: SavedTurn,
  known: KnownWork | undefined,
  note: LastActivity | undefined,
): DeadTurn {
  const owner = ownerOf(turn);
  // An older note is of the work before the turn was resumed.
  const isCurrent =
    note !== undefined && note.at >= history.mark(spansOf(history, turn).at(-1)?.startSeq ?? turn.startSeq).at;
  const beat = isCurrent && note.isWorking(owner) ? note.at : 0;
  if (!known) {
    return { owner, until: note?.at ?? 0, isWorking: note === undefined || beat > 0, written: new Map() };
  }
  const { lastWorkedAt, isWorking, written = {} } = known;
  // A note without the turn is later than the end of its last call, also when that end was not stored.
  const hasEnded = isWorking && isCurrent && beat === 0;
  const inTree = Object.entries(written).map(([path, hash]) => [bytePath(relative(tree.root, path)), hash] as const);
  return {
    owner,
    until: Math.max(lastWorkedAt, hasEnded ? note.at : beat),
    isWorking: note === undefined ? isWorking : beat > 0 && (isWorking || beat > lastWorkedAt),
    written: new Map(inTree),
  };
}

/** Owners of a change, on one side of the death. */
interface Owners {
  readonly edge: MarkEdge;
  readonly owners: readonly Owner[];
}

/** Finds the owners of the changes that were made between the last mark of a dead process and the next start. */
class Attribution {
  readonly #place: DeathPlace;
  readonly #turns: readonly DeadTurn[];

  constructor(place: DeathPlace, turns: readonly DeadTurn[]) {
    this.#place = place;
    this.#turns = turns;
  }

  key({ edge, owners }: Owners): string {
    return [edge, ...owners.map(ownerKey)].join('\n');
  }

  of(changes: readonly FoundChange[]): ReadonlyMap<BytePath, Owners> {
    const all = new Map(changes.map((change) => [change.path, this.#ownersOf(change)]));
    for (const { path, entry } of changes) {
      const writer = entry?.kind === 'file' ? this.#writerOf(path) : undefined;
      if (!writer) continue;
      const own: Owners = { edge: 'crash', owners: [writer.owner] };
      all.set(path, own);
      // A file tool makes the directories of its file.
      for (let parent = parentOf(path); parent; parent = parentOf(parent)) {
        if (this.#place.history.current(parent)?.kind === 'directory' || !all.has(parent)) break;
        all.set(parent, own);
      }
    }
    return all;
  }

  #ownersOf({ path, entry, changedAt }: FoundChange): Owners {
    const turns = this.#turns;
    // Signs of life have whole milliseconds, times of files have parts of them.
    const inTime = turns.filter(({ until }) => Math.floor(changedAt) <= until);
    if (inTime.length > 0) return { edge: 'crash', owners: inTime.map(({ owner }) => owner) };
    const isAnyone = entry === undefined;
    const may = turns.filter(({ isWorking, written }) => isAnyone || isWorking || written.has(path));
    return { edge: 'afterCrash', owners: may.length === 0 ? [] : [...may.map(({ owner }) => owner), userOwner] };
  }

  /** Turn whose file tool wrote the present content of a file. */
  #writerOf(path: BytePath): DeadTurn | undefined {
    const writers = this.#turns.filter(({ written }) => written.has(path));
    if (writers.length === 0) return undefined;
    const hash = sha256Of(this.#place.tree, path);
    return writers.find(({ written }) => written.get(path) === hash);
  }
}

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

function sha256Of(tree: Tree, path: BytePath): string | undefined {
  try {
    const fd = openSync(tree.at(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const hash = createHash('sha256');
      for (const piece of piecesOf(fd, Number.MAX_SAFE_INTEGER)) hash.update(piece);
      return hash.digest('hex');
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}
