/**
 * A real PostgreSQL for tests and benchmarks: a cluster of its own in a temporary directory, reached by a Unix socket only, run by
 * an unprivileged user when we are root, which PostgreSQL refuses. It ends, and takes its directory with it, when it is stopped
 * or when this process is gone, however that came.
 */
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { findPostgres, type User } from './postgres-binaries.ts';

export interface Postgres {
  /** Makes an empty database. @returns its connection string */
  database(): Promise<string>;
  /** Address of the database that every cluster has, for inspecting the server. */
  readonly adminUrl: string;
  /** `immediate`: as if it had crashed. */
  restart(how: 'fast' | 'immediate'): Promise<void>;
  /** Ends it without a restart; `start` starts it again with the same data. */
  halt(how: 'fast' | 'immediate'): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Path of the socket that clients connect to. */
  readonly socket: string;
  /** Starts a standby that receives the changes of this server as a stream. */
  standby(): Promise<Postgres>;
}

export interface PostgresOptions {
  /** Whether a commit survives a power cut. Tests need not wait for the disk. */
  readonly isDurable?: boolean;
}

/** Starts one. @throws Error that says what to install */
export async function startPostgres({ isDurable = false }: PostgresOptions = {}): Promise<Postgres> {
  const user = unprivileged();
  const directory = privateDirectory(user);
  try {
    const cluster = new Cluster({ binaries: findPostgres(directory, user), directory, user, isDurable });
    await cluster.start();
    return cluster;
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}

function privateDirectory(user: User | undefined): string {
  // Short: the path of a Unix socket has about a hundred characters at most.
  const directory = mkdtempSync(join(tmpdir(), 'pg-'));
  if (user) chownSync(directory, user.uid, user.gid);
  chmodSync(directory, 0o700);
  return directory;
}

interface ClusterOptions {
  readonly binaries: string;
  readonly directory: string;
  readonly user: User | undefined;
  readonly isDurable: boolean;
}

const role = 'oratorio';
const locale = process.platform === 'darwin' ? 'en_US.UTF-8' : 'C.UTF-8';

/**
 * A new cluster, which the files of a test run copy: `initdb` costs twenty times as much. It goes with the directory of the run;
 * empty outside of one.
 */
const template = process.env['ORATORIO_TEST_RUN'] === undefined ? '' : join(tmpdir(), 'postgres-template');

/**
 * Creates the cluster if it is missing, runs the server, and prints when and how it ended. Its input is the signal that ends the
 * server, then `leave`; at the end of the input without `leave` it ends the server and removes the directory, because the tests
 * have ended.
 */
const guard = `
directory=$1 binaries=$2 role=$3 locale=$4 template=$5; shift 5
data=$directory/data
create() {
  "$binaries/initdb" --pgdata="$data" --username="$role" --locale="$locale" --auth=trust --encoding=UTF8 --no-sync || return
  # One server writes the template, under another name until it is whole.
  if [ -n "$template" ] && mkdir "$template-part" 2>/dev/null; then
    cp -Rp "$data" "$template-part/data" && mv "$template-part/data" "$template"
  fi
}
exec 3<&0
trap : TERM
(
  if [ ! -f "$data/PG_VERSION" ]; then
    if [ -d "$template" ]; then cp -Rp "$template" "$data"; else create; fi || exit
  fi
  exec "$binaries/postgres" -D "$data" "$@"
) </dev/null >/dev/null 3<&- & server=$!
(
  if read -r how <&3; then
    kill -"$how" $server
    read -r leave <&3 && exit
  fi
  kill -QUIT $server 2>/dev/null
  trap '' TERM
  kill -TERM 0
  for try in 1 2 3 4 5 6 7 8 9; do
    rm -rf "$directory" 2>/dev/null && exit
    sleep 0.2
  done
) >/dev/null & tidy=$!
wait $server
echo "ended with $?"
wait $tidy
while kill -0 $tidy 2>/dev/null; do wait $tidy; done
`;

interface Running {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  /** When the server has ended, and how. */
  readonly ended: Promise<string>;
}

class Cluster implements Postgres {
  readonly #options: ClusterOptions;
  #running: Running | undefined;
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

  get socket(): string {
    return join(this.#options.directory, '.s.PGSQL.5432');
  }

  async standby(): Promise<Postgres> {
    const { user, binaries, directory: primary, isDurable } = this.#options;
    const directory = privateDirectory(user);
    const copy = ['-h', primary, '-U', role, '-D', join(directory, 'data'), '-R', '-c', 'fast', '--no-sync'];
    const child = spawn(join(dirname(realpathSync(join(binaries, 'postgres'))), 'pg_basebackup'), copy, {
      stdio: ['ignore', 'ignore', 'inherit'],
      ...user,
      cwd: directory,
    });
    const [code] = await once(child, 'exit');
    if (code !== 0) throw new Error(`pg_basebackup ended with ${code}`);
    const cluster = new Cluster({ binaries, directory, user, isDurable });
    await cluster.start();
    return cluster;
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
    const child = spawn('sh', ['-c', guard, 'sh', directory, binaries, role, locale, template, ...options], {
      stdio: ['pipe', 'pipe', 'inherit'],
      // In its own process group: killing the group of the tests does not kill the guard, which cleans up.
      detached: true,
      ...user,
      cwd: directory,
    });
    child.stdin.on('error', () => {});
    const before = this.#running;
    const ended = once(createInterface({ input: child.stdout }), 'line').then(([line]) => String(line));
    this.#running = { child, ended };
    before?.child.stdin.end('leave\n');
    try {
      await this.#answers(ended);
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async halt(how: 'fast' | 'immediate'): Promise<void> {
    this.#running?.child.stdin.write(how === 'fast' ? 'INT\n' : 'QUIT\n');
    await this.#running?.ended;
  }

  async stop(): Promise<void> {
    const child = this.#running?.child;
    this.#running = undefined;
    if (child && child.exitCode === null) {
      const gone = once(child, 'exit');
      child.stdin.end();
      await gone;
    }
    rmSync(this.#options.directory, { recursive: true, force: true });
  }

  async #answers(ended: Promise<string>): Promise<void> {
    let end: string | undefined;
    void ended.then((line) => {
      end = line;
    });
    for (const deadline = performance.now() + 120_000; ; ) {
      if (performance.now() > deadline) throw new Error('PostgreSQL was not ready within two minutes');
      if (end !== undefined) throw new Error(`PostgreSQL ${end} before it was ready; why is said above`);
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

/** User that runs the server; undefined for the user of the tests. */
function unprivileged(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((which) => spawnSync('id', [which, name], { encoding: 'utf8' }).stdout.trim());
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error('PostgreSQL does not run as root, and there is neither a user "postgres" nor "nobody" to run it');
}
