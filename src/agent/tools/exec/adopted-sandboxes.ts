import { setTimeout as sleep } from 'node:timers/promises';
import {
  endKeptCommand,
  findKeeper,
  type KeptCommand,
  keptMarker,
  killMarked,
  listKept,
  removeSandboxLines,
  sandboxLine,
} from '../../../supervise/index.ts';
import { gitGuardOf } from './git-guard.ts';
import type { GitFinding } from './held-directory.ts';
import {
  type MountsOwner,
  readMounts,
  removeSandboxEnds,
  type StoredMounts,
  sandboxEnd,
  sandboxEndFile,
} from './mounts-record.ts';
import { adoptStored, type GuardedMounts } from './open-mounts.ts';
import { sweepPlaceholders } from './placeholders.ts';
import type { GuardedSandbox } from './sandbox-use.ts';
import { Sandbox } from './shared-sandbox.ts';

/** Time limit in milliseconds for the keeper of a sandbox without commands to report the end of the sandbox. */
const sandboxEndMs = 1_000;
const pollMs = 10;

/** A sandbox of an earlier server. */
interface AdoptedSandbox extends GuardedSandbox {
  readonly threadId: string;
  /** Ids of the kept commands in the sandbox. */
  readonly commands: Set<string>;
}

/** Mounts of one workspace, with the commands of their sandboxes. */
interface AdoptedMounts {
  readonly mounts: GuardedMounts;
  readonly commands: Set<string>;
  readonly sandboxes: Map<string, AdoptedSandbox>;
}

/** Sandboxes with running commands that an earlier server of this workspace has left, with the state of their git guards. */
export class AdoptedSandboxes {
  readonly #mounts = new Map<string, AdoptedMounts>();
  /** Running searches for files with a set-id bit in workspaces without commands, by workspace. */
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
  static async take(records: string, directory: string, keeps: boolean): Promise<AdoptedSandboxes> {
    const taken = new AdoptedSandboxes();
    const own = readMounts(records).filter(({ kept }) => kept === directory);
    const isGuarded = (command: KeptCommand) => own.some(({ workspacePath }) => workspacePath === command.walls);
    const living: KeptCommand[] = [];
    for (const command of listKept(directory).filter((each) => each.walls !== undefined)) {
      // Without a record, the state of the git directories before the command is unknown.
      if (!keeps || !isGuarded(command)) await endKeptCommand(directory, command);
      else if ((await findKeeper(directory, command)) !== 'gone') living.push(command);
    }
    sweepPlaceholders(records, () => {
      const names = readMounts(records).flatMap(({ placeholders }) => placeholders);
      return new Set(names.map(({ path }) => path));
    });
    for (const stored of own) {
      const behind = living.filter((each) => each.walls === stored.workspacePath);
      await taken.#take(records, stored, behind);
    }
    removeSandboxLines(directory, new Set(living.map((each) => each.room?.id)));
    return taken;
  }

  async #take(records: string, stored: StoredMounts, commands: readonly KeptCommand[]): Promise<void> {
    const { kept, workspacePath } = stored;
    const owner = { records, kept, workspacePath };
    const used = new Set(commands.map((each) => each.room?.id ?? null));
    const endings = stored.sandboxes.filter((id) => !used.has(id));
    const ends = await Promise.all(endings.map((id) => (id === null ? Date.now() : endOf(owner, id))));
    const removeEnds = () =>
      removeSandboxEnds(
        owner,
        endings.filter((id) => id !== null),
      );
    if (commands.length === 0) {
      const mounts = adoptStored(records, stored, stored.sandboxes);
      const untilMs = Math.max(...ends);
      await mounts.end(untilMs);
      // If this server is killed now, the next one finds the record and the ends.
      const sweep = mounts.close(untilMs).then(removeEnds);
      // `swept` reports the error.
      sweep.catch(() => undefined);
      this.#sweeps.set(workspacePath, sweep);
      return;
    }
    removeEnds();
    const taken = adoptStored(records, stored, [...used]);
    // Processes of adopted commands are not children of the sandbox's first process, so the sandbox never looks empty.
    const mounts: GuardedMounts = { ...taken, begin: () => taken.begin(() => false) };
    const sandboxes = new Map<string, AdoptedSandbox>();
    for (const { id, threadId, room: stored } of commands) {
      if (!stored) continue;
      const known = sandboxes.get(stored.id);
      const files = { line: sandboxLine(kept, stored.id), end: sandboxEndFile(owner, stored.id) };
      const found = known ? undefined : Sandbox.find(stored, keptMarker(kept, stored.id), files);
      if (found)
        sandboxes.set(stored.id, {
          ...{ id: stored.id, key: stored.key, sandbox: found, mounts, running: 0, threadId },
          commands: new Set([id]),
        });
      known?.commands.add(id);
    }
    this.#mounts.set(workspacePath, { mounts, sandboxes, commands: new Set(commands.map(({ id }) => id)) });
    await mounts.judge();
  }

  /** Resolves when the set-id bits of ended sandboxes are cleared. Start no command before that. */
  get swept(): Promise<unknown> {
    return Promise.all(this.#sweeps.values());
  }

  /** Open sandboxes of a conversation. */
  sandboxesOf(threadId: string): readonly GuardedSandbox[] {
    return this.#sandboxes.filter((each) => each.threadId === threadId && each.sandbox.isOpen);
  }

  get #sandboxes(): readonly AdoptedSandbox[] {
    return [...this.#mounts.values()].flatMap(({ sandboxes }) => [...sandboxes.values()]);
  }

  /**
   * Checks the git directories after the end of an earlier server's command, and ends the sandbox after its last command.
   *
   * @returns entries that were set aside
   */
  async leave({ id, walls: workspacePath }: KeptCommand): Promise<readonly GitFinding[]> {
    if (workspacePath === undefined) return [];
    await this.#sweeps.get(workspacePath);
    const taken = this.#mounts.get(workspacePath);
    if (taken) {
      taken.commands.delete(id);
      for (const sandbox of taken.sandboxes.values()) sandbox.commands.delete(id);
    }
    const findings = await taken?.mounts.examine();
    await this.settle();
    return [...(findings ?? []), ...gitGuardOf(workspacePath).findings()];
  }

  /** Ends sandboxes without a command, and closes mounts without a sandbox. */
  settle(): Promise<void> {
    const work = this.#work.then(() => this.#settle());
    this.#work = work.catch(() => undefined);
    return work;
  }

  async #settle(): Promise<void> {
    for (const [path, { mounts, sandboxes, commands }] of this.#mounts) {
      for (const [id, { sandbox, commands }] of sandboxes) {
        if (commands.size > 0 || sandbox.users > 0) continue;
        sandboxes.delete(id);
        await sandbox.close();
      }
      if (commands.size > 0 || sandboxes.size > 0 || !this.#mounts.delete(path)) continue;
      await mounts.close();
    }
  }

  /** Ends the sandboxes of a conversation and all their processes. */
  async end(threadId: string): Promise<void> {
    for (const { sandboxes } of this.#mounts.values()) {
      for (const [id, { sandbox, threadId: owner }] of sandboxes) {
        if (owner !== threadId) continue;
        sandboxes.delete(id);
        await sandbox.close();
      }
    }
    await this.settle();
  }

  /** Leaves the sandboxes to the next server. */
  handOver(): void {
    for (const { mounts, sandboxes } of this.#mounts.values()) {
      for (const { sandbox } of sandboxes.values()) sandbox.release();
      mounts.handOver();
    }
    this.#mounts.clear();
  }
}

/** Waits for the end of a sandbox without a command. @returns a time at which the sandbox had already ended */
async function endOf(owner: MountsOwner, sandbox: string): Promise<number> {
  const late = performance.now() + sandboxEndMs;
  for (;;) {
    const end = sandboxEnd(owner, sandbox);
    if (end !== undefined) return end;
    if (performance.now() >= late) break;
    await sleep(pollMs);
  }
  // The keeper of the sandbox was killed, or does not end the sandbox.
  await killMarked(keptMarker(owner.kept, sandbox));
  return Date.now();
}
