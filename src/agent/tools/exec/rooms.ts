import { randomUUID } from 'node:crypto';
import { findProgram } from '../../../lib/index.ts';
import { keptMarker, roomLine, runProgram } from '../../../supervise/index.ts';
import { newMarker } from './environment.ts';
import { takeOver } from './kept-command.ts';
import { type OpenWalls, openWalls } from './open-walls.ts';
import { Room, type RoomFiles, type RoomPrograms } from './room.ts';
import { findBubblewrap } from './sandbox.ts';
import type { TakenSandboxes } from './taken-sandboxes.ts';
import { keyOf, type Stay, stayIn, type WalledRoom } from './walled-room.ts';
import { isolation, type SandboxPlaces, sharedFloor, wallsFor } from './walls.ts';
import { roomEndFile } from './walls-record.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A room of this server. */
interface OwnRoom extends WalledRoom {
  readonly walls: OpenWalls;
}

/** The sandboxes of conversations: one room each, from the first command of a turn to the end of the last one. */
export class Rooms {
  readonly #environment: Environment;
  readonly #taken: TakenSandboxes | undefined;
  readonly #rooms = new Map<string, Promise<OwnRoom>>();
  #programs: Promise<RoomPrograms | undefined> | undefined;
  #isClosed = false;

  /** @param taken rooms of an earlier server, which commands may also enter */
  constructor(environment: Environment, taken?: TakenSandboxes) {
    this.#environment = environment;
    this.#taken = taken;
  }

  /** Resolves when commands may run outside of rooms: see `TakenSandboxes`. */
  get swept(): Promise<unknown> {
    return this.#taken?.swept ?? Promise.resolve();
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
    const old = await known?.catch(() => undefined);
    if (old?.room.isOpen && (old.room.users > 0 || keyNow(places, old) === old.key))
      return this.#stayIn(old, programs, threadId);
    const taken = this.#taken?.roomsOf(threadId).find((each) => keyNow(places, each) === each.key);
    if (taken) return stayIn(taken, programs, async () => this.#taken?.settle());
    if (this.#rooms.get(threadId) === known) this.#rooms.delete(threadId);
    await closeRoom(old);
    // Another call may have made a room during the wait.
    if (this.#rooms.has(threadId)) return this.enter(threadId, places);
    const made = this.#open(programs, places);
    this.#rooms.set(threadId, made);
    try {
      return this.#stayIn(await made, programs, threadId);
    } catch {
      if (this.#rooms.get(threadId) === made) this.#rooms.delete(threadId);
      return undefined;
    }
  }

  #stayIn(own: OwnRoom, programs: RoomPrograms, threadId: string): Stay {
    return stayIn(own, programs, async () => {
      if (own.walls.isBrief) await this.endIdle(threadId);
    });
  }

  async #open(programs: RoomPrograms, places: SandboxPlaces): Promise<OwnRoom> {
    const id = randomUUID();
    const walls = await openWalls(places, id);
    const words = [...sharedFloor, ...isolation(places.network), ...walls.words];
    const files = walls.isStored ? filesOf(places, id) : undefined;
    const marker = files && places.kept !== undefined ? keptMarker(places.kept, id) : newMarker(this.#environment);
    try {
      const room = await Room.open(programs, words, marker, files);
      return { id, key: keyOf(places, walls.walls.plan, walls.fingerprint()), walls, room, running: 0 };
    } catch (error) {
      await walls.close();
      throw error;
    }
  }

  /** Ends the room of a conversation with everything in it. */
  async end(threadId: string): Promise<void> {
    await Promise.all([this.#endOwn(threadId), this.#taken?.end(threadId)]);
  }

  async #endOwn(threadId: string): Promise<void> {
    const known = this.#rooms.get(threadId);
    this.#rooms.delete(threadId);
    await closeRoom(await known?.catch(() => undefined));
  }

  /** Ends the room of a conversation unless a command is in it. */
  async endIdle(threadId: string): Promise<void> {
    const opened = await this.#rooms.get(threadId)?.catch(() => undefined);
    if (opened?.room.users === 0) await this.#endOwn(threadId);
  }

  /** Ends all rooms and opens no further ones. Commands of an earlier server continue to run. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#rooms.keys()].map((threadId) => this.#endOwn(threadId)));
    this.#taken?.handOver();
  }

  #available(): Promise<RoomPrograms | undefined> {
    this.#programs ??= tryRooms(this.#environment);
    return this.#programs;
  }
}

async function closeRoom(opened: OwnRoom | undefined): Promise<void> {
  await opened?.room.close();
  await opened?.walls.close();
}

/** Key that a room opened now for these places would have. */
function keyNow(places: SandboxPlaces, { walls }: WalledRoom | OwnRoom): string {
  // Git directories contain no sockets of services.
  const { plan } = 'walls' in walls ? walls.walls : wallsFor(places, []);
  return keyOf(places, plan, walls.fingerprint());
}

/** Files of a room that may outlive this server. Undefined: the room ends with this server. */
function filesOf({ workspacePath, records, kept }: SandboxPlaces, id: string): RoomFiles | undefined {
  if (records === undefined || kept === undefined) return undefined;
  takeOver(kept);
  return { line: roomLine(kept, id), end: roomEndFile({ records, kept, workspacePath }, id) };
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
    const [program = '', ...args] = [...room.words(programs), '/bin/sh', '-c', 'exit 0'];
    const { exitCode } = await runProgram({ program, args, env: {}, timeoutMs: 10_000 }).finally(() => room.close());
    return exitCode === 0 ? programs : undefined;
  } catch {
    return undefined;
  }
}
