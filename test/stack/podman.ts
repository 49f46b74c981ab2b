/** Podman's service for the Engine API, in the namespaces of a run, with storage of its own. */
import { spawn } from 'node:child_process';
import {
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { must } from '../deploy/must.ts';
import { canOverlay } from './engine.ts';
import type { PlainUser } from './plain-user.ts';
import { images, variable } from './variables.ts';

const startMs = 60_000;
const importMs = 300_000;
const pollMs = 50;

export interface PodmanSettings {
  /** Storage, socket and process id. The socket is `engine.sock`, as that of Docker. */
  readonly directory: string;
  /** User of a rootless engine. Default: root. */
  readonly user?: Pick<PlainUser, 'uid' | 'as'>;
}

const socketOf = (directory: string): string => join(directory, 'engine.sock');

/** File that names the storage driver. A user without root cannot find out again which one works. */
const driverFile = (directory: string): string => join(directory, 'driver');

/** Whether the engine in a directory is Podman. */
export const isPodman = (directory: string): boolean => existsSync(driverFile(directory));

/** Program and words for a command of Podman. `runc` also works where the versions of control groups are mixed. */
function commandOf({ directory, user }: PodmanSettings, ...words: string[]): [string, string[]] {
  const at = (name: string): string => join(directory, name);
  const driver = readFileSync(driverFile(directory), 'utf8');
  const [program = '', ...all] = [
    ...(user?.as ?? []),
    ...['podman', '--root', at('storage'), '--runroot', at('run'), '--tmpdir', at('tmp'), '--storage-driver', driver],
    ...['--runtime', 'runc', '--cgroup-manager', 'cgroupfs', '--events-backend', 'file'],
    ...words,
  ];
  return [program, all];
}

/** Imports the base image, then starts the service. */
export async function makePodman(settings: PodmanSettings): Promise<void> {
  const { directory, user } = settings;
  const archive = join(directory, 'base.tar');
  mkdirSync(directory, { recursive: true });
  copyFileSync(variable('base'), archive, constants.COPYFILE_FICLONE);
  for (const path of user ? [directory, archive] : []) chownSync(path, user?.uid ?? 0, user?.uid ?? 0);
  writeFileSync(driverFile(directory), (await canOverlay(dirname(directory))) ? 'overlay' : 'vfs');
  await must(...commandOf(settings, 'import', '--quiet', archive, images.base), { timeoutMs: importMs });
  await startPodman(settings);
}

/** Starts the service again after it was killed. @throws Error with its log */
export async function startPodman(settings: PodmanSettings): Promise<void> {
  const { directory, user } = settings;
  const log = join(directory, 'engine.log');
  rmSync(socketOf(directory), { force: true });
  const [program, words] = commandOf(
    settings,
    ...['system', 'service', '--time', '0', `unix://${socketOf(directory)}`],
  );
  const output = openSync(log, 'a');
  const service = spawn(program, words, { stdio: ['ignore', output, output], detached: true }).on('error', () => {});
  service.unref();
  closeSync(output);
  const deadline = performance.now() + startMs;
  while (!existsSync(socketOf(directory))) {
    if (service.exitCode !== null || performance.now() > deadline)
      throw new Error(`podman does not serve:\n${readFileSync(log, 'utf8').slice(-2_000)}`);
    await pause(pollMs);
  }
  const pidFile = join(directory, 'engine.pid');
  writeFileSync(pidFile, await listenerOf(socketOf(directory)));
  // The user may start it again.
  if (user) for (const path of [pidFile, log]) chownSync(path, user.uid, user.uid);
}

/** Id of the process that listens on a socket: rootless Podman serves in a child process. */
async function listenerOf(socket: string): Promise<string> {
  const listeners = await must('ss', ['-lxpHO', 'src', socket], { timeoutMs: 10_000 });
  const id = /pid=(\d+)/.exec(listeners)?.[1];
  if (id === undefined) throw new Error(`no process listens on ${socket}: ${listeners}`);
  return id;
}
