/** The root file system that the images of a run begin with: no registry is asked, Debian's archive is. */
import { existsSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from '../deploy/debian.ts';
import { must } from './must.ts';

const suite = 'bookworm';
/** Packages of an image of Node, and those that the product adds where it can reach Debian. */
const packages = ['ca-certificates', 'git', 'tini'];

/** Path of a tar; made the first time, then kept with the other tools of the tests. */
export async function baseArchive(): Promise<string> {
  const cache = cacheDirectory();
  const path = join(cache, `stack-${suite}-${packages.join('-')}.tar`);
  if (existsSync(path) && statSync(path).size > 0) return path;
  console.error(`Making a base image of Debian ${suite} (once) …`);
  const work = mkdtempSync(join(cache, '.base-'));
  try {
    const tree = join(work, 'root');
    await must('debootstrap', ['--variant=minbase', `--include=${packages.join(',')}`, suite, tree, await mirror()], {
      timeoutMs: 900_000,
    });
    const left = ['./var/cache/apt/archives/*', './var/lib/apt/lists/*', './dev/*', './proc/*', './sys/*'];
    const words = [...left.map((each) => `--exclude=${each}`), '-C', tree, '-cf', join(work, 'base.tar'), '.'];
    await must('tar', words, { timeoutMs: 300_000 });
    renameSync(join(work, 'base.tar'), path);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return path;
}

/** The one that this machine uses. */
async function mirror(): Promise<string> {
  const format = ['indextargets', '--format', '$(REPO_URI) $(COMPONENT)', 'Identifier: Packages'];
  const sources = await must('apt-get', format, { timeoutMs: 60_000 });
  return /^(\S+\/debian)\/? main$/m.exec(sources)?.[1] ?? 'http://deb.debian.org/debian';
}
