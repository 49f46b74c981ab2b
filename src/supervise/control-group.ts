import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaults, type ProcessIdentity } from '../protocol/index.ts';
import { monotonicMs } from './clock.ts';
import { isAlive, readIdentity } from './identity.ts';

/** A name of ours: nothing else is ever ended or removed. */
const ownName = /^oratorio-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * A control group (cgroups(7), version 2) of one process and all its descendants, in any group, session or environment:
 * membership is inherited, and only a process that may write to the hierarchy can leave. It is made below the control group
 * of this process, where this user may: as root, in a delegated unit of systemd, or in most terminals of a desktop.
 */
export class ControlGroup {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** An empty one; `undefined` where this system or this user has none. */
  static make(): ControlGroup | undefined {
    const parent = ownDirectory();
    if (parent === undefined) return undefined;
    const directory = join(parent, `oratorio-${randomUUID()}`);
    try {
      mkdirSync(directory);
    } catch {
      // Not delegated to this user, or mounted read-only.
      return undefined;
    }
    // An older kernel cannot end a group at once.
    if (existsSync(join(directory, 'cgroup.kill'))) return new ControlGroup(directory);
    rmdirSync(directory);
    return undefined;
  }

  /**
   * Moves a process and its current children: processes that they start later are members. The kernel takes some 10 ms, which
   * do not block this process. When the process ends during the move, another one that has got its number is moved out again.
   *
   * @returns false when it has gone, or may not be moved
   */
  async add(of: ProcessIdentity): Promise<boolean> {
    if (!(await moved(of.pid, this.directory))) return false;
    if (isAlive(of) !== 'alive') {
      await moved(of.pid, dirname(this.directory));
      return false;
    }
    for (const pid of childrenOf(of.pid)) {
      const child = readIdentity(pid);
      if (typeof child !== 'string') await this.add(child);
    }
    return true;
  }

  /** Ends all members by SIGKILL and removes the group. @returns false when some are left after `supervise.killVerifyMs` */
  end(): Promise<boolean> {
    return endControlGroup(this.directory);
  }
}

/**
 * Ends the processes in a control group of `ControlGroup.make`, also of a dead process. Any other directory is left alone.
 *
 * @returns true when the group has gone
 */
export async function endControlGroup(directory: string): Promise<boolean> {
  if (!ownName.test(basename(directory)) || !existsSync(join(directory, 'cgroup.kill'))) return true;
  const deadline = monotonicMs() + defaults.supervise.killVerifyMs;
  for (;;) {
    try {
      writeFileSync(join(directory, 'cgroup.kill'), '1');
      removeWithParts(directory);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
      // A member has not ended yet.
      if (monotonicMs() > deadline) return false;
    }
    await sleep(10);
  }
}

/** A member may have made groups of its own in it. Their files go with them. @throws while one of them has a member */
function removeWithParts(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) removeWithParts(join(directory, entry.name));
  }
  rmdirSync(directory);
}

async function moved(pid: number, directory: string): Promise<boolean> {
  try {
    await writeFile(join(directory, 'cgroup.procs'), `${pid}`);
    return true;
  } catch {
    return false;
  }
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    // The process has ended, or the kernel does not list children.
    return [];
  }
}

/** Directory of the control group of this process. */
function ownDirectory(): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const path = /^0::(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
    const mount = /^(?:\S+ ){3}(\S+) (\S+) .* - cgroup2 /m.exec(readFileSync('/proc/self/mountinfo', 'utf8'));
    const [, root = '', at = ''] = mount ?? [];
    // Outside of the mount, a path begins with `/..`, or not with its root.
    if (path === undefined || mount === null || path.includes('..')) return undefined;
    if (root === '/') return join(at, path);
    return path === root || path.startsWith(`${root}/`) ? join(at, path.slice(root.length)) : undefined;
  } catch {
    // No /proc here.
    return undefined;
  }
}
