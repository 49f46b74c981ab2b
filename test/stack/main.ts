/**
 * `npm run test:stack [-- FILES…]`: the tests that need a real container engine. Files from the network are fetched first; then
 * the engine and the tests run in a network, a process and a mount namespace of their own (`inside.ts`): ports, bridges, packet
 * filters, mounts and processes end with them, and no other engine of this machine notices.
 */
import { spawn, spawnSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { isBuilt } from '../../scripts/stamp.mjs';
import { root, run, toolEnvironment } from '../../scripts/toolchain.mjs';
import { caddy211, composeV2 } from '../deploy/tools.ts';
import { baseArchive } from './base-archive.ts';
import { removeControlGroups } from './control-groups.ts';
import { demandPrograms, ownNamespaces, usesPodman } from './prerequisites.ts';
import { notTested, variables } from './variables.ts';

const nodeWords = ['--disable-warning=ExperimentalWarning', '--conditions=development'];

/** Stands out among the lines of a long run. */
function refuse(error: unknown): never {
  const reason = error instanceof Error ? error.message : String(error);
  console.error(`\n✖ THE STACK WAS NOT TESTED.\n✖ ${reason}\n`);
  process.exit(notTested);
}

/** Everything from the network, by the variables that say where it is. */
async function fetchAll(files: readonly string[]): Promise<Record<string, string>> {
  await demandPrograms(files);
  return {
    [variables.base]: await baseArchive(),
    ORATORIO_TEST_COMPOSE_V2: await composeV2(),
    ORATORIO_TEST_CADDY_211: await caddy211(),
  };
}

async function runInside(
  directory: string,
  files: readonly string[],
  fetched: Readonly<Record<string, string>>,
): Promise<number> {
  const cgroup = basename(directory);
  const temporary = join(directory, 'tmp');
  mkdirSync(temporary);
  const program = [process.execPath, ...nodeWords, join(root, 'test', 'stack', 'inside.ts'), ...files];
  const env = {
    ...toolEnvironment(),
    ...fetched,
    [variables.directory]: directory,
    [variables.cgroup]: cgroup,
    TMPDIR: temporary,
  };
  const child = spawn('unshare', [...ownNamespaces, ...program], { cwd: root, env, stdio: 'inherit' });
  // `unshare` listens to nothing else; with it everything in its namespaces ends.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill('SIGKILL'));
  const code = await new Promise<number>((resolve, reject) => {
    child.on('error', reject).on('exit', (status) => resolve(status ?? 1));
  });
  await removeControlGroups(cgroup);
  if (usesPodman(files)) await removeControlGroups('libpod_parent', { isShared: true });
  return code;
}

const files = process.argv.length > 2 ? process.argv.slice(2) : globSync('test/stack/*.stack.ts', { cwd: root });
files.sort();
const fetched = await fetchAll(files).catch(refuse);
if (!isBuilt()) run(process.execPath, [join(root, 'scripts', 'node22.mjs'), join(root, 'scripts', 'build.ts')]);
const directory = mkdtempSync(join(tmpdir(), 'oratorio-stack-'));
try {
  process.exitCode = await runInside(directory, files, fetched);
} finally {
  // Images are unpacked in it: `rmSync` took over 20 seconds for them, `rm` seven.
  spawnSync('rm', ['-rf', '--', directory]);
}
