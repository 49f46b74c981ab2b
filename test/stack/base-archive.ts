/** The root file system that the images of a run begin with: no registry is asked, Debian's archive is. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { aptGetOf } from '../deploy/debian-suite.ts';
import { must } from '../deploy/must.ts';
import { cacheDirectory, withLock } from '../deploy/tool-cache.ts';

const suite = 'bookworm';
/** Packages that the product adds where it can reach Debian. */
const added = ['ca-certificates', 'git', 'tini'];
/** Packages of every image of Debian. The last is the smaller of two that apt may choose. */
const required = ['?priority(required)', 'apt', 'usr-is-merged'];
const unpackMs = 300_000;

/** Path of a tar; made the first time, then kept with the other tools of the tests. */
export async function baseArchive(): Promise<string> {
  const cache = cacheDirectory();
  const path = join(cache, `stack-${suite}-slim-${added.join('-')}.tar`);
  if (existsSync(path) && statSync(path).size > 0) return path;
  console.error(`Making a base image of Debian ${suite} (once) …`);
  const work = mkdtempSync(join(cache, '.base-'));
  try {
    const [packages, tree, archive] = [join(work, 'packages'), join(work, 'root'), join(work, 'base.tar')];
    for (const directory of [join(packages, 'partial'), tree]) mkdirSync(directory, { recursive: true });
    await withLock(`lock-${suite}`, async () => {
      const words = ['-y', '--download-only', '--no-install-recommends', '-o', `Dir::Cache::archives=${packages}`];
      await (await aptGetOf(suite))([...words, 'install', ...required, ...added]);
    });
    const files = readdirSync(packages).filter((name) => name.endsWith('.deb'));
    const program = [
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      join(import.meta.dirname, 'debian-root.ts'),
    ];
    const words = [...program, tree, archive, ...files.sort().map((name) => join(packages, name))];
    await must('unshare', [...ownMounts, ...words], { timeoutMs: unpackMs });
    renameSync(archive, path);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return path;
}

/** For `unshare`: mounts and processes end with the first process in there. */
const ownMounts = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
