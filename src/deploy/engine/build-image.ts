import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
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
  /** A checkout, or what `prepareContext` made. */
  readonly context: string;
  /** Local image to build on, without the network; null: that of the Dockerfile, from its registry. */
  readonly base: string | null;
  readonly origin: ImageOrigin;
  /** Without what earlier builds left. */
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

const buildFiles = ['Dockerfile', 'scripts/image'];

/** Whether an image can be built from here: a checkout can, an installed package has no Dockerfile. */
export const isCheckout = (root: string): boolean => existsSync(join(root, 'Dockerfile'));

/**
 * Writes a build context that needs no network to `directory`: what runs, made from the checkout `root` as it is installed
 * and built here, and its Node 22, for a base that has none.
 * @throws DeployError `imageFailed`
 */
export async function prepareContext(options: {
  readonly root: string;
  readonly directory: string;
  readonly epoch: number;
  readonly signal?: AbortSignal;
}): Promise<void> {
  const { root, directory, epoch, signal } = options;
  if (!isCheckout(root))
    throw new DeployError('imageFailed', `${root} has no Dockerfile`, 'Build images from a checkout of the repository');
  const prepared = join(directory, 'prepared');
  await mkdir(prepared, { recursive: true });
  for (const file of buildFiles) await cp(join(root, file), join(directory, file), { recursive: true });
  await writeApp({ root, directory: join(prepared, 'app'), epoch, ...(signal && { signal }) });
  const node = installedNode(root);
  if (node !== undefined) {
    await cp(node, join(prepared, 'node'));
    await chmod(join(prepared, 'node'), 0o755);
  }
}

/** Only the one that npm installed: it needs nothing of the machine it was made on. */
function installedNode(root: string): string | undefined {
  const path = join(root, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node');
  return existsSync(path) ? path : undefined;
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
  const changes = hash === undefined ? undefined : await git(root, ['status', '--porcelain', '--untracked-files=no']);
  const given = environment['SOURCE_DATE_EPOCH'];
  return {
    version,
    revision: hash === undefined ? 'unknown' : changes === '' ? hash : `${hash}-dirty`,
    epoch: Number(given !== undefined && /^\d{1,11}$/.test(given) ? given : (time ?? noTime)),
  };
}

/** @returns undefined when this is no checkout, or there is no git */
async function git(root: string, args: readonly string[]): Promise<string | undefined> {
  try {
    const { stdout } = await run('git', ['-C', root, ...args], { maxBuffer: 16 * 1_024 * 1_024 });
    return stdout.trim();
  } catch {
    return undefined;
  }
}
