import { findProgram } from '../../../lib/index.ts';
import { runProgram } from '../../../supervise/index.ts';
import { newMarker } from './environment.ts';
import type { GitFinding } from './held-directory.ts';
import { boundSockets } from './open-sockets.ts';
import { Room, type RoomPrograms } from './room.ts';
import { findBubblewrap, type OpenWalls, openWalls } from './sandbox.ts';
import { statOf } from './wall-plan.ts';
import { isolation, type SandboxPlaces, sharedFloor } from './walls.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A command's stay in a room. */
export interface Stay {
  /** Words to put before the command. */
  readonly words: readonly string[];
  /** Leaves the room after the end of the command. Further calls have no effect. @returns entries that were set aside in git directories */
  readonly leave: () => Promise<readonly GitFinding[]>;
}

/** A room behind its walls. */
interface WalledRoom {
  readonly room: Room;
  readonly walls: OpenWalls;
  /** Commands that have not ended. */
  running: number;
}

interface KnownRoom {
  key: string;
  readonly opened: Promise<WalledRoom>;
}

/** The sandboxes of conversations: one room each, from the first command of a turn to the end of the last one. */
export class Rooms {
  readonly #environment: Environment;
  readonly #rooms = new Map<string, KnownRoom>();
  #programs: Promise<RoomPrograms | undefined> | undefined;
  #isClosed = false;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Whether rooms can be made here. Tried once. */
  async areAvailable(): Promise<boolean> {
    return (await this.#available()) !== undefined;
  }

  /**
   * Enters the room of a conversation. Places that have changed make a new room, as soon as no command is in the old one.
   *
   * @returns undefined: rooms cannot be made here
   */
  async enter(threadId: string, places: SandboxPlaces): Promise<Stay | undefined> {
    const programs = await this.#available();
    if (!programs || this.#isClosed) return undefined;
    const known = this.#rooms.get(threadId);
    const old = await known?.opened.catch(() => undefined);
    if (old?.room.isOpen && (old.room.users > 0 || known?.key === keyOf(places, old.walls)))
      return stayIn(old, () => this.endIdle(threadId));
    if (this.#rooms.get(threadId) === known) this.#rooms.delete(threadId);
    await closeRoom(old);
    // Another call may have made a room during the wait.
    if (this.#rooms.has(threadId)) return this.enter(threadId, places);
    const made: KnownRoom = { key: '', opened: this.#open(programs, places) };
    this.#rooms.set(threadId, made);
    try {
      const opened = await made.opened;
      made.key = keyOf(places, opened.walls);
      return stayIn(opened, () => this.endIdle(threadId));
    } catch {
      if (this.#rooms.get(threadId) === made) this.#rooms.delete(threadId);
      return undefined;
    }
  }

  async #open(programs: RoomPrograms, places: SandboxPlaces): Promise<WalledRoom> {
    const walls = await openWalls(places);
    const words = [...sharedFloor, ...isolation(places.network), ...walls.words];
    try {
      return { walls, room: await Room.open(programs, words, newMarker(this.#environment)), running: 0 };
    } catch (error) {
      await walls.close();
      throw error;
    }
  }

  /** Ends the room of a conversation with everything in it. */
  async end(threadId: string): Promise<void> {
    const known = this.#rooms.get(threadId);
    this.#rooms.delete(threadId);
    await closeRoom(await known?.opened.catch(() => undefined));
  }

  /** Ends the room of a conversation unless a command is in it. */
  async endIdle(threadId: string): Promise<void> {
    const opened = await this.#rooms.get(threadId)?.opened.catch(() => undefined);
    if (opened?.room.users === 0) await this.end(threadId);
  }

  /** Ends all rooms, and makes none any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#rooms.keys()].map((threadId) => this.end(threadId)));
  }

  #available(): Promise<RoomPrograms | undefined> {
    this.#programs ??= tryRooms(this.#environment);
    return this.#programs;
  }
}

async function closeRoom(opened: WalledRoom | undefined): Promise<void> {
  await opened?.room.close();
  await opened?.walls.close();
}

/** Changes when a new room would have other walls. A file that appears in a hidden place counts, one that a placeholder stands for does not. */
function keyOf(places: SandboxPlaces, walls: OpenWalls): string {
  const { hidden, network, environment, ...rest } = places;
  const sockets = network === 'deny' ? boundSockets().filter((path) => walls.walls.plan.shows(path)) : [];
  const kinds = hidden.map(({ path }) => [path, statOf(path)?.isDirectory()]);
  return JSON.stringify([rest, network, environment?.['PATH'], kinds, sockets, walls.fingerprint()]);
}

/** @param onIdle ends the room */
function stayIn(walled: WalledRoom, onIdle: () => Promise<void>): Stay {
  const { room, walls } = walled;
  room.users += 1;
  walled.running += 1;
  walls.begin(() => walled.running === 0 && room.isEmpty);
  let isInside = true;
  return {
    words: room.words,
    leave: async () => {
      if (!isInside) return [];
      isInside = false;
      walled.running -= 1;
      try {
        return await walls.examine();
      } finally {
        room.users -= 1;
        if (walls.isBrief && room.users === 0) await onIdle();
      }
    },
  };
}

/** Whether the programs are there and a command can enter: kernels and containers forbid parts of it. */
async function tryRooms(environment: Environment): Promise<RoomPrograms | undefined> {
  const bubblewrap = await findBubblewrap(environment, 'deny');
  const path = environment['PATH'];
  const [nsenter, setpriv] = [findProgram('nsenter', path), findProgram('setpriv', path)];
  if ('problem' in bubblewrap || nsenter === undefined || setpriv === undefined) return undefined;
  const programs = { bubblewrap: bubblewrap.program, nsenter, setpriv };
  try {
    const room = await Room.open(programs, [...sharedFloor, ...isolation('deny')], newMarker(environment));
    const [program = '', ...args] = [...room.words, '/bin/sh', '-c', 'exit 0'];
    const { exitCode } = await runProgram({ program, args, env: {}, timeoutMs: 10_000 }).finally(() => room.close());
    return exitCode === 0 ? programs : undefined;
  } catch {
    return undefined;
  }
}
