/**
 * Plain JavaScript without dependencies, because it runs before anything is installed, on any Node >= 20.
 * It makes the checkout usable (dependencies present and matching the lock file) and finds the pinned Node 22 binary.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { replacesHost, withAddressedLock } from './lock-addresses.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Installs the packages of a directory's package-lock.json, unless that was done for this lock.
 *
 * @param {string} directory absolute
 * @param {(npm: string) => void} install throws when it fails
 */
export function installOnce(directory, install) {
  const stamp = join(directory, 'node_modules', '.oratorio-installed');
  const wanted = createHash('sha256')
    .update(readFileSync(join(directory, 'package-lock.json')))
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  install(process.platform === 'win32' ? 'npm.cmd' : 'npm');
  writeFileSync(stamp, wanted);
}

/**
 * Installs dependencies unless node_modules already matches package-lock.json. Not `npm ci`: it refuses a lock that does
 * not name the optional binaries of every platform, and no single machine can write such a lock from every registry.
 * Versions are exact in package.json, the rest comes from the lock, and `--no-save` leaves both alone.
 */
export const ensureDependencies = () =>
  installOnce(root, (npm) => {
    console.error('Installing dependencies …');
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'];
    const env = { UV_THREADPOOL_SIZE: threadsForFiles(), ...process.env };
    // The cache of npm suffices unless a version is newer. A registry that has tarballs elsewhere is asked without addresses.
    const offline = withAddressedLock(root, () =>
      spawnSync(npm, [...args, '--prefer-offline', replacesHost], {
        stdio: ['ignore', 'inherit', 'ignore'],
        cwd: root,
        env,
      }),
    );
    if (offline.status !== 0) run(npm, args, { env });
  });

/**
 * Threads with which npm writes files, beside its own. It hands over each step of each file, some half a million: on two
 * cores four threads spend a fifth of the installation waking each other. Otherwise as many as Node starts by itself.
 */
const threadsForFiles = () => String(Math.max(1, Math.min(4, availableParallelism() - 1)));

/** @returns {string} absolute path of a Node 22 binary: this process if it is one, else the one npm installed. */
export function node22() {
  if (process.versions.node.startsWith('22.')) return process.execPath;
  const names = [`node-${process.platform}-${process.arch}`, `node-bin-${process.platform}-${process.arch}`];
  const require = createRequire(join(root, 'package.json'));
  for (const name of names) {
    try {
      const base = dirname(require.resolve(`${name}/package.json`));
      const binary = join(base, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
      if (existsSync(binary)) return binary;
    } catch {
      // Not installed for this platform: try the next name.
    }
  }
  throw new Error(
    `No Node 22 binary for ${process.platform}-${process.arch}: install Node 22 and run this again with it.`,
  );
}

/** Environment in which `node` and the installed tools resolve to Node 22. */
export function toolEnvironment() {
  const path = [dirname(node22()), join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter);
  return { ...process.env, PATH: path };
}

/** Runs a command to its end with inherited stdio; exits this process with its code when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { stdio: 'inherit', cwd: root, ...options });
  if (result.error) throw result.error;
  if (result.status !== 0) process.exit(result.status ?? 1);
}
