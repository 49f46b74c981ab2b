import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { parse } from 'yaml';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';
import { readProject } from './compose-project.ts';
import { serviceNames } from './service-states.ts';

const compositionSchema = v.object({
  services: v.optional(v.record(v.string(), v.nullish(v.object({ image: v.optional(v.string()) }))), {}),
});

/**
 * The image of each service as the compositions and `.env` say it together. Read here, because Compose itself prints images only
 * together with all secrets (v1), or not at all.
 * @throws DeployError notAStack, compositionInvalid
 */
export function imagesOf(stack: StackLayout): ReadonlyMap<ServiceName, string> {
  const { files, values } = readProject(stack);
  const images = new Map<ServiceName, string>();
  for (const file of files) {
    const { services } = readComposition(file);
    for (const name of serviceNames) {
      const image = services[name]?.image;
      if (image !== undefined) images.set(name, requireReference(interpolate(image, values), name));
    }
  }
  return images;
}

/** Refuses text that is not the name of an image: it becomes an argument, and a line of `.env` may have run into another. */
function requireReference(image: string, service: ServiceName): string {
  if (/^[\w./:@+-]*$/.test(image)) return image;
  throw new DeployError(
    'compositionInvalid',
    `The image of ${service} is not the name of an image.`,
    'Correct its line in .env; oratorio server doctor names faulty lines.',
  );
}

function readComposition(file: string): v.InferOutput<typeof compositionSchema> {
  try {
    return v.parse(compositionSchema, parse(readFileSync(file, 'utf8')));
  } catch (error) {
    throw new DeployError(
      'compositionInvalid',
      `${file} is not a readable composition.`,
      'Run: oratorio server doctor',
      {
        cause: error,
      },
    );
  }
}

/** `$NAME`, `${NAME}`, `${NAME:-value}`, `${NAME-value}`, `${NAME:?message}`, `${NAME?message}` and `$$`. */
const references = /\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?)([-?])([^}]*))?\})/g;

/** Puts values in as Compose does. A variable that is not set is empty. */
export function interpolate(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(references, (_all, dollar, bare, braced, colon, operator, word) => {
    if (dollar !== undefined) return '$';
    const value = values.get(bare ?? braced);
    const isMissing = value === undefined || (colon === ':' && value === '');
    return isMissing ? (operator === '-' ? word : '') : value;
  });
}
