import { setTimeout as sleep } from 'node:timers/promises';
import {
  endKeptCommand,
  findKeeper,
  type KeptCommand,
  keptMarker,
  killMarked,
  listKept,
  removeRoomLines,
  roomLine,
} from '../../../supervise/index.ts';
import { gitGuardOf } from './git-guard.ts';
import type { GitFinding } from './held-directory.ts';
import { type GuardedWalls, takeStored } from './open-walls.ts';
import { sweepPlaceholders } from './placeholders.ts';
import { Room } from './room.ts';
import type { WalledRoom } from './walled-room.ts';
import { readWalls, removeRoomEnds, roomEnd, roomEndFile, type StoredWalls, type WallsOwner } from './walls-record.ts';

/** Longest wait, in milliseconds, until the keeper of a room without commands reports its end. */
const roomEndMs = 1_000;
const pollMs = 10;

/** A room of an earlier server. */
interface TakenRoom extends WalledRoom {
  readonly threadId: string;
  /** Ids of the kept commands in the room. */
  readonly commands: Set<string>;
}

/** Walls of one workspace, with the commands of their sandboxes. */
interface TakenWalls {
  readonly walls: GuardedWalls;
  readonly commands: Set<string>;
  readonly rooms: Map<string, TakenRoom>;
}

/** Sandboxes with running commands that an earlier server of this workspace has left, with the state of their git guards. */
export class TakenSandboxes {
  readonly #walls = new Map<string, TakenWalls>();
  /** Searches for files with a set-id bit where no command runs any more, by workspace. */
  readonly #sweeps = new Map<string, Promise<void>>();
  #work: Promise<unknown> = Promise.resolve();

  /**
   * Takes over the sandboxes of an earlier server. Before it resolves, it checks git directories of sandboxes without a command; `swept`
   * resolves later. Call it before any sandbox is opened and before git runs.
   *
   * @param records directory of the records of sandboxes
   * @param directory directory of the kept commands
   * @param keeps false: ends the commands
   */
  static async take(records: string, directory: string, keeps: boolean): Promise<TakenSandboxes> {
    const taken = new TakenSandboxes();
    const own = readWalls(records).filter(({ kept }) => kept === directory);
    const isGuarded = ({ walls }: KeptCommand) => own.some(({ workspacePath }) => workspacePath === walls);
    const living: KeptCommand[] = [];
    for (const command of listKept(directory).filter(({ walls }) => walls !== undefined)) {
      // Without a record, the state of the git directories before the command is unknown.
      if (!keeps || !isGuarded(command)) await endKeptCommand(directory, command);
      else if ((await findKeeper(directory, command)) !== 'gone') living.push(command);
    }
    sweepPlaceholders(records, () => {
      const names = readWalls(records).flatMap(({ placeholders }) => placeholders);
      return new Set(names.map(({ path }) => path));
    });
    for (const stored of own) {
      const behind = living.filter(({ walls }) => walls === stored.workspacePath);
      await taken.#take(records, stored, behind);
    }
    removeRoomLines(directory, new Set(living.map(({ room }) => room?.id)));
    return taken;
  }

  async #take(records: string, stored: StoredWalls, commands: readonly KeptCommand[]): Promise<void> {
    const { kept, workspacePath, sandboxes } = stored;
    const owner = { records, kept, workspacePath };
    const used = new Set(commands.map(({ room }) => room?.id ?? null));
    const endings = sandboxes.filter((id) => !used.has(id));
    const ends = await Promise.all(endings.map((id) => (id === null ? Date.now() : endOf(owner, id))));
    const removeEnds = () =>
      removeRoomEnds(
        owner,
        endings.filter((id) => id !== null),
      );
    if (commands.length === 0) {
      const walls = takeStored(records, stored, sandboxes);
      const untilMs = Math.max(...ends);
      await walls.end(untilMs);
      // If this server is killed now, the next one finds the record and the ends.
      const sweep = walls.close(untilMs).then(removeEnds);
      // `swept` reports the error.
      sweep.catch(() => undefined);
      this.#sweeps.set(workspacePath, sweep);
      return;
    }
    removeEnds();
    const taken = takeStored(records, stored, [...used]);
    // Processes of adopted commands are not children of the room's first process, so the room never counts as empty.
    const walls: GuardedWalls = { ...taken, begin: () => taken.begin(() => false) };
    const rooms = new Map<string, TakenRoom>();
    for (const { id, threadId, room } of commands) {
      if (!room) continue;
      const known = rooms.get(room.id);
      const files = { line: roomLine(kept, room.id), end: roomEndFile(owner, room.id) };
      const found = known ? undefined : Room.find(room, keptMarker(kept, room.id), files);
      if (found)
        rooms.set(room.id, {
          ...{ id: room.id, key: room.key, room: found, walls, running: 0, threadId },
          commands: new Set([id]),
        });
      known?.commands.add(id);
    }
    this.#walls.set(workspacePath, { walls, rooms, commands: new Set(commands.map(({ id }) => id)) });
    await walls.judge();
  }

  /** Resolves when no file of a sandbox without a command has a set-id bit. No command may run before that. */
  get swept(): Promise<unknown> {
    return Promise.all(this.#sweeps.values());
  }

  /** Open rooms of a conversation. */
  roomsOf(threadId: string): readonly WalledRoom[] {
    return this.#rooms.filter((each) => each.threadId === threadId && each.room.isOpen);
  }

  get #rooms(): readonly TakenRoom[] {
    return [...this.#walls.values()].flatMap(({ rooms }) => [...rooms.values()]);
  }

  /**
   * Checks the git directories after the end of an earlier server's command, and ends the room after its last command.
   *
   * @returns entries that were set aside
   */
  async leave({ id, walls }: KeptCommand): Promise<readonly GitFinding[]> {
    if (walls === undefined) return [];
    await this.#sweeps.get(walls);
    const taken = this.#walls.get(walls);
    if (taken) {
      taken.commands.delete(id);
      for (const room of taken.rooms.values()) room.commands.delete(id);
    }
    const findings = await taken?.walls.examine();
    await this.settle();
    return [...(findings ?? []), ...gitGuardOf(walls).findings()];
  }

  /** Ends rooms without a command, and closes walls without a room. */
  settle(): Promise<void> {
    const work = this.#work.then(() => this.#settle());
    this.#work = work.catch(() => undefined);
    return work;
  }

  async #settle(): Promise<void> {
    for (const [path, { walls, rooms, commands }] of this.#walls) {
      for (const [id, { room, commands }] of rooms) {
        if (commands.size > 0 || room.users > 0) continue;
        rooms.delete(id);
        await room.close();
      }
      if (commands.size > 0 || rooms.size > 0 || !this.#walls.delete(path)) continue;
      await walls.close();
    }
  }

  /** Ends the rooms of a conversation and all their processes. */
  async end(threadId: string): Promise<void> {
    for (const { rooms } of this.#walls.values()) {
      for (const [id, { room, threadId: owner }] of rooms) {
        if (owner !== threadId) continue;
        rooms.delete(id);
        await room.close();
      }
    }
    await this.settle();
  }

  /** Leaves the sandboxes to the next server. */
  handOver(): void {
    for (const { walls, rooms } of this.#walls.values()) {
      for (const { room } of rooms.values()) room.release();
      walls.handOver();
    }
    this.#walls.clear();
  }
}

/** Waits for the end of a room without a command. @returns a time at which the room had already ended */
async function endOf(owner: WallsOwner, room: string): Promise<number> {
  const late = performance.now() + roomEndMs;
  for (;;) {
    const end = roomEnd(owner, room);
    if (end !== undefined) return end;
    if (performance.now() >= late) break;
    await sleep(pollMs);
  }
  // The keeper of the room was killed, or does not end the room.
  await killMarked(keptMarker(owner.kept, room));
  return Date.now();
}
