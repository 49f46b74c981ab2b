import { closeSync, constants, existsSync, openSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessIdentity } from '../../../protocol/index.ts';
import { defaults } from '../../../protocol/index.ts';
import {
  isAlive,
  isProvenOurs,
  killMarked,
  markerVariable,
  ownIdentity,
  RunningProgram,
  readIdentity,
} from '../../../supervise/index.ts';
import { sandboxScript } from './sandbox-script.ts';

/** Absolute paths of the programs that create and enter a sandbox. */
export interface SandboxPrograms {
  readonly bubblewrap: string;
  readonly nsenter: string;
  readonly setpriv: string;
}

/** Files of a sandbox that outlives its server. */
export interface SandboxFiles {
  /** Named pipe: the sandbox stays open while a process has the pipe open. */
  readonly line: string;
  /** File that is created when the sandbox has ended. */
  readonly end: string;
}

/** First process of a sandbox, with the facts that a command needs to enter the sandbox. */
interface Inside {
  readonly identity: ProcessIdentity;
  readonly hasNetwork: boolean;
}

const pollMs = 2;
const { O_RDWR, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants;

/** A sandbox that stays: commands that enter it share `/tmp`, processes and the loopback network. */
export class Sandbox {
  /** Commands that are in it. */
  users = 0;
  /** Descriptor for the keepers of its commands. Absent: the sandbox ends with this process. */
  readonly line: number | undefined;
  readonly inside: Inside;
  readonly #marker: string;
  /** Absent: an earlier server created the sandbox. */
  readonly #holder: RunningProgram | undefined;
  readonly #files: SandboxFiles | undefined;
  #isLineOpen: boolean;
  #isReleased = false;

  private constructor(inside: Inside, marker: string, files?: SandboxFiles, holder?: RunningProgram) {
    this.inside = inside;
    this.#marker = marker;
    this.#holder = holder;
    this.#files = files;
    this.line = files && openLine(files);
    this.#isLineOpen = this.line !== undefined;
  }

  /**
   * Creates a sandbox. Without `files`, the sandbox ends with this process.
   *
   * @param mounts arguments for bubblewrap
   * @param marker variable that identifies the remaining processes of the sandbox
   * @throws Error with the words of bubblewrap
   */
  static async open(
    { bubblewrap }: SandboxPrograms,
    mounts: readonly string[],
    marker: string,
    files?: SandboxFiles,
  ): Promise<Sandbox> {
    const { promise: isReady, resolve: ready } = Promise.withResolvers<void>();
    let [info, errors] = ['', ''];
    // The namespaces are complete once the command inside runs, not when their numbers are printed.
    const last = ['--unshare-user', '--info-fd', '1', '--', '/bin/sh', '-c', 'echo ready >&2; exec sleep infinity'];
    const words = [bubblewrap, ...mounts, ...last];
    const [program = '', ...args] = files
      ? ['/bin/sh', '-c', sandboxScript, 'oratorio-room', files.line, files.end, ...words]
      : words;
    const holder = new RunningProgram({
      ...{ program, args, seesOurEnd: files !== undefined },
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
    const timer = setTimeout(() => holder.stop(), defaults.agent.sandboxStartMs);
    const hasEnded = holder.ended.then(() => true);
    const isOver = await Promise.race([hasEnded, isReady.then(() => false)]);
    clearTimeout(timer);
    const pid = Number(/"child-pid": (\d+)/.exec(info)?.[1]);
    const identity = isOver || !pid ? 'gone' : readIdentity(pid);
    if (typeof identity === 'string') {
      holder.stop();
      for (const file of Object.values(files ?? {})) rmSync(file, { force: true });
      throw new Error(
        errors
          .replace(/^ready$/m, '')
          .trim()
          .slice(0, 300) || 'bubblewrap ended',
      );
    }
    return new Sandbox({ identity, hasNetwork: !mounts.includes('--unshare-net') }, marker, files, holder);
  }

  /** Finds a sandbox that an earlier server created. @returns undefined if the sandbox has ended */
  static find(
    {
      pid,
      startedTicks,
      hasNetwork,
    }: { readonly pid: number; readonly startedTicks: string; readonly hasNetwork: boolean },
    marker: string,
    files: SandboxFiles,
  ): Sandbox | undefined {
    const { bootId, pidNamespace } = ownIdentity();
    const identity = { pid, startedTicks, bootId, pidNamespace };
    return isProvenOurs(identity, marker) ? new Sandbox({ identity, hasNetwork }, marker, files) : undefined;
  }

  /** False when its processes have ended, or it was released. A process that is ending has no namespaces that a command could enter. */
  get isOpen(): boolean {
    const { identity } = this.inside;
    if (this.#isReleased) return false;
    return isAlive(identity) === 'alive' && existsSync(`/proc/${identity.pid}/ns/mnt`);
  }

  /** Whether no command has left a process in it. False where the kernel does not list children. */
  get isEmpty(): boolean {
    try {
      const { pid } = this.inside.identity;
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
      // Orphans in the sandbox become children of its first process, which always has one child of its own.
      return /^\d+$/.test(children) && this.isOpen;
    } catch {
      return false;
    }
  }

  /** Arguments before a command that run it in the sandbox without privileges, starting in the root directory of the sandbox. */
  words({ nsenter, setpriv }: SandboxPrograms): readonly string[] {
    const { identity, hasNetwork } = this.inside;
    return [
      ...[nsenter, '-t', String(identity.pid), '-U', '-m', '-p', '-i', ...(hasNetwork ? [] : ['-n'])],
      ...['--preserve-credentials', setpriv, '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all'],
    ];
  }

  /**
   * Ends the sandbox with all its processes. Kills the inner process first, so that the outer process reaps it and exits. Otherwise the
   * system's first process would inherit it; if that is this server, nothing would reap it. Does not end a released sandbox.
   */
  async close(): Promise<void> {
    if (this.#isReleased) return;
    if (this.isOpen) process.kill(this.inside.identity.pid, 'SIGKILL');
    if (this.#holder) {
      const { ended } = this.#holder;
      const timer = setTimeout(() => this.#holder?.stop(), defaults.agent.sandboxStartMs);
      await ended;
      clearTimeout(timer);
    } else {
      const late = performance.now() + defaults.agent.sandboxStartMs;
      while (isAlive(this.inside.identity) === 'alive' && performance.now() < late) await sleep(pollMs);
      await killMarked(this.#marker);
    }
    this.#closeLine();
    for (const file of Object.values(this.#files ?? {})) rmSync(file, { force: true });
  }

  /** Leaves the sandbox to the keepers of its commands. */
  release(): void {
    this.#isReleased = true;
    this.#holder?.release();
    this.#closeLine();
  }

  #closeLine(): void {
    if (this.line !== undefined && this.#isLineOpen) closeSync(this.line);
    this.#isLineOpen = false;
  }
}

/** Keeps a sandbox open. Undefined: the sandbox is ending. */
function openLine({ line }: SandboxFiles): number | undefined {
  try {
    return openSync(line, O_RDWR | O_NONBLOCK | O_NOFOLLOW);
  } catch {
    return undefined;
  }
}
