/** Installs a tarball as a user would (`npm install -g`, in a prefix and a home of its own), and starts everything with it. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installedLimitBytes, sizeOf } from './size.ts';

/** @throws Error when a step fails or the installation is too large */
export function checkInstallation(tarball: string): void {
  const place = mkdtempSync(join(tmpdir(), 'oratorio-install-'));
  const prefix = join(place, 'prefix');
  const site = join(place, 'site');
  mkdirSync(site);
  // The registry and its credentials are those of the user's npm.
  const setting = (name: string): string => execFileSync('npm', ['config', 'get', name], { encoding: 'utf8' }).trim();
  const npm = { npm_config_userconfig: setting('userconfig'), npm_config_cache: setting('cache') };
  const { ORATORIO_HOME: _, XDG_CACHE_HOME: __, ...outer } = process.env;
  const env = { ...outer, ...npm, PATH: `${join(prefix, 'bin')}:${outer['PATH']}`, HOME: place, TMPDIR: place };
  const run = (program: string, args: readonly string[]) =>
    execFileSync(program, args, { cwd: site, env, stdio: ['ignore', 'inherit', 'inherit'] });
  try {
    run('npm', ['install', '--global', '--prefix', prefix, '--prefer-offline', '--no-audit', '--no-fund', tarball]);
    const bytes = sizeOf(prefix);
    console.error(`Installed: ${(bytes / 1e6).toFixed(1)} MB of at most ${installedLimitBytes / 1e6} MB`);
    if (bytes > installedLimitBytes) throw new Error('the installation is too large');
    run('oratorio', ['up', '--init', '--no-follow']);
    run('oratorio', ['chat', 'hello']);
  } finally {
    const installed = join(prefix, 'bin', 'oratorio');
    if (existsSync(installed)) execFileSync(installed, ['hub', 'stop'], { env, stdio: 'inherit' });
    rmSync(place, { recursive: true, force: true });
  }
}
