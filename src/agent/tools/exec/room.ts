import { existsSync, readFileSync } from 'node:fs';
import type { ProcessIdentity } from '../../../protocol/index.ts';
import { defaults } from '../../../protocol/index.ts';
import { isAlive, markerVariable, RunningProgram, readIdentity } from '../../../supervise/index.ts';

/** Programs that make a room and enter it. Absolute paths. */
export interface RoomPrograms {
  readonly bubblewrap: string;
  readonly nsenter: string;
  readonly setpriv: string;
}

/** A sandbox that stays: commands that enter it share `/tmp`, processes and the loopback network. */
export class Room {
  /** Commands that are in it. */
  users = 0;
  readonly #programs: RoomPrograms;
  readonly #holder: RunningProgram;
  readonly #inside: ProcessIdentity;
  readonly #hasNetwork: boolean;

  private constructor(programs: RoomPrograms, holder: RunningProgram, inside: ProcessIdentity, hasNetwork: boolean) {
    this.#programs = programs;
    this.#holder = holder;
    this.#inside = inside;
    this.#hasNetwork = hasNetwork;
  }

  /**
   * Makes a room. It ends with this process.
   *
   * @param walls words for bubblewrap
   * @param marker finds the remaining processes of the room
   * @throws Error with the words of bubblewrap
   */
  static async open(programs: RoomPrograms, walls: readonly string[], marker: string): Promise<Room> {
    const { promise: isReady, resolve: ready } = Promise.withResolvers<void>();
    let [info, errors] = ['', ''];
    const holder = new RunningProgram({
      program: programs.bubblewrap,
      // Namespaces are complete when the command inside runs, not when their numbers are printed.
      args: [
        ...walls,
        '--unshare-user',
        '--info-fd',
        '1',
        '--',
        '/bin/sh',
        '-c',
        'echo ready >&2; exec sleep infinity',
      ],
      env: { PATH: '/usr/bin:/bin', [markerVariable]: marker },
      stdout: (chunk) => {
        info += chunk.toString();
      },
      stderr: (chunk) => {
        errors += chunk.toString();
        if (/^ready$/m.test(errors)) ready();
      },
      lingerMs: 0,
    });
    const timer = setTimeout(() => holder.stop(), defaults.agent.roomStartMs);
    const hasEnded = holder.ended.then(() => true);
    const isOver = await Promise.race([hasEnded, isReady.then(() => false)]);
    clearTimeout(timer);
    const pid = Number(/"child-pid": (\d+)/.exec(info)?.[1]);
    const inside = isOver || !pid ? 'gone' : readIdentity(pid);
    if (typeof inside === 'string') {
      holder.stop();
      throw new Error(
        errors
          .replace(/^ready$/m, '')
          .trim()
          .slice(0, 300) || 'bubblewrap ended',
      );
    }
    return new Room(programs, holder, inside, !walls.includes('--unshare-net'));
  }

  /** False when its processes have ended. A process that is ending has no namespaces that a command could enter. */
  get isOpen(): boolean {
    return isAlive(this.#inside) === 'alive' && existsSync(`/proc/${this.#inside.pid}/ns/mnt`);
  }

  /** Whether no command has left a process in it. False where the kernel does not list children. */
  get isEmpty(): boolean {
    try {
      const { pid } = this.#inside;
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
      // Orphans in the room become children of its first process, which has one of its own.
      return /^\d+$/.test(children) && this.isOpen;
    } catch {
      return false;
    }
  }

  /** Words to put before a command so that it runs in the room, without privileges. It begins in the root directory of the room. */
  get words(): readonly string[] {
    const { nsenter, setpriv } = this.#programs;
    return [
      ...[nsenter, '-t', String(this.#inside.pid), '-U', '-m', '-p', '-i', ...(this.#hasNetwork ? [] : ['-n'])],
      ...['--preserve-credentials', setpriv, '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all'],
    ];
  }

  /**
   * Ends the room with all its processes, the inner one first: the outer one collects it, and exits. In the other order the inner one would
   * be left to the first process of the system, which collects nothing where this server is that process.
   */
  async close(): Promise<void> {
    if (this.isOpen) process.kill(this.#inside.pid, 'SIGKILL');
    const timer = setTimeout(() => this.#holder.stop(), defaults.agent.roomStartMs);
    await this.#holder.ended;
    clearTimeout(timer);
  }
}
