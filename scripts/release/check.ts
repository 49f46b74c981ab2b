/** `npm run release -- --check`: installs and uses every file of a release that this machine can run. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CleanUser } from './clean-user.ts';
import { type Use, useDebianPackage, useInstaller } from './installed-uses.ts';
import { ownPlatform } from './platforms.ts';

const isThere = (program: string): boolean =>
  spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;

/** @throws Error with the output of the first use that fails or leaves files behind */
export async function checkRelease(out: string, version: string): Promise<void> {
  const platform = ownPlatform();
  if (!platform) throw new Error(`The release has no tarball for ${process.platform}-${process.arch}`);
  await checkUse('install.sh', (user) => useInstaller(user, out));
  const deb = join(out, `oratorio_${version}_${platform.debian}.deb`);
  if (existsSync(deb) && isThere('dpkg')) await checkUse('the Debian package', (user) => useDebianPackage(user, deb));
  else console.error('Not tried: the Debian package, which needs dpkg');
  if (!isThere('ruby')) console.error('Not checked: the syntax of oratorio.rb, which needs ruby');
  else if (spawnSync('ruby', ['-c', join(out, 'oratorio.rb')], { stdio: 'inherit' }).status !== 0)
    throw new Error('oratorio.rb is not valid Ruby');
}

async function checkUse(name: string, use: (user: CleanUser) => Promise<Use>): Promise<void> {
  const user = new CleanUser();
  try {
    const { ran, left } = await use(user);
    if (ran.code !== 0) throw new Error(`${name} failed:\n${ran.text}`);
    if (left.length > 0) throw new Error(`${name} left behind: ${left.join(', ')}`);
    console.error(`Installed, used and removed without network and Node: ${name}`);
  } finally {
    user.remove();
  }
}
