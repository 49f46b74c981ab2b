import { createHash } from 'node:crypto';
import type { KeptSandbox } from '../../../supervise/index.ts';
import type { GitFinding } from './held-directory.ts';
import { type MountPlan, statOf } from './mount-plan.ts';
import type { SandboxPlaces } from './mounts.ts';
import type { GuardedMounts } from './open-mounts.ts';
import { boundSockets } from './open-sockets.ts';
import type { Sandbox, SandboxPrograms } from './shared-sandbox.ts';

/** Use of a shared sandbox by one command. */
export interface SandboxUse {
  /** Arguments to put before the command. */
  readonly words: readonly string[];
  /** Leaves the sandbox after the end of the command. Further calls have no effect. @returns entries that were set aside in git directories */
  readonly leave: () => Promise<readonly GitFinding[]>;
  /** Sandbox of a command that may outlive this server. Absent: the sandbox ends with it. */
  readonly kept?: { readonly room: KeptSandbox; readonly line: number; readonly handOver: () => void };
}

/** A shared sandbox with its mounts. */
export interface GuardedSandbox {
  readonly id: string;
  /** See `keyOf`. */
  readonly key: string;
  readonly sandbox: Sandbox;
  readonly mounts: GuardedMounts;
  /** Commands that have not ended. */
  running: number;
}

/** Hash that changes when a new sandbox would have different mounts, for example after a new file at a hidden path. */
export function keyOf(places: SandboxPlaces, plan: MountPlan, fingerprint: string): string {
  const { hidden, network, environment, ...rest } = places;
  const sockets = network === 'deny' ? boundSockets().filter((path) => plan.shows(path)) : [];
  const kinds = hidden.map(({ path }) => [path, statOf(path)?.isDirectory()]);
  const text = JSON.stringify([rest, network, environment?.['PATH'], kinds, sockets, fingerprint]);
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Lets a command enter a sandbox.
 *
 * @param onIdle called when the last command has left
 */
export function enterSandbox(
  guarded: GuardedSandbox,
  programs: SandboxPrograms,
  onIdle: () => Promise<void>,
): SandboxUse {
  const { id, key, sandbox, mounts } = guarded;
  sandbox.users += 1;
  guarded.running += 1;
  mounts.begin(() => guarded.running === 0 && sandbox.isEmpty);
  let isInside = true;
  const { line } = sandbox;
  const { identity, hasNetwork } = sandbox.inside;
  const { pid, startedTicks } = identity;
  return {
    words: sandbox.words(programs),
    ...(line !== undefined && {
      kept: {
        ...{ room: { id, pid, startedTicks, hasNetwork, key }, line },
        handOver() {
          sandbox.release();
          mounts.handOver();
        },
      },
    }),
    leave: async () => {
      if (!isInside) return [];
      isInside = false;
      guarded.running -= 1;
      try {
        return await mounts.examine();
      } finally {
        sandbox.users -= 1;
        if (sandbox.users === 0) await onIdle();
      }
    },
  };
}
