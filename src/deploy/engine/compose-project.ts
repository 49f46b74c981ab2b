import { existsSync } from 'node:fs';
import { DeployError } from '../errors.ts';
import { parseEnv } from '../files/index.ts';
import type { StackLayout } from '../layout.ts';
import { readText, secretsOfStack } from '../stack/index.ts';

/** A stack as the composition tool sees it. */
export interface ComposeProject {
  /** Name of the project: containers, networks and volumes carry it. */
  readonly name: string;
  /** Compositions that are there, the overlay last. */
  readonly files: readonly string[];
  /** Values of `.env`. */
  readonly values: ReadonlyMap<string, string>;
  readonly secrets: readonly string[];
}

/**
 * Reads the current files: a change writes `.env` between two commands.
 * @throws DeployError notAStack
 */
export function readProject(stack: StackLayout): ComposeProject {
  const { values } = parseEnv(readText(stack.env));
  const name = values.get('COMPOSE_PROJECT_NAME');
  // Compose would call it by the directory's name, and another stack may have that one.
  if (!name)
    throw new DeployError('notAStack', `${stack.env} has no COMPOSE_PROJECT_NAME.`, 'Run: oratorio server doctor');
  if (!/^[a-z0-9][a-z0-9_-]*$/i.test(name))
    throw new DeployError(
      'notAStack',
      `COMPOSE_PROJECT_NAME in ${stack.env} is not the name of a project.`,
      'Use letters, digits, hyphens and underscores on a line of its own.',
    );
  return {
    name,
    files: [stack.compose, stack.overlay].filter((file) => existsSync(file)),
    values,
    secrets: secretsOfStack(stack),
  };
}
