/**
 * Packages of Debian for tests: installed, or only unpacked into a cache outside of the repository. apt verifies each against
 * the keys that the machine trusts, and is given directories of its own, so that the system's state stays as it is.
 */
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { acquireLock, type Lock } from '../../src/supervise/index.ts';
import { run } from './run.ts';

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
const defaultMirror = 'http://deb.debian.org/debian';
const aptMs = 300_000;
const lockPollMs = 200;

/** Installs a package with what it needs, as root, unless `program` is there. @returns `program` */
export async function installPackage(name: string, program: string): Promise<string> {
  if (process.getuid?.() !== 0) throw new Error('it is not installed, and only root can install it');
  return withLock(async () => {
    if (existsSync(program)) return program;
    console.error(`Installing for the tests: ${name} …`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const wait = ['-o', `DPkg::Lock::Timeout=${aptMs / 1000}`];
    await must('apt-get', [...wait, '-qq', 'update'], { env });
    await must('apt-get', [...wait, '-y', '-qq', '--no-install-recommends', 'install', name], { env });
    return program;
  });
}

/**
 * The file `member` of a package of `suite`, from the cache, or downloaded and unpacked there first. What is in the cache is
 * complete, as it comes there by one rename.
 */
export async function cachedPackage(suite: string, name: string, member: string): Promise<string> {
  const directory = join(cacheDirectory(), `${suite}-${name}`);
  const path = join(directory, member);
  if (existsSync(path)) return path;
  return withLock(async () => {
    if (!existsSync(path)) await unpackPackage(suite, name, directory);
    if (!existsSync(path)) throw new Error(`the package ${name} of ${suite} has no ${member}`);
    return path;
  });
}

async function unpackPackage(suite: string, name: string, directory: string): Promise<void> {
  console.error(`Downloading for the tests: ${name} of Debian ${suite} …`);
  if (!existsSync(keyring))
    throw new Error('there is no debian-archive-keyring, with whose keys packages are verified');
  const work = mkdtempSync(join(cacheDirectory(), '.new-'));
  try {
    const apt = await privateApt(work, suite);
    await must('apt-get', [...apt, '-qq', 'update']);
    await must('apt-get', [...apt, '-qq', 'download', name], { cwd: work });
    const archive = readdirSync(work).find((file) => file.endsWith('.deb'));
    if (archive === undefined) throw new Error(`apt-get brought no package ${name} of ${suite}`);
    await must('dpkg-deb', ['-x', join(work, archive), join(work, 'root')]);
    rmSync(directory, { recursive: true, force: true });
    renameSync(join(work, 'root'), directory);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Options with which apt knows nothing but `suite`, and keeps everything below `directory`. */
async function privateApt(directory: string, suite: string): Promise<string[]> {
  for (const path of ['state/lists/partial', 'cache/archives/partial', 'etc'])
    mkdirSync(join(directory, path), { recursive: true });
  const sources = join(directory, 'etc/sources.list');
  writeFileSync(sources, `deb [signed-by=${keyring}] ${await debianMirror()} ${suite} main\n`);
  const options = {
    'Dir::State': join(directory, 'state'),
    'Dir::State::status': '/dev/null',
    'Dir::Cache': join(directory, 'cache'),
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '-',
    'Acquire::Languages': 'none',
    // The directory is for this user alone, so the user that apt would change to cannot write there.
    'APT::Sandbox::User': process.getuid?.() === 0 ? 'root' : '',
  };
  return Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

/** The mirror that this machine uses, as the sources of apt name it. */
async function debianMirror(): Promise<string> {
  const format = ['--format', '$(REPO_URI) $(COMPONENT)', 'Identifier: Packages'];
  const { stdout } = await run('apt-get', ['indextargets', ...format], { timeoutMs: aptMs });
  return /^(\S+\/debian)\/? main$/m.exec(stdout)?.[1] ?? defaultMirror;
}

/**
 * Directory in which the tests store downloads for later runs; no other user can have written to it. `npm test` gives each run
 * a temporary directory of its own and names the system's in `ORATORIO_TEST_CACHE`.
 */
export function cacheDirectory(): string {
  const base = process.env['XDG_CACHE_HOME'];
  const uid = process.getuid?.() ?? 0;
  const temporary = process.env['ORATORIO_TEST_CACHE'] ?? tmpdir();
  const directory = base ? join(base, 'oratorio-test-tools') : join(temporary, `oratorio-test-tools-${uid}`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { uid: owner, mode } = lstatSync(directory);
  if (owner === uid && (mode & 0o022) === 0) return directory;
  throw new Error(`${directory} is not a directory of this user alone`);
}

/** Test files run side by side: the first gets what all of them wait for. */
async function withLock<T>(action: () => Promise<T>): Promise<T> {
  const lock = await takeLock(join(cacheDirectory(), 'lock'));
  try {
    return await action();
  } finally {
    lock.release();
  }
}

async function takeLock(file: string): Promise<Lock> {
  for (;;) {
    const lock = acquireLock(file);
    if (lock !== 'held') return lock;
    await delay(lockPollMs);
  }
}

async function must(
  program: string,
  args: readonly string[],
  settings: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<void> {
  const { exitCode, stderr } = await run(program, args, { ...settings, timeoutMs: aptMs });
  if (exitCode !== 0) throw new Error(`${program} ${args.at(-1)} failed: ${stderr.trim()}`);
}
