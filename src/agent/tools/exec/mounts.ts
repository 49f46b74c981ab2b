/** Mounts of a sandbox: applies `sandbox-rule.ts` to the paths of this machine, and creates the arguments for bubblewrap. Later arguments win. */
import { lstatSync, statSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { canonicalPath } from '../../../lib/index.ts';
import { isWithin } from '../paths.ts';
import { homePlaces } from './home-places.ts';
import { MountPlan, type PathAccess, statOf } from './mount-plan.ts';
import { boundSockets } from './open-sockets.ts';
import type { Placeholders } from './placeholders.ts';
import { runNames } from './sandbox-rule.ts';

/** `Tools.Shell.Network`: network access of a sandboxed command. */
export type SandboxNetwork = 'deny' | 'allow';

/** A place that a sandboxed command is not to see. */
export type Hidden = { readonly path: string };

type Environment = Readonly<Record<string, string | undefined>>;

/** Directories of sandboxed commands. Paths are absolute. */
export interface SandboxPlaces {
  readonly workspacePath: string;
  readonly network: SandboxNetwork;
  /** Files and directories that look empty from inside. A missing one in the workspace cannot be made. */
  readonly hidden: readonly Hidden[];
  /** Environment of the server: home, `PATH`, tool chains. Directories of `PATH` stay readable wherever they lie. */
  readonly environment?: Environment | undefined;
  /** `Tools.Shell.VisibleHome`. */
  readonly visibleHome?: readonly string[] | undefined;
  /** Directory that is `/tmp`. Absent: an empty one. */
  readonly temporary?: string | undefined;
  /** Directory in a hidden one that may be read; the hidden one cannot be listed. Not for bubblewrap before 0.5. */
  readonly readable?: string | undefined;
  /** Directory of records for `sweepPlaceholders`. Absent: a kill leaves placeholders. */
  readonly records?: string | undefined;
  /** Directory of commands that outlive this server; see `MountsRecord`. Absent: all commands of this sandbox end with the server. */
  readonly kept?: string | undefined;
}

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
 * Floor with a `/dev` that needs no second user namespace: `--dev` makes one for normal users, and a process that enters the sandbox
 * would not be in it.
 */
export const sharedFloor: readonly string[] = [
  ...['--ro-bind', '/', '/', '--proc', '/proc', '--perms', '1777', '--tmpfs', '/tmp'],
  ...['--tmpfs', '/dev', '--tmpfs', '/dev/shm'],
  ...['null', 'zero', 'full', 'random', 'urandom', 'tty'].flatMap((name) => [
    '--dev-bind',
    `/dev/${name}`,
    `/dev/${name}`,
  ]),
  ...['--symlink', '/proc/self/fd', '/dev/fd'],
  ...['stdin', 'stdout', 'stderr'].flatMap((name, fd) => ['--symlink', `/proc/self/fd/${fd}`, `/dev/${name}`]),
];

/** Places that `floor` makes. */
const floorPlaces: readonly PathAccess[] = [
  { path: '/', access: 'read' },
  { path: '/tmp', access: 'hidden' },
  { path: '/dev', access: 'hidden' },
  { path: '/proc', access: 'hidden' },
];

const isOfFloor = (path: string): boolean => floorPlaces.some((place) => place.path === path);

/** A plan with the links that stand in hidden directories. */
export interface Mounts {
  readonly plan: MountPlan;
  readonly links: ReadonlyMap<string, string>;
}

/** Rows of the rule for these places. @param ofGit rows for the git directories of the workspace */
export function mountsFor(places: SandboxPlaces, ofGit: readonly PathAccess[]): Mounts {
  const { workspacePath, network, hidden, readable, environment = process.env, visibleHome = [] } = places;
  const plan = new MountPlan(floorPlaces);
  const home = homePlaces({ environment, workspacePath, visible: visibleHome });
  plan.add(...home.places);
  if (network === 'deny') plan.add(...runPlaces());
  plan.add(...programPlaces(environment, workspacePath, plan));
  plan.add(...hidden.flatMap((place) => hiddenPlace(place, workspacePath)));
  plan.set({ path: workspacePath, access: 'write' });
  plan.add(...ofGit);
  if (readable !== undefined) showWithin(plan, canonicalPath(readable));
  if (network === 'deny') {
    const reachable = boundSockets().filter((path) => plan.shows(path));
    plan.add(...reachable.map((path) => ({ path, access: 'hidden' as const })));
  }
  return { plan, links: home.links };
}

/** Sockets of services are in `/run`: session bus, container daemons, terminal multiplexers, databases. */
function runPlaces(): readonly PathAccess[] {
  const hidden = [...new Set(['/run', '/var/run'].map((path) => canonicalPath(path)))].filter((path) =>
    statOf(path)?.isDirectory(),
  );
  const shown = runNames.map((name) => join('/run', name)).filter((path) => statOf(path) !== undefined);
  return [
    ...hidden.map((path) => ({ path, access: 'hidden' as const })),
    ...shown.map((path) => canonicalPath(path)).map((path) => ({ path, access: 'read' as const })),
  ];
}

/** Directories of `PATH` below hidden ones other than the home; one around the workspace would show its neighbours. */
function programPlaces({ PATH = '' }: Environment, workspacePath: string, plan: MountPlan): readonly PathAccess[] {
  const isApart = (path: string) => !isWithin(workspacePath, path) && !isWithin(path, workspacePath);
  const found = PATH.split(delimiter)
    .filter((path) => isAbsolute(path) && statOf(path)?.isDirectory() === true)
    .map((path) => canonicalPath(path))
    .filter((path) => isApart(path) && !isOfFloor(path));
  const below = found.filter((path) => !plan.shows(path) && ['/tmp', '/run'].some((top) => isWithin(top, path)));
  return below.map((path) => ({ path, access: 'read' as const }));
}

/** A place by its canonical path. A missing one in the workspace can neither be made nor read. */
function hiddenPlace({ path }: Hidden, workspacePath: string): readonly PathAccess[] {
  const real = canonicalPath(path);
  if (statOf(real)) return [{ path: real, access: 'hidden' }];
  return isWithin(workspacePath, real) ? [{ path: real, access: 'absentHidden' }] : [];
}

/** Opens a directory in a hidden one, which cannot be listed then. */
function showWithin(plan: MountPlan, path: string): void {
  const around = plan.rowOf(path);
  if (around.access === 'hidden' && !isOfFloor(around.path)) plan.set({ path: around.path, access: 'closed' });
  plan.set({ path, access: 'read' });
}

/** Names that are missing while no sandbox is open, and made so that they can be closed. */
export interface StandingNames {
  readonly placeholders: Placeholders;
  /** Paths to release. */
  readonly paths: string[];
}

/**
 * Words for bubblewrap.
 *
 * @param standing makes placeholders; absent: names that are missing stay so, for a trial
 */
export function wordsOf(places: SandboxPlaces, { plan, links }: Mounts, standing?: StandingNames): string[] {
  const { temporary, workspacePath } = places;
  const words = temporary === undefined ? [] : ['--bind', temporary, '/tmp'];
  const closing: string[] = [];
  const pinned = new Set<string>();
  const rows = plan.places().filter(({ path }) => !isOfFloor(path));
  const standingLinks = [...links].filter(([path]) => !plan.shows(dirname(path)) && plan.at(path) === 'hidden');
  for (const { path, access } of rows) {
    if (access.startsWith('absent')) {
      const made = stand(path, access, workspacePath, standing);
      if (!made) continue;
      // A directory above the placeholder must not be moved away with it.
      for (const above of made.filter((each) => each !== path && !pinned.has(each))) {
        pinned.add(above);
        words.push('--bind', above, above);
      }
    }
    // A missing place cannot be made there, because its directory is read-only.
    else if (access !== 'read' && !statOf(path)) continue;
    // Each mount costs time, and this one would change nothing.
    else if (access === 'read' && plan.at(dirname(path)) === 'read') continue;
    words.push(...wordsFor(path, access));
    const isDirectory = access === 'closed' || (isHidden(access) && statOf(path)?.isDirectory() === true);
    if (isDirectory) closing.push('--remount-ro', path);
    for (const [link, target] of standingLinks) if (dirname(link) === path) words.push('--symlink', target, link);
  }
  for (const [link, target] of standingLinks) {
    if (!rows.some(({ path }) => path === dirname(link))) words.push('--symlink', target, link);
  }
  return [...words, ...closing];
}

const isHidden = (access: PathAccess['access']): boolean => access === 'hidden' || access === 'absentHidden';

/** Makes a placeholder. @returns it with the directories above it that were made; undefined: it cannot be made */
function stand(
  path: string,
  access: PathAccess['access'],
  workspacePath: string,
  standing?: StandingNames,
): readonly string[] | undefined {
  if (!standing) return statOf(path, lstatSync) ? [path] : undefined;
  const top = isWithin(workspacePath, path) ? workspacePath : dirname(path);
  const made = standing.placeholders.stand(top, path, access !== 'absentFile');
  standing.paths.push(...(made ?? []));
  return made;
}

function wordsFor(path: string, access: PathAccess['access']): readonly string[] {
  switch (access) {
    case 'write':
      return ['--bind', path, path];
    case 'read':
      return ['--ro-bind-try', path, path];
    case 'absentFile':
    case 'absentDirectory':
      return ['--ro-bind', path, path];
    case 'absentHidden':
      return ['--perms', '0000', '--tmpfs', path];
    case 'closed':
      return ['--perms', '0111', '--tmpfs', path];
    case 'hidden':
      return statOf(path, statSync)?.isDirectory() === true ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path];
  }
}
