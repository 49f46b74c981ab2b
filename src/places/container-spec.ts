import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { ensureStateDirectory, workspaceStateDirectory } from '../config/index.ts';
import { readBoundedFile } from '../lib/index.ts';
import { logFiles } from '../supervise/index.ts';

/** Labels that identify the containers of a home. The label of the home is a code that only its Hub can compute. */
export const labels = {
  home: 'dev.oratorio.home',
  workspace: 'dev.oratorio.workspace',
  incarnation: 'dev.oratorio.incarnation',
} as const;

/** Container settings of the user. */
export interface ContainerSettings {
  readonly engine: string;
  readonly image: string;
  readonly network: 'none' | 'bridge';
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly pids: number;
  /** Further directories, mounted at the same paths; the suffix `:ro` makes a mount read-only. */
  readonly mounts: readonly string[];
  readonly allowRoot: boolean;
}

/** Directories of one workspace, in every place. */
export interface CommonRequest {
  readonly home: string;
  readonly workspacePath: string;
  readonly logDirectory: string;
  /** Directory that is mounted in place of the home. */
  readonly skeleton: string;
}

export interface ContainerRequest extends CommonRequest {
  readonly settings: ContainerSettings;
  /** Program and arguments of the agent server. */
  readonly command: readonly string[];
  /** Files and directories of the program. */
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** Root in the container is the Hub's user on this machine. */
  readonly isRootless: boolean;
}

/** Refusal of a mount that is forbidden or does not exist. */
export class MountRefusal extends Error {
  override readonly name = 'MountRefusal';
}

/** Path inside, and its source on this machine; the same path if absent. */
export interface Bind {
  readonly path: string;
  readonly source?: string;
  readonly isReadOnly?: boolean;
}

/** Names below a user's home that are never mounted. */
const privateNames = ['.ssh', '.gnupg', '.aws', '.kube', '.docker', '.config/gh'];

const systemParts: ReadonlySet<string> = new Set(['/home', '/root', '/etc', '/var', '/boot', '/var/lib']);

/**
 * Checks a mount of the user's settings. @throws MountRefusal for the whole system, a whole home, a home of Oratorio, private keys,
 * sockets, and paths that are missing
 */
export function checkedMount(mount: string, home: string): Bind {
  const isReadOnly = mount.endsWith(':ro');
  const given = isReadOnly ? mount.slice(0, -3) : mount;
  const refuse = (why: string) => new MountRefusal(`Place.Container.Mounts: ${given} cannot be mounted: ${why}`);
  if (!isAbsolute(given) || given.includes(':')) throw refuse('it is not an absolute path');
  let path: string;
  try {
    path = realpathSync(given);
    if (!lstatSync(path).isDirectory() && !lstatSync(path).isFile()) throw refuse('it is not a file or a directory');
  } catch (error) {
    if (error instanceof MountRefusal) throw error;
    throw refuse('the path does not exist');
  }
  const user = homedir();
  const hidden = [home, ...privateNames.map((name) => join(user, name)), '/proc', '/sys', '/dev', '/run', '/var/run'];
  if (contains(path, user) || systemParts.has(path)) throw refuse('it contains a whole home, or system directories');
  const named = hidden.find((each) => contains(path, each) || contains(each, path));
  if (named !== undefined) throw refuse(`${named} is never mounted`);
  return { path: given, source: path, ...(isReadOnly && { isReadOnly }) };
}

/** Whether `inner` is `outer` or lies below it. */
export function contains(outer: string, inner: string): boolean {
  const way = relative(outer, inner);
  return way === '' || (!way.startsWith('..') && !isAbsolute(way));
}

/**
 * Common git directory of a worktree, outside of the workspace; undefined for any other workspace. The agent can change the `.git`
 * file, so the directory must point back to that file.
 */
export function commonGitDirectory(workspacePath: string): string | undefined {
  const linked = linkIn(join(workspacePath, '.git'), workspacePath);
  if (linked === undefined) return undefined;
  const back = text(join(linked, 'gitdir'));
  if (back === undefined || resolve(linked, back) !== join(workspacePath, '.git')) return undefined;
  const common = text(join(linked, 'commondir'));
  if (common === undefined) return undefined;
  const path = resolve(linked, common);
  return dirname(dirname(linked)) === path && !contains(workspacePath, path) ? path : undefined;
}

/**
 * Mounts of a git directory: hooks and configuration are read-only, and the directory itself cannot be moved. The agent can
 * commit, but nothing that it writes runs outside of the container.
 */
function gitBinds(directory: string): Bind[] {
  if (kindOf(directory) !== 'directory') return [];
  mkdirSync(join(directory, 'hooks'), { recursive: true });
  const fixed = ['hooks', 'config', 'config.worktree'].map((name) => join(directory, name));
  const modules = kindOf(join(directory, 'modules')) === 'directory' ? readdirSync(join(directory, 'modules')) : [];
  return [
    { path: directory },
    ...fixed.filter((path) => kindOf(path) !== undefined).map((path) => ({ path, isReadOnly: true })),
    ...modules.flatMap((name) => gitBinds(join(directory, 'modules', name))),
  ];
}

/** Kind of an entry that is not a link; undefined for a link or a missing entry. */
function kindOf(path: string): 'file' | 'directory' | undefined {
  const entry = lstatSync(path, { throwIfNoEntry: false });
  return entry?.isDirectory() ? 'directory' : entry?.isFile() ? 'file' : undefined;
}

function linkIn(file: string, workspacePath: string): string | undefined {
  const [, target] = /^gitdir: (.+)$/m.exec(text(file) ?? '') ?? [];
  return target === undefined ? undefined : resolve(workspacePath, target);
}

function text(file: string): string | undefined {
  try {
    return readBoundedFile(file)?.trim();
  } catch {
    // A directory, a symbolic link or another user's file does not count.
    return undefined;
  }
}

/** Resource limit of the container, at most the limit of this process: an engine that cannot raise limits refuses more. */
function limitOf(Name: string, row: string, most: number) {
  const [, hard = ''] = new RegExp(`^${row} +\\S+ +(\\d+)`, 'm').exec(limits()) ?? [];
  const value = Math.min(most, Number(hard) || most);
  return { Name, Soft: value, Hard: value };
}

function limits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    // Systems without this file use the default limit.
    return '';
  }
}

/** Creates the state directory, and mount points below the skeleton, which an engine would create as root. */
function prepareSkeleton({ home, skeleton, workspacePath }: CommonRequest): void {
  const inner = relative(home, ensureStateDirectory(home, workspacePath));
  mkdirSync(join(skeleton, inner), { recursive: true, mode: 0o700 });
}

/** Mounts of a container. Podman 4.3 cuts a path with a comma in `Mounts`, and every engine cuts one with a colon in `Binds`. */
function mountsOf(binds: readonly Bind[]) {
  const isBind = ({ path, source = path }: Bind) =>
    `${source}${path}`.includes(',') && !`${source}${path}`.includes(':');
  return {
    Binds: binds
      .filter(isBind)
      .map(({ path, source = path, isReadOnly }) => `${source}:${path}:${isReadOnly ? 'ro' : 'rw'},rprivate`),
    Mounts: binds
      .filter((bind) => !isBind(bind))
      .map(({ path, source = path, isReadOnly = false }) => ({
        ...{ Type: 'bind', Source: source, Target: path, ReadOnly: isReadOnly },
        BindOptions: { Propagation: 'rprivate' },
      })),
  };
}

/** Log files inside of a place. */
const innerLogs = { stdout: '/run/oratorio/stdout.log', stderr: '/run/oratorio/stderr.log' };

/** Starts the agent server. The process writes its own log files, so no output is lost while no Hub reads a stream. */
export const startScript = `mkdir -p "$HOME" && exec "$@" >>${innerLogs.stdout} 2>>${innerLogs.stderr}`;

/** Mounts of one workspace: a home that contains only its state, the workspace at the same path, and its log files. */
export function workspaceBinds(request: CommonRequest): Bind[] {
  const { home, workspacePath, skeleton } = request;
  prepareSkeleton(request);
  const logs = logFiles(request.logDirectory);
  return [
    { path: home, source: skeleton },
    { path: workspaceStateDirectory(home, workspacePath) },
    { path: workspacePath },
    ...gitBinds(commonGitDirectory(workspacePath) ?? join(workspacePath, '.git')),
    { path: innerLogs.stdout, source: logs.stdout },
    { path: innerLogs.stderr, source: logs.stderr },
  ];
}

/**
 * Request body that creates a container. The workspace has the same path inside; the home contains only the state of this workspace.
 * The body contains no secret, because the launch document is sent on standard input.
 *
 * @throws MountRefusal
 */
export function containerSpec(request: ContainerRequest): Readonly<Record<string, unknown>> {
  const { home, workspacePath, settings, command, environment, isRootless } = request;
  const binds: Bind[] = [
    ...workspaceBinds(request),
    ...request.program.map((path) => ({ path, isReadOnly: true })),
    ...settings.mounts.map((mount) => checkedMount(mount, home)),
  ];
  const memory = settings.memoryMiB * 1_048_576;
  const user = isRootless ? '0:0' : `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`;
  return {
    Image: settings.image,
    Entrypoint: ['/bin/sh', '-c', startScript, 'oratorio'],
    Cmd: command,
    User: user,
    WorkingDir: workspacePath,
    Env: Object.entries({ ...environment, HOME: '/tmp/home', ORATORIO_HOME: home }).map(
      ([name, value]) => `${name}=${value}`,
    ),
    Labels: request.labels,
    AttachStdin: true,
    OpenStdin: true,
    StdinOnce: true,
    Tty: false,
    StopSignal: 'SIGTERM',
    HostConfig: {
      ...mountsOf(binds),
      NetworkMode: settings.network,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      ReadonlyRootfs: true,
      Init: true,
      Tmpfs: { '/tmp': 'rw,exec,nosuid,nodev,mode=1777,size=1073741824' },
      PidsLimit: settings.pids,
      ...(memory > 0 && { Memory: memory, MemorySwap: memory }),
      ...(settings.cpus > 0 && { NanoCpus: Math.round(settings.cpus * 1e9) }),
      Ulimits: [limitOf('nofile', 'Max open files', 65_536), limitOf('nproc', 'Max processes', 4_096)],
      RestartPolicy: { Name: 'no' },
      AutoRemove: false,
      LogConfig: { Type: 'none', Config: {} },
    },
  };
}
