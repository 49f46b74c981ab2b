/** Walls of a sandbox: the words for bubblewrap. Later words win. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { isWithin } from '../paths.ts';

/** `Tools.Shell.Network`: what a sandboxed command may reach. */
export type SandboxNetwork = 'deny' | 'allow';

/** A place that a sandboxed command is not to see. */
export type Hidden = { readonly path: string };

/** Directories of sandboxed commands. Paths are absolute. */
export interface SandboxPlaces {
  readonly workspacePath: string;
  readonly network: SandboxNetwork;
  /** Files and directories that look empty from inside; missing ones are passed over. */
  readonly hidden: readonly Hidden[];
  /** `PATH` of the command: its directories below `/tmp` stay readable, or tools that are installed there would be missing. */
  readonly searchPath?: string | undefined;
  /** Directory that is `/tmp`. Absent: an empty one. */
  readonly temporary?: string | undefined;
  /** Directory in a hidden one that may be read; the hidden one cannot be listed. Not for bubblewrap before 0.5. */
  readonly readable?: string | undefined;
}

/** Sockets of services that run programs or containers for the user: a way around a denied network. */
const serviceSockets: readonly Hidden[] = [
  '/run/user',
  '/run/dbus',
  '/run/docker.sock',
  '/run/containerd',
  '/run/podman',
].map((path) => ({ path }));

/** Keys and passwords of the user, in the home directory. */
export const personalPlaces: readonly Hidden[] = [
  ...['.ssh', '.gnupg', '.aws', '.azure', '.kube', '.docker', '.netrc', '.npmrc', '.pypirc', '.git-credentials'],
  ...['.config/gcloud', '.config/gh'],
].map((name) => ({ path: join(homedir(), name) }));

/** Processes without privileges, and without the network unless it is allowed. They end with the server. */
export const isolation = (network: SandboxNetwork): readonly string[] => [
  ...['--unshare-pid', '--unshare-ipc', '--cap-drop', 'ALL', '--die-with-parent'],
  ...(network === 'deny' ? ['--unshare-net'] : []),
];

/** Everything readable, an empty `/tmp`. */
export const floor: readonly string[] = [
  ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp', '--setenv', 'TMPDIR', '/tmp'],
];

/**
 * The same with a `/dev` that needs no second user namespace: `--dev` makes one for normal users, and a process that enters the room
 * would not be in it.
 */
export const sharedFloor: readonly string[] = [
  ...[
    '--ro-bind',
    '/',
    '/',
    '--proc',
    '/proc',
    '--perms',
    '1777',
    '--tmpfs',
    '/tmp',
    '--tmpfs',
    '/dev',
    '--tmpfs',
    '/dev/shm',
  ],
  ...['null', 'zero', 'full', 'random', 'urandom', 'tty'].flatMap((name) => [
    '--dev-bind',
    `/dev/${name}`,
    `/dev/${name}`,
  ]),
  ...['--symlink', '/proc/self/fd', '/dev/fd'],
  ...['stdin', 'stdout', 'stderr'].flatMap((name, fd) => ['--symlink', `/proc/self/fd/${fd}`, `/dev/${name}`]),
];

/** The workspace can be written, hidden places look empty. A directory around the workspace is hidden before the workspace is bound. */
export async function doors({
  workspacePath,
  network,
  hidden: asked,
  readable,
  temporary,
  searchPath,
}: SandboxPlaces): Promise<string[]> {
  const hidden = [...personalPlaces, ...(network === 'deny' ? serviceSockets : []), ...asked];
  const isAround = ({ path }: Hidden): boolean => isWithin(path, workspacePath);
  const hideEach = (places: readonly Hidden[]) => Promise.all(places.map((place) => hide(place, readable)));
  const around = await hideEach(hidden.filter(isAround));
  const others = await hideEach(hidden.filter((place) => !isAround(place)));
  return [
    ...(temporary === undefined ? [] : ['--bind', temporary, '/tmp']),
    ...(await toolDoors(workspacePath, searchPath)),
    ...around.flat(),
    ...['--bind', workspacePath, workspacePath],
    ...(await repositoryDoors(workspacePath)),
    ...others.flat(),
    ...(readable === undefined ? [] : ['--ro-bind', readable, readable]),
  ];
}

/** Those in the workspace are there as it is; one around it would show its neighbours. */
async function toolDoors(workspacePath: string, searchPath = ''): Promise<string[]> {
  const isApart = (path: string) => !isWithin(workspacePath, path) && !isWithin(path, workspacePath);
  const asked = [...new Set(searchPath.split(delimiter).map((path) => resolve('/', path)))];
  const below = asked.filter((path) => path !== '/tmp' && isWithin('/tmp', path) && isApart(path));
  const found = await Promise.all(below.map(async (path) => ((await isDirectory(path)) ? path : undefined)));
  return found.filter((path) => path !== undefined).flatMap((path) => ['--ro-bind', path, path]);
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

async function hide({ path }: Hidden, readable: string | undefined): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return ['--ro-bind', '/dev/null', path];
    const hasReadable = readable !== undefined && isWithin(path, readable);
    return [...(hasReadable ? ['--perms', '0111'] : []), '--tmpfs', path];
  } catch {
    // A directory that is missing, or that we cannot read, is invisible to our child as well.
    return [];
  }
}

/**
 * Of a repository, hooks and configuration are read-only: git would run them later, outside of the sandbox. A place that is bound
 * cannot be moved away.
 */
async function repositoryDoors(workspacePath: string): Promise<string[]> {
  const git = join(workspacePath, '.git');
  const kind = await stat(git).catch(() => undefined);
  if (kind?.isDirectory()) return ['--bind', git, git, ...(await runByGit(git))];
  const common = kind?.isFile() ? await commonDirectory(git) : undefined;
  const link = kind?.isFile() ? ['--ro-bind', git, git] : [];
  return common === undefined ? link : [...link, '--bind', common, common, ...(await runByGit(common))];
}

async function runByGit(git: string): Promise<string[]> {
  const places = ['hooks', 'config', 'config.worktree'].map((name) => join(git, name));
  const found = await Promise.all(places.map((path) => realpath(path).catch(() => undefined)));
  // A link leads out of the repository, or to a place that is read-only as such.
  return places.filter((path, at) => found[at] === path).flatMap((path) => ['--ro-bind', path, path]);
}

/** Directory of the repository of a worktree; undefined unless the repository names the worktree, too: a `.git` file may be a stranger's. */
async function commonDirectory(file: string): Promise<string | undefined> {
  try {
    const [, named = ''] = /^gitdir: (.+)$/m.exec(await readFile(file, 'utf8')) ?? [];
    const own = await realpath(resolve(dirname(file), named));
    const back = (await readFile(join(own, 'gitdir'), 'utf8')).trim();
    const common = dirname(dirname(own));
    return back === file && own.startsWith(join(common, 'worktrees')) ? common : undefined;
  } catch {
    return undefined;
  }
}
