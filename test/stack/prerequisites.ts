/** Programs of Debian that an engine of our own needs: installed as root, where they are missing. */
import { existsSync } from 'node:fs';
import { installPackage } from '../deploy/debian.ts';
import { run } from '../deploy/run.ts';

const programs: readonly (readonly [string, string])[] = [
  ['docker.io', '/usr/sbin/dockerd'],
  ['iptables', '/usr/sbin/iptables'],
  ['iproute2', '/usr/sbin/ip'],
  ['debootstrap', '/usr/sbin/debootstrap'],
  ['openssl', '/usr/bin/openssl'],
  ['curl', '/usr/bin/curl'],
  ['git', '/usr/bin/git'],
];

/** Makes sure that an engine can be started here. @throws Error that says what is in the way */
export async function demandPrograms(): Promise<void> {
  if (process.platform !== 'linux') throw new Error('A container engine of our own needs Linux.');
  if (process.getuid?.() !== 0) throw new Error('Only root can start a container engine: run this as root.');
  if (!existsSync('/usr/bin/apt-get') && programs.some(([, path]) => !existsSync(path)))
    throw new Error(`Install ${programs.map(([name]) => name).join(', ')}: this is no Debian.`);
  for (const [name, path] of programs) await installPackage(name, path);
  const namespaces = await run('unshare', [...ownNamespaces, 'true'], { timeoutMs: 60_000 });
  if (namespaces.exitCode !== 0) throw new Error(`No namespaces can be made: ${namespaces.stderr.trim()}`);
}

/** For `unshare`: nothing in there outlives its first process. */
export const ownNamespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
