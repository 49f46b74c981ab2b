import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, lutimes, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { gitEnvironment } from '../../git/index.ts';
import { DeployError } from '../errors.ts';
import { writeApp } from './image-app.ts';

const run = promisify(execFile);

/** Origin of an image, as its labels state it. */
export interface ImageOrigin {
  readonly version: string;
  /** Commit, with `-dirty` when the checkout has changes; `unknown` without git. */
  readonly revision: string;
  /** Seconds since 1970: the time of everything that we put into the image. */
  readonly epoch: number;
}

export interface ImageBuild {
  readonly image: string;
  /** A checkout, or a directory of `prepareContext`. */
  readonly context: string;
  /** Local image to build on, without the network; null: that of the Dockerfile, from its registry. */
  readonly base: string | null;
  readonly origin: ImageOrigin;
  /** Builds without the cache of earlier builds. */
  readonly isFresh?: boolean;
}

/** Words for the engine (`docker …`) that build the image. */
export function buildImageArguments({ image, context, base, origin, isFresh = false }: ImageBuild): string[] {
  const variables = {
    VERSION: origin.version,
    REVISION: origin.revision,
    SOURCE_DATE_EPOCH: String(origin.epoch),
    ...(base !== null && { BASE_IMAGE: base }),
  };
  return [
    'build',
    ...Object.entries(variables).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]),
    ...(base === null ? [] : ['--network', 'none']),
    ...(isFresh ? ['--no-cache'] : []),
    ...['--tag', image, context],
  ];
}

/** Whether an image can be built from here: a checkout can, an installed package has no Dockerfile. */
export const isCheckout = (root: string): boolean => existsSync(join(root, 'Dockerfile'));

/** Words for the engine that print the version of a local image's Node. They fail where it has none. */
export const nodeVersionArguments = (image: string): string[] => [
  ...['run', '--rm', '--pull', 'never', '--network', 'none', '--entrypoint', 'node', image, '--version'],
];

/** Whether a version that Node has printed is that of the product. */
export const isOurNode = (version: string): boolean => version.startsWith('v22.');

/**
 * Writes a build context that needs no network to `directory`: the program, from the checkout `root` with its installed packages
 * and its build, and its Node 22, for a base that has none.
 * @throws DeployError `imageFailed`
 */
export async function prepareContext(options: {
  readonly root: string;
  readonly directory: string;
  readonly epoch: number;
  /** The base has the Node of the product. */
  readonly hasNode: boolean;
  readonly signal?: AbortSignal;
}): Promise<void> {
  const { root, directory, epoch, hasNode, signal } = options;
  if (!isCheckout(root))
    throw new DeployError('imageFailed', `${root} has no Dockerfile`, 'Build images from a checkout of the repository');
  await cp(join(root, 'scripts/image'), join(directory, 'scripts/image'), { recursive: true });
  await writeFile(join(directory, 'Dockerfile'), preparedDockerfile(await readFile(join(root, 'Dockerfile'), 'utf8')));
  const [product, node] = [join(directory, 'product'), join(directory, 'node')];
  const programs = 'usr/local/bin';
  for (const tree of [product, node]) await mkdir(join(tree, programs), { recursive: true });
  const app = join(product, 'app');
  await writeApp({ root, directory: app, epoch, ...(signal && { signal }) });
  await symlink('/app/bin/oratorio.js', join(product, programs, 'oratorio'));
  await symlink(`/app/${await ripgrepIn(app)}`, join(product, programs, 'rg'));
  if (!hasNode) await copyNode(root, join(node, programs, 'node'));
  for (const tree of [product, node]) await settleParents(tree, epoch);
}

/**
 * The Dockerfile for a context that has been prepared: the directories of the context replace its stage `build`.
 * Each further instruction would read, hash and unpack them once more.
 * @throws DeployError `imageFailed`
 */
export function preparedDockerfile(text: string): string {
  const prepared = text.replace(/^# --- what runs.*\nFROM .* AS build\n[\s\S]*?(?=^# --- )/m, '');
  const result = prepared.replaceAll('COPY --from=build ', 'COPY ');
  if (prepared !== text && result !== prepared && !result.includes('build.sh')) return result;
  throw new DeployError('imageFailed', 'The Dockerfile is of another version', 'Build images with their own version');
}

/** Path of the ripgrep that came with the production dependencies, from `app` on: one copy, for the tools and for shells. */
async function ripgrepIn(app: string): Promise<string> {
  const files = await readdir(join(app, 'node_modules/@vscode'), { withFileTypes: true, recursive: true });
  const found = files.find((file) => file.isFile() && file.name === 'rg' && basename(file.parentPath) === 'bin');
  if (found !== undefined) return relative(app, join(found.parentPath, found.name));
  throw new DeployError('imageFailed', 'ripgrep is not installed', 'Run: npm install');
}

async function copyNode(root: string, target: string): Promise<void> {
  const source = join(root, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node');
  // Only the one that npm installed needs nothing of the machine it was made on.
  if (!existsSync(source))
    throw new DeployError(
      'imageFailed',
      'The base image has no Node 22, and none is installed here',
      'Run: npm install',
    );
  await cp(source, target);
  await chmod(target, 0o755);
}

/** Gives the files beside `/app` of the image, and the directories above, a fixed time and fixed modes. */
async function settleParents(tree: string, epoch: number): Promise<void> {
  const entries = await readdir(tree, { withFileTypes: true, recursive: true });
  const own = entries.filter(({ parentPath }) => !`${parentPath}/`.startsWith(`${join(tree, 'app')}/`));
  for (const entry of own) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await chmod(path, 0o755);
    await lutimes(path, epoch, epoch);
  }
  await chmod(tree, 0o755);
  await lutimes(tree, epoch, epoch);
}

/** 1980: the earliest time that every archive can hold. */
const noTime = 315_532_800;

/** Reads version and commit of the checkout; `SOURCE_DATE_EPOCH` of `environment` takes precedence over the commit's time. */
export async function imageOrigin(
  root: string,
  version: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<ImageOrigin> {
  const commit = await git(root, ['log', '-1', '--format=%H %ct']);
  const [hash, time] = commit?.split(' ') ?? [];
  const changes =
    hash === undefined
      ? undefined
      : await git(root, ['status', '--porcelain', '--untracked-files=no', '--ignore-submodules']);
  const given = environment['SOURCE_DATE_EPOCH'];
  return {
    version,
    revision: hash === undefined ? 'unknown' : changes === '' ? hash : `${hash}-dirty`,
    epoch: Number(given !== undefined && /^\d{1,11}$/.test(given) ? given : (time ?? noTime)),
  };
}

/** @returns undefined when this is not a checkout, or git is missing */
async function git(root: string, args: readonly string[]): Promise<string | undefined> {
  try {
    const { stdout } = await run('git', args, {
      ...{ cwd: root, env: gitEnvironment(process.env), maxBuffer: 16 * 1_024 * 1_024 },
    });
    return stdout.trim();
  } catch {
    return undefined;
  }
}
