/** Installs a tarball as a user would (`npm install -g`, in a prefix and a home of its own), and starts everything with it. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installedLimitBytes, sizeOf } from './size.ts';

/** @throws Error when a step fails or the installation is too large */
export function checkInstallation(tarball: string): void {
  const place = mkdtempSync(join(tmpdir(), 'oratorio-install-'));
  const prefix = join(place, 'prefix');
  const site = join(place, 'site');
  mkdirSync(site);
  const env = { PATH: `${join(prefix, 'bin')}:${process.env['PATH']}`, HOME: place, TMPDIR: place };
  const run = (program: string, args: readonly string[]) =>
    execFileSync(program, args, { cwd: site, env, stdio: ['ignore', 'inherit', 'inherit'] });
  try {
    // The packages come from npm's cache where it has them.
    const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim();
    run('npm', [
      'install',
      '--global',
      '--prefix',
      prefix,
      '--cache',
      cache,
      '--prefer-offline',
      '--no-audit',
      tarball,
    ]);
    const bytes = sizeOf(prefix);
    console.error(`Installed: ${(bytes / 1e6).toFixed(1)} MB of at most ${installedLimitBytes / 1e6} MB`);
    if (bytes > installedLimitBytes) throw new Error('the installation is too large');
    run('oratorio', ['up', '--init', '--no-follow']);
    run('oratorio', ['chat', 'hello']);
  } finally {
    execFileSync('oratorio', ['hub', 'stop'], { env, stdio: 'inherit' });
    rmSync(place, { recursive: true, force: true });
  }
}
