import * as v from 'valibot';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import { type OperationOptions, quietly } from './operation.ts';
import { parseJson } from './parse-json.ts';
import type { Engine } from './types.ts';

export interface PinnedImage {
  readonly reference: string;
  /** `name@sha256:…` when a registry knows it, else the id of the image on this machine. Compose takes both for `image:`. */
  readonly pinned: string;
  readonly id: string;
}

const imageSchema = v.object({ Id: v.string(), RepoDigests: v.nullish(v.array(v.string())) });

/**
 * Resolves the unambiguous name of an image of this machine.
 * @throws DeployError imageFailed when it is not there
 */
export async function pinImage(
  engine: Engine,
  reference: string,
  options: OperationOptions = {},
): Promise<PinnedImage> {
  const settings = { ...quietly(options), timeoutMs: defaults.timeouts.askMs };
  const { stdout, exitCode } = await engine.run(['image', 'inspect', '--format', '{{json .}}', reference], settings);
  const image = exitCode === 0 ? v.safeParse(imageSchema, parseJson(stdout)) : undefined;
  if (!image?.success) {
    throw new DeployError(
      'imageFailed',
      `The image ${reference} is not on this machine.`,
      `Get it: docker pull ${reference}`,
    );
  }
  const id = image.output.Id.startsWith('sha256:') ? image.output.Id : `sha256:${image.output.Id}`;
  const digests = image.output.RepoDigests ?? [];
  const own = digests.find((digest) => repositoryOf(digest) === repositoryOf(reference));
  return { reference, pinned: reference.includes('@') ? reference : (own ?? id), id };
}

/** Name without tag and digest, and without the parts that Docker omits in names of its own registry. */
function repositoryOf(reference: string): string {
  const name = reference.replace(/@.*$/, '').replace(/:[^/:]*$/, '');
  return name.replace(/^(?:index\.)?docker\.io\//, '').replace(/^library\//, '');
}
