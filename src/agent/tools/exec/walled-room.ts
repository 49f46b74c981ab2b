import { createHash } from 'node:crypto';
import type { KeptRoom } from '../../../supervise/index.ts';
import type { GitFinding } from './held-directory.ts';
import { boundSockets } from './open-sockets.ts';
import type { GuardedWalls } from './open-walls.ts';
import type { Room, RoomPrograms } from './room.ts';
import { statOf, type WallPlan } from './wall-plan.ts';
import type { SandboxPlaces } from './walls.ts';

/** A command's use of a room: a sandbox that several commands share. */
export interface Stay {
  /** Arguments to put before the command. */
  readonly words: readonly string[];
  /** Leaves the room after the end of the command. Further calls have no effect. @returns entries that were set aside in git directories */
  readonly leave: () => Promise<readonly GitFinding[]>;
  /** Room of a command that may outlive this server. Absent: the room ends with it. */
  readonly kept?: { readonly room: KeptRoom; readonly line: number; readonly handOver: () => void };
}

/** A room with its walls. */
export interface WalledRoom {
  readonly id: string;
  /** See `keyOf`. */
  readonly key: string;
  readonly room: Room;
  readonly walls: GuardedWalls;
  /** Commands that have not ended. */
  running: number;
}

/** Hash that changes when a new room would have different walls. A new file at a hidden path changes it; a placeholder does not. */
export function keyOf(places: SandboxPlaces, plan: WallPlan, fingerprint: string): string {
  const { hidden, network, environment, ...rest } = places;
  const sockets = network === 'deny' ? boundSockets().filter((path) => plan.shows(path)) : [];
  const kinds = hidden.map(({ path }) => [path, statOf(path)?.isDirectory()]);
  const text = JSON.stringify([rest, network, environment?.['PATH'], kinds, sockets, fingerprint]);
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Enters a room.
 *
 * @param onIdle called when the last command has left
 */
export function stayIn(walled: WalledRoom, programs: RoomPrograms, onIdle: () => Promise<void>): Stay {
  const { id, key, room, walls } = walled;
  room.users += 1;
  walled.running += 1;
  walls.begin(() => walled.running === 0 && room.isEmpty);
  let isInside = true;
  const { line } = room;
  const { identity, hasNetwork } = room.inside;
  const { pid, startedTicks } = identity;
  return {
    words: room.words(programs),
    ...(line !== undefined && {
      kept: {
        ...{ room: { id, pid, startedTicks, hasNetwork, key }, line },
        handOver() {
          room.release();
          walls.handOver();
        },
      },
    }),
    leave: async () => {
      if (!isInside) return [];
      isInside = false;
      walled.running -= 1;
      try {
        return await walls.examine();
      } finally {
        room.users -= 1;
        if (room.users === 0) await onIdle();
      }
    },
  };
}
