import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';
import { imagesOf } from './images.ts';
import { must, type OperationOptions, passedOn, quietly } from './operation.ts';
import type { Engine } from './types.ts';

export type PullResult = { readonly image: string; readonly state: 'pulled' | 'kept' };

/**
 * Gets the images of `services` that are not on the machine. Those that are there are not asked for again, so an image that was
 * built here needs no registry.
 * @throws DeployError imageFailed, diskFull, compositionInvalid, cancelled
 */
export async function pullImages(
  engine: Engine,
  stack: StackLayout,
  services: readonly ServiceName[],
  options: OperationOptions = {},
): Promise<PullResult[]> {
  const all = imagesOf(stack);
  const wanted = new Set(services.map((service) => all.get(service) ?? fail(service)));
  const results: PullResult[] = [];
  for (const image of wanted) {
    const isHere = await hasImage(engine, image, options);
    if (!isHere) await pullImage(engine, image, options);
    results.push({ image, state: isHere ? 'kept' : 'pulled' });
  }
  return results;
}

/** Whether the machine has an image of this name, digest or id. */
export async function hasImage(engine: Engine, image: string, options: OperationOptions = {}): Promise<boolean> {
  const settings = { ...quietly(options), timeoutMs: defaults.timeouts.askMs };
  return (await engine.run(['image', 'inspect', '--format', '{{.Id}}', image], settings)).exitCode === 0;
}

/** Gets an image from its registry, also when there is one of its name already. @throws as `pullImages` */
export async function pullImage(engine: Engine, image: string, options: OperationOptions = {}): Promise<void> {
  if (/^(?:sha256:)?[0-9a-f]{64}$/.test(image)) {
    throw new DeployError(
      'imageFailed',
      `The image ${image} is not on this machine any more, and by its id alone it cannot be got again.`,
      'Build it again, or name an existing image: oratorio server upgrade --image NAME, for the gateway ORATORIO_GATEWAY_IMAGE in .env.',
    );
  }
  const settings = { ...passedOn(options), timeoutMs: defaults.timeouts.pullMs };
  await must(`Getting the image ${image}`, engine.run(['pull', image], settings), 'imageFailed');
}

function fail(service: ServiceName): never {
  throw new DeployError(
    'compositionInvalid',
    `The composition says no image for ${service}.`,
    'Run: oratorio server doctor',
  );
}
