import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { defaults } from '../defaults.ts';
import { lastLines } from '../engine/index.ts';
import { DeployError } from '../errors.ts';
import { onFile } from '../file-error.ts';
import { checkCloneUrl } from './clone-url.ts';
import type { Git } from './find-git.ts';
import { isOfRepository, isSameRemote, parseRemote, type Remote } from './remote.ts';

export interface CloneRequest {
  readonly url: string;
  /** Where the checkout will be, absolute. */
  readonly path: string;
  /** `owner/name`. */
  readonly repository: string;
}

export interface CloneOptions {
  readonly signal?: AbortSignal;
  readonly onLine?: (line: string) => void;
  /** git and ssh may ask at the terminal of the caller for a password. */
  readonly hasTerminal?: boolean;
  readonly secrets?: readonly string[];
}

/**
 * Makes a checkout of a repository, whole or not at all: beside its place, and then renamed. An existing one stays
 * when it is of this repository.
 * @throws DeployError secretRefused, invalidInput for the address; foreignDirectory when something else is at the path; cloneFailed
 * with the message of git; diskFull, fileFailed, cancelled
 */
export async function cloneRepository(
  git: Git,
  { url, path, repository }: CloneRequest,
  options: CloneOptions = {},
): Promise<'cloned' | 'kept'> {
  checkCloneUrl(url, repository);
  if (await isCheckout(path)) {
    await checkOrigin(git, { url, path, repository }, options);
    return 'kept';
  }
  const prefix = `.${basename(path)}.clone-`;
  const parent = dirname(path);
  await mkdir(parent, { recursive: true }).catch(onFile(parent));
  await removeLeftovers(parent, prefix);
  const temporary = join(parent, `${prefix}${randomBytes(4).toString('hex')}`);
  try {
    await clone(git, { url, path: temporary, repository }, options);
    await rename(temporary, path).catch(onFile(path));
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return 'cloned';
}

/**
 * Whether the checkout at `path` is one of `repository`: its `origin` is on the host of `url`, has the path of the repository, and no
 * credentials in it.
 * @throws DeployError foreignDirectory, secretRefused
 */
export async function checkOrigin(
  git: Git,
  request: CloneRequest,
  { signal, secrets = [] }: CloneOptions = {},
): Promise<void> {
  const { path, repository, url } = request;
  // The file itself: whose the checkout is does not matter, no include is followed and no address rewritten.
  const config = ['config', '--file', join(path, '.git', 'config'), '--no-includes', '--get-all', 'remote.origin.url'];
  const settings = { timeoutMs: defaults.timeouts.askMs, secrets, ...(signal && { signal }) };
  const { stdout } = await git.run(config, settings);
  const origins = stdout.split('\n').filter((line) => line !== '');
  const remotes = origins.map((origin) => originOf(origin, path));
  const isOurs = (remote: Remote): boolean =>
    isOfRepository(remote, repository) && (remote.protocol === 'file' || hostsMatch(remote, parseRemote(url)));
  if (remotes.length > 0 && remotes.every(isOurs)) return;
  throw new DeployError(
    'foreignDirectory',
    `${path} is a checkout, but not of ${repository}.`,
    `Move it away, or correct it: git -C ${path} remote set-url origin ${url}`,
  );
}

function hostsMatch(remote: Remote, wanted: Remote): boolean {
  return wanted.protocol === 'file' || isSameRemote({ ...remote, path: '' }, { ...wanted, path: '' });
}

function originOf(origin: string, path: string): Remote {
  try {
    return parseRemote(origin);
  } catch (error) {
    if (error instanceof DeployError && error.code === 'secretRefused') {
      throw new DeployError(
        'secretRefused',
        `The checkout at ${path} has credentials in the address of its origin.`,
        `Take them out: git -C ${path} remote set-url origin ADDRESS`,
      );
    }
    throw new DeployError(
      'foreignDirectory',
      `The checkout at ${path} has an origin that is not understood.`,
      `Run: git -C ${path} remote -v`,
    );
  }
}

/** False when nothing is there, or an empty directory. @throws DeployError foreignDirectory for anything that is not a checkout */
async function isCheckout(path: string): Promise<boolean> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw foreign(path);
  });
  if (names.length === 0) return false;
  const config = await stat(join(path, '.git', 'config')).catch(() => null);
  if (config?.isFile()) return true;
  throw foreign(path);
}

const foreign = (path: string): DeployError =>
  new DeployError(
    'foreignDirectory',
    `${path} exists, but is not a git repository.`,
    'Move it away, then run the same command again.',
  );

/** Removes the remains of killed clones: only one command at a time works on a stack. */
async function removeLeftovers(parent: string, prefix: string): Promise<void> {
  const names = (await readdir(parent).catch(onFile(parent))).filter((name) => name.startsWith(prefix));
  for (const name of names) await rm(join(parent, name), { recursive: true, force: true });
}

async function clone(git: Git, { url, path, repository }: CloneRequest, options: CloneOptions): Promise<void> {
  const { signal, onLine, hasTerminal = false, secrets = [] } = options;
  const result = await git.run(['clone', '--origin', 'origin', '--no-recurse-submodules', '--', url, path], {
    timeoutMs: defaults.timeouts.cloneMs,
    secrets,
    hasTerminal,
    ...(signal && { signal }),
    ...(onLine && { onLine }),
  });
  if (result.exitCode === 0) return;
  const said = lastLines(result.stderr, 6) || `exit code ${result.exitCode}`;
  const code = /no space left on device|disk quota exceeded/i.test(said) ? 'diskFull' : 'cloneFailed';
  throw new DeployError(code, `${repository} cannot be cloned from ${url}: ${said}`, hintFor(said));
}

const hints: readonly (readonly [RegExp, string])[] = [
  [/no space left/i, 'Make room, then run the same command again.'],
  [
    /could not read (?:username|password)|authentication failed|terminal prompts disabled|unable to read askpass/i,
    'git on this host has no credentials for it: set up a credential helper, or clone by ssh with --clone-url git@github.com:owner/name.git',
  ],
  [
    /permission denied \(publickey|host key verification failed/i,
    'ssh is not set up for it. Try: ssh -T git@github.com',
  ],
  [
    /not found|does not exist|does not appear to be a git repository/i,
    'Check the name, and whether this host may read it.',
  ],
  [
    /could not resolve host|timed out|connection refused|network is unreachable/i,
    'Check the network, or the proxy of git.',
  ],
];

const hintFor = (said: string): string =>
  hints.find(([sign]) => sign.test(said))?.[1] ?? 'Another address can be given with --clone-url.';
