/** Simulates a user with an empty home, without Node on PATH and without a network. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';

export interface Ran {
  readonly code: number | null;
  /** Standard output and standard error in order of arrival. */
  readonly text: string;
}

/** A running program. */
export interface Started {
  readonly ended: Promise<Ran>;
  readonly kill: () => void;
}

const isNode = /^(?:node|nodejs|npm|npx|corepack|yarn.*|pnpm.*|oratorio)$/;

export class CleanUser {
  readonly root: string;
  readonly home: string;
  readonly #tools: string;

  constructor() {
    this.root = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-user-')));
    this.home = join(this.root, 'home');
    this.#tools = join(this.root, 'tools');
    for (const name of ['home', 'tools', 'tmp']) mkdirSync(join(this.root, name));
    for (const directory of ['/usr/bin', '/bin', '/usr/sbin', '/sbin'].filter((path) => existsSync(path)))
      for (const name of readdirSync(directory))
        if (!isNode.test(name) && !existsSync(join(this.#tools, name)))
          symlinkSync(join(directory, name), join(this.#tools, name));
  }

  /** Environment of a new terminal after an installation. */
  get env(): Readonly<Record<string, string>> {
    const path = [join(this.home, '.local/bin'), this.#tools].join(':');
    return { HOME: this.home, PATH: path, TMPDIR: join(this.root, 'tmp'), LANG: 'C.UTF-8', SHELL: '/bin/sh' };
  }

  /** Runs a shell script. Its processes have a separate network if bubblewrap can create one. */
  run(script: string, env: Readonly<Record<string, string>> = {}): Promise<Ran> {
    const shell = ['/bin/sh', '-ec', script];
    const room = ['bwrap', '--dev-bind', '/', '/', '--unshare-net', '--'];
    return this.start(hasRooms() ? [...room, ...shell] : shell, env).ended;
  }

  /** Starts a program with the network of this machine. */
  start([program = '', ...args]: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
    const options = { cwd: this.home, env: { ...this.env, ...env } };
    const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, text }));
    return { ended, kill: () => child.kill('SIGKILL') };
  }

  /** Relative paths of files in the home that are not state of the user, sorted. */
  traces(): readonly string[] {
    return readdirSync(this.home, { withFileTypes: true, recursive: true })
      .map((entry) => relative(this.home, join(entry.parentPath, entry.name)))
      .filter((path) => !path.split('/').includes('.oratorio') && basename(path) !== 'site')
      .sort();
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
  }
}

let rooms: boolean | undefined;
const hasRooms = (): boolean => {
  rooms ??= spawnSync('bwrap', ['--dev-bind', '/', '/', '--unshare-net', '--', '/bin/true']).status === 0;
  return rooms;
};

/** Uses an installation like a new user: start, one turn of the demo model, `doctor`, stop. */
export const firstDay = `
if command -v node; then exit 3; fi
mkdir -p "$HOME/site" && cd "$HOME/site"
oratorio up --init --no-follow
oratorio chat hello
oratorio doctor
oratorio hub stop
`;
