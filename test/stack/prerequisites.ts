/** Programs of Debian that an engine of our own needs: installed as root, where they are missing. */
import { existsSync } from 'node:fs';
import { engineTools, podmanTools } from '../../scripts/system-tools.mjs';
import { installPackages } from '../deploy/debian.ts';
import { run } from '../deploy/run.ts';

export const usesPodman = (files: readonly string[]): boolean => files.some((file) => file.includes('podman'));

/** Makes sure that the engines of these test files can be started here. @throws Error that names the obstacle */
export async function demandPrograms(files: readonly string[]): Promise<void> {
  if (process.platform !== 'linux') throw new Error('A container engine of our own needs Linux.');
  if (process.getuid?.() !== 0) throw new Error('Only root can start a container engine: run this as root.');
  const tools = new Map([...engineTools, ...(usesPodman(files) ? podmanTools : [])]);
  const isMissing = [...tools.values()].some((path) => !existsSync(path));
  if (!existsSync('/usr/bin/apt-get') && isMissing)
    throw new Error(`Install ${[...tools.keys()].join(', ')}: this is no Debian.`);
  await installPackages(tools);
  const namespaces = await run('unshare', [...ownNamespaces, 'true'], { timeoutMs: 60_000 });
  if (namespaces.exitCode !== 0) throw new Error(`No namespaces can be made: ${namespaces.stderr.trim()}`);
}

/** For `unshare`: nothing in there outlives its first process. */
export const ownNamespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
