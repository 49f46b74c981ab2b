/** Podman's service for the Engine API, in the namespaces of a run, with storage of its own. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { must } from '../deploy/must.ts';
import { images, variable } from './variables.ts';

const startMs = 60_000;
const importMs = 300_000;
const pollMs = 50;

export interface PodmanSettings {
  /** Storage, socket and process id. The socket is `engine.sock`, as that of Docker. */
  readonly directory: string;
  /** Words before each command, which choose a user. Default: root. */
  readonly as?: readonly string[];
  /** Root file system of the base image; default: that of the run. */
  readonly base?: string;
}

const socketOf = (directory: string): string => join(directory, 'engine.sock');

/** Program and words for a command of Podman. `runc` also works where the versions of control groups are mixed. */
function commandOf({ directory, as = [] }: PodmanSettings, ...words: string[]): [string, ...string[]] {
  const at = (name: string): string => join(directory, name);
  const storage = ['--root', at('storage'), '--runroot', at('run'), '--tmpdir', at('tmp'), '--storage-driver', 'vfs'];
  const program = [
    'podman',
    ...storage,
    '--runtime',
    'runc',
    '--cgroup-manager',
    'cgroupfs',
    '--events-backend',
    'file',
  ];
  return [...as, ...program, ...words] as [string, ...string[]];
}

/** Imports the base image, then starts the service. */
export async function makePodman(settings: PodmanSettings): Promise<void> {
  mkdirSync(settings.directory, { recursive: true });
  const [program, ...words] = commandOf(settings, 'import', '--quiet', settings.base ?? variable('base'), images.base);
  await must(program, words, { timeoutMs: importMs });
  await startPodman(settings);
}

/** Starts the service again after it was killed. @throws Error with its log */
export async function startPodman(settings: PodmanSettings): Promise<void> {
  const { directory } = settings;
  const log = join(directory, 'engine.log');
  rmSync(socketOf(directory), { force: true });
  const [program, ...words] = commandOf(settings, 'system', 'service', '--time', '0', `unix://${socketOf(directory)}`);
  const output = openSync(log, 'a');
  const service = spawn(program, words, { stdio: ['ignore', output, output], detached: true }).on('error', () => {});
  service.unref();
  closeSync(output);
  writeFileSync(join(directory, 'engine.pid'), String(service.pid));
  const deadline = performance.now() + startMs;
  while (!existsSync(socketOf(directory))) {
    if (service.exitCode !== null || performance.now() > deadline)
      throw new Error(`podman does not serve:\n${readFileSync(log, 'utf8').slice(-2_000)}`);
    await pause(pollMs);
  }
}
