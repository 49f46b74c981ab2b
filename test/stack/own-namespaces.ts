/** Runs a program in a network, a process and a mount namespace of its own, with a directory and control groups of its own. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { root, toolEnvironment } from '../../scripts/toolchain.mjs';
import { removeControlGroups } from './control-groups.ts';
import { ownNamespaces } from './prerequisites.ts';
import { variables } from './variables.ts';

const nodeWords = ['--disable-warning=ExperimentalWarning', '--conditions=development'];

export interface InsideOptions {
  /** Environment variables that name the fetched files. */
  readonly fetched: Readonly<Record<string, string>>;
  readonly usesPodman?: boolean;
  /** Takes standard output; absent: this process passes it on. */
  readonly onOutput?: (text: string) => void;
}

/** Runs a program of this checkout with Node to its end. Everything that it leaves ends with its namespaces. @returns the exit code */
export async function inOwnNamespaces(
  words: readonly string[],
  { fetched, usesPodman = false, onOutput }: InsideOptions,
): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-stack-'));
  const cgroup = basename(directory);
  const temporary = join(directory, 'tmp');
  mkdirSync(temporary);
  const env = {
    ...toolEnvironment(),
    ...fetched,
    [variables.directory]: directory,
    [variables.cgroup]: cgroup,
    TMPDIR: temporary,
  };
  const output = onOutput ? 'pipe' : 'inherit';
  const child = spawn('unshare', [...ownNamespaces, process.execPath, ...nodeWords, ...words], {
    ...{ cwd: root, env },
    stdio: ['inherit', output, 'inherit'],
  });
  child.stdout?.setEncoding('utf8').on('data', onOutput ?? (() => {}));
  // `unshare` listens to nothing else; with it everything in its namespaces ends.
  const end = () => void child.kill('SIGKILL');
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, end);
  try {
    return await new Promise<number>((resolve, reject) => {
      child.on('error', reject).on('close', (status) => resolve(status ?? 1));
    });
  } finally {
    for (const signal of signals) process.off(signal, end);
    await removeControlGroups(cgroup);
    if (usesPodman) await removeControlGroups('libpod_parent', { isShared: true });
    // Images are unpacked in it: `rmSync` took over 20 seconds for them, `rm` seven.
    spawnSync('rm', ['-rf', '--', directory]);
  }
}
