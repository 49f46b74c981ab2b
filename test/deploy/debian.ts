/** Packages of Debian for tests: installed, or only unpacked into a cache outside of the repository. */
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { aptGetOf, type Suite } from './debian-suite.ts';
import { must } from './must.ts';
import { cacheDirectory, withLock } from './tool-cache.ts';

const installMs = 300_000;

/** Installs the packages whose program is missing, with their dependencies. By package: the path of its program. */
export async function installPackages(programs: ReadonlyMap<string, string>): Promise<void> {
  const isComplete = () => [...programs.values()].every((program) => existsSync(program));
  if (isComplete()) return;
  if (process.getuid?.() !== 0) throw new Error('it is not installed, and only root can install it');
  await withLock('lock', async () => {
    if (isComplete()) return;
    const missing = [...programs].filter(([, program]) => !existsSync(program)).map(([name]) => name);
    console.error(`Installing for the tests: ${missing.join(', ')} …`);
    const settings = { timeoutMs: installMs, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
    const words = ['-o', `DPkg::Lock::Timeout=${installMs / 1000}`, '-qq'];
    await must('apt-get', [...words, 'update'], settings);
    await must('apt-get', [...words, '-y', '--no-install-recommends', '--no-remove', 'install', ...missing], settings);
  });
}

/** Packages by suite that come together: apt reads an index as long as it unpacks a package. */
const together: Readonly<Record<Suite, readonly string[]>> = { bookworm: ['caddy'], sid: ['caddy', 'docker-compose'] };

/**
 * The file `member` of a package of `suite`, from the cache, or downloaded and unpacked there first. A file in the cache is
 * complete, as it comes there by one rename.
 */
export async function cachedPackage(suite: Suite, name: string, member: string): Promise<string> {
  const path = join(packageDirectory(suite, name), member);
  if (existsSync(path)) return path;
  return withLock(`lock-${suite}`, async () => {
    const others = together[suite].filter((each) => !existsSync(packageDirectory(suite, each)));
    if (!existsSync(path)) await unpackPackages(suite, new Set([name, ...others]));
    if (!existsSync(path)) throw new Error(`the package ${name} of ${suite} has no ${member}`);
    return path;
  });
}

const packageDirectory = (suite: Suite, name: string): string => join(cacheDirectory(), `${suite}-${name}`);

async function unpackPackages(suite: Suite, names: ReadonlySet<string>): Promise<void> {
  console.error(`Downloading for the tests: ${[...names].join(', ')} of Debian ${suite} …`);
  const work = mkdtempSync(join(cacheDirectory(), '.new-'));
  try {
    const aptGet = await aptGetOf(suite);
    await aptGet(['download', ...names], work);
    const archives = readdirSync(work);
    for (const name of names) {
      const archive = archives.find((file) => file.startsWith(`${name}_`));
      if (archive === undefined) throw new Error(`apt-get brought no package ${name} of ${suite}`);
      await must('dpkg-deb', ['-x', join(work, archive), join(work, name)], { timeoutMs: installMs });
      rmSync(packageDirectory(suite, name), { recursive: true, force: true });
      renameSync(join(work, name), packageDirectory(suite, name));
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
