import { findProgram } from '../../../lib/index.ts';
import { runProgram } from '../../../supervise/index.ts';
import { newMarker } from './environment.ts';
import { Room, type RoomPrograms } from './room.ts';
import { findBubblewrap } from './sandbox.ts';
import { doors, isolation, type SandboxPlaces, sharedFloor } from './walls.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A command's stay in a room. */
export interface Stay {
  /** Words to put before the command. */
  readonly words: (cwd: string) => readonly string[];
  /** The command has ended. Further calls have no effect. */
  readonly leave: () => void;
}

/** The sandboxes of conversations: one room each, from the first command of a turn to the end of the last one. */
export class Rooms {
  readonly #environment: Environment;
  readonly #rooms = new Map<string, { readonly key: string; readonly room: Promise<Room> }>();
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
    const walls = [...sharedFloor, ...isolation(places.network), ...(await doors(places))];
    const key = walls.join('\0');
    const known = this.#rooms.get(threadId);
    const old = await known?.room.catch(() => undefined);
    if (old?.isOpen && (known?.key === key || old.users > 0)) return stayIn(old);
    await old?.close();
    // Another call may have made a room meanwhile.
    if (this.#rooms.get(threadId) !== known) return this.enter(threadId, places);
    const room = Room.open(programs, walls, newMarker(this.#environment));
    this.#rooms.delete(threadId);
    this.#rooms.set(threadId, { key, room });
    try {
      return stayIn(await room);
    } catch {
      this.#rooms.delete(threadId);
      return undefined;
    }
  }

  /** Ends the room of a conversation with everything in it. */
  async end(threadId: string): Promise<void> {
    const { room } = this.#rooms.get(threadId) ?? {};
    this.#rooms.delete(threadId);
    await (await room?.catch(() => undefined))?.close();
  }

  /** Ends the room of a conversation unless a command is in it. */
  async endIdle(threadId: string): Promise<void> {
    const room = await this.#rooms.get(threadId)?.room.catch(() => undefined);
    if (room?.users === 0) await this.end(threadId);
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

function stayIn(room: Room): Stay {
  room.users += 1;
  let isInside = true;
  return {
    words: (cwd) => room.words(cwd),
    leave: () => {
      if (isInside) room.users -= 1;
      isInside = false;
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
    const [program = '', ...args] = [...room.words('/'), '/bin/sh', '-c', 'exit 0'];
    const { exitCode } = await runProgram({ program, args, env: {}, timeoutMs: 10_000 }).finally(() => room.close());
    return exitCode === 0 ? programs : undefined;
  } catch {
    return undefined;
  }
}
