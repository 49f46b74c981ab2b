import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { version } from '../../protocol/index.ts';
import { readJson } from '../../supervise/index.ts';
import { defaults } from '../defaults.ts';
import {
  buildImageArguments,
  type Engine,
  hasImage,
  imageOrigin,
  isOurNode,
  must,
  nodeVersionArguments,
  type OperationOptions,
  pinImage,
  prepareContext,
  pullImage,
} from '../engine/index.ts';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../stack/index.ts';
import type { Preparing } from './change-stack.ts';
import { watched } from './session.ts';

const Images = v.object({ stack: v.string(), gateway: v.string() });
/** `.server/images.json`: the requested images, by tags, and those of them that were on the machine then. */
const Record = v.object({ asked: Images, pinned: Images });
export type ImageRecord = v.InferOutput<typeof Record>;
export type StackImages = ImageRecord['asked'];

export const defaultImages: StackImages = { stack: `${defaults.image}:${version}`, gateway: defaults.gatewayImage };

/** Reads the record; null when it is missing or invalid. */
export function readImageRecord({ images }: StackLayout): ImageRecord | null {
  const found = readJson(images, Record);
  // An invalid record counts as missing; the next change writes it again.
  return found.kind === 'ok' ? found.value : null;
}

export const imageRecord = (record: ImageRecord): string => `${JSON.stringify(record, null, 2)}\n`;

export const otherStackImage =
  'Name an existing image with --image, or build it from a checkout of Oratorio: --build DIR';

export interface BuildWish {
  /** A checkout of Oratorio, absolute. */
  readonly context: string;
  /** Local image to begin with; null: Node's, from its registry. */
  readonly base: string | null;
}

export interface FetchWish {
  /** Null: of a registry. */
  readonly build: BuildWish | null;
  /** The registry is asked for a newer one of that name. */
  readonly isNewer: boolean;
  /** Next step for an image that cannot be fetched. */
  readonly otherwise: string;
}

/**
 * Has an image on the machine: built from a checkout, or of a registry. The returned name is unambiguous.
 * @param isNewer also asks the registry for a newer one of that name, where it has one
 * @throws DeployError imageFailed, diskFull
 */
export async function fetchImage(
  { engine, session, isDry }: Preparing,
  reference: string,
  request: FetchWish,
): Promise<string> {
  if (isDry) return reference;
  const options = optionsOf(session);
  const found = await engine();
  await watched(session, 'images', `${request.build ? 'Building' : 'Getting'} the image ${reference}`, () =>
    obtain(found, reference, request, options),
  );
  return (await pinImage(found, reference, options)).pinned;
}

async function obtain(
  found: Engine,
  reference: string,
  { build, isNewer, otherwise }: FetchWish,
  options: OperationOptions,
): Promise<void> {
  if (build) await buildImage(found, reference, build, options);
  else if (!(await hasImage(found, reference, options))) await pullFirst(found, reference, otherwise, options);
  else if (isNewer) await pullNewer(found, reference, options);
}

const optionsOf = ({ signal, observe }: Preparing['session']): OperationOptions => ({
  signal,
  onLine: (line) => observe({ type: 'output', line }),
});

async function pullFirst(
  engine: Engine,
  reference: string,
  otherwise: string,
  options: OperationOptions,
): Promise<void> {
  try {
    await pullImage(engine, reference, options);
  } catch (error) {
    if (!(error instanceof DeployError) || error.code !== 'imageFailed') throw error;
    throw new DeployError('imageFailed', error.message, otherwise, { cause: error });
  }
}

/** An image that was built here has no registry: the present one stays. */
async function pullNewer(engine: Engine, reference: string, options: OperationOptions): Promise<void> {
  try {
    await pullImage(engine, reference, options);
  } catch (error) {
    if (!(error instanceof DeployError) || error.code !== 'imageFailed') throw error;
    options.onLine?.(`No newer ${reference}: ${error.message}`);
  }
}

async function buildImage(
  engine: Engine,
  image: string,
  { context, base }: BuildWish,
  options: OperationOptions,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'oratorio-image-'));
  try {
    const origin = await imageOrigin(context, version);
    const { signal } = options;
    if (base !== null) {
      const hasNode = await hasOurNode(engine, base, options);
      await prepareContext({ root: context, directory, epoch: origin.epoch, hasNode, ...(signal && { signal }) });
    }
    const args = buildImageArguments({ image, context: base === null ? context : directory, base, origin });
    await must(
      `Building ${image}`,
      engine.run(args, { ...options, timeoutMs: defaults.timeouts.buildMs }),
      'imageFailed',
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function hasOurNode(engine: Engine, base: string, { signal }: OperationOptions): Promise<boolean> {
  const settings = { ...(signal && { signal }), timeoutMs: defaults.timeouts.checkMs };
  const { exitCode, stdout } = await engine.run(nodeVersionArguments(base), settings);
  return exitCode === 0 && isOurNode(stdout);
}
