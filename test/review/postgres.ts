/**
 * A real PostgreSQL for tests and benchmarks: a cluster of its own in a temporary directory, reached by a Unix socket only, run by
 * an unprivileged user when we are root, which PostgreSQL refuses. It ends, and takes its directory with it, when it is stopped
 * or when this process is gone, however that came.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, chmodSync, chownSync, constants, existsSync, globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';

export interface Postgres {
  /** Makes an empty database. @returns its connection string */
  database(): Promise<string>;
  /** Of the database that every cluster has, for looking at the server itself. */
  readonly adminUrl: string;
  /** `immediate`: as if it had crashed. */
  restart(how: 'fast' | 'immediate'): Promise<void>;
  /** Ends it without a new start; `start` goes on with the same data. */
  halt(how: 'fast' | 'immediate'): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface PostgresOptions {
  /** Whether what is committed survives a power cut. Tests need not wait for the disk. */
  readonly isDurable?: boolean;
}

/** Starts one. @throws Error that says what to install */
export async function startPostgres({ isDurable = false }: PostgresOptions = {}): Promise<Postgres> {
  const binaries = findPostgres();
  const user = unprivileged();
  // Short: the path of a Unix socket has about a hundred characters at most.
  const directory = mkdtempSync(join(tmpdir(), 'pg-'));
  if (user) chownSync(directory, user.uid, user.gid);
  chmodSync(directory, 0o700);
  const remove = () => rmSync(directory, { recursive: true, force: true });
  // Also when it ends while the server is down.
  process.on('exit', remove);
  const cluster = new Cluster({ binaries, directory, user, isDurable });
  try {
    initialise(binaries, directory, user);
    await cluster.start();
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

interface ClusterOptions {
  readonly binaries: string;
  readonly directory: string;
  readonly user: User | undefined;
  readonly isDurable: boolean;
}

const role = 'oratorio';

class Cluster implements Postgres {
  readonly #options: ClusterOptions;
  #process: ChildProcess | undefined;
  #databases = 0;

  constructor(options: ClusterOptions) {
    this.#options = options;
  }

  get adminUrl(): string {
    return this.#url('postgres');
  }

  async database(): Promise<string> {
    this.#databases += 1;
    const name = `test${this.#databases}`;
    const client = new pg.Client(this.adminUrl);
    await client.connect();
    // No checkpoint, as the default strategy makes.
    await client.query(`CREATE DATABASE ${name} STRATEGY wal_log`);
    await client.end();
    return this.#url(name);
  }

  async restart(how: 'fast' | 'immediate'): Promise<void> {
    await this.halt(how);
    await this.start();
  }

  async start(): Promise<void> {
    const { binaries, directory, user, isDurable } = this.#options;
    const settings = {
      unix_socket_directories: directory,
      listen_addresses: '',
      max_connections: '200',
      shared_buffers: '64MB',
      log_min_messages: 'panic',
      ...(!isDurable && { fsync: 'off', full_page_writes: 'off' }),
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    // The shell outlives us by a moment: its input ends when we do, and then it ends the server.
    const script =
      'data=$1; shift; "$@" </dev/null & server=$!; read -r how; kill -"${how:-QUIT}" $server; wait $server; [ -n "$how" ] || rm -rf "$data"';
    const child = spawn(
      'sh',
      ['-c', script, 'sh', directory, join(binaries, 'postgres'), '-D', join(directory, 'data'), ...options],
      {
        stdio: ['pipe', 'ignore', 'inherit'],
        // In a group of its own: whoever kills ours does not kill the one who tidies up.
        detached: true,
        ...user,
        cwd: directory,
      },
    );
    this.#process = child;
    await this.#answers(child);
  }

  async halt(how: 'fast' | 'immediate'): Promise<void> {
    const child = this.#process;
    if (!child?.stdin || child.exitCode !== null) return;
    const gone = once(child, 'exit');
    child.stdin.end(how === 'fast' ? 'INT\n' : 'QUIT\n');
    await gone;
    this.#process = undefined;
  }

  async stop(): Promise<void> {
    await this.halt('immediate');
    rmSync(this.#options.directory, { recursive: true, force: true });
  }

  async #answers(child: ChildProcess): Promise<void> {
    for (const deadline = performance.now() + 60_000; ; ) {
      if (performance.now() > deadline) throw new Error('PostgreSQL was not ready within a minute');
      if (child.exitCode !== null) throw new Error(`PostgreSQL ended with ${child.exitCode} before it was ready`);
      const client = new pg.Client(this.adminUrl);
      try {
        await client.connect();
        return;
      } catch {
        await pause(20);
      } finally {
        await client.end();
      }
    }
  }

  #url(database: string): string {
    return `postgresql://${role}@${encodeURIComponent(this.#options.directory)}/${database}`;
  }
}

function initialise(binaries: string, directory: string, user: User | undefined): void {
  const locale = process.platform === 'darwin' ? 'en_US.UTF-8' : 'C.UTF-8';
  const args = [
    `--pgdata=${join(directory, 'data')}`,
    `--username=${role}`,
    `--locale=${locale}`,
    ...['--auth=trust', '--encoding=UTF8', '--no-sync'],
  ];
  const { status, stderr } = spawnSync(join(binaries, 'initdb'), args, { ...user, cwd: directory, encoding: 'utf8' });
  if (status !== 0) throw new Error(`initdb failed: ${stderr}`);
}

/** Directory of `postgres` and `initdb`. */
function findPostgres(): string {
  const onPath = (process.env['PATH'] ?? '').split(delimiter).map((directory) => join(directory, 'postgres'));
  const debian = globSync('/usr/lib/postgresql/*/bin/postgres').sort().reverse();
  const found = [...onPath, ...debian].find((path) => isExecutable(path) && existsSync(join(dirname(path), 'initdb')));
  if (found) return dirname(found);
  throw new Error('These tests need a PostgreSQL and found none. Install it: "apt-get install postgresql"');
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Who runs the server; undefined: we do ourselves. */
function unprivileged(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((which) => spawnSync('id', [which, name], { encoding: 'utf8' }).stdout.trim());
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error('PostgreSQL does not run as root, and there is neither a user "postgres" nor "nobody" to run it');
}
