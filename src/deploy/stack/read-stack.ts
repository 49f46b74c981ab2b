import { readFileSync } from 'node:fs';
import { DeployError } from '../errors.ts';
import { type EnvProblem, ownershipOf, parseEnv, readBackendConfig, type StackConfig } from '../files/index.ts';
import { layoutOf, missingFileHint, type StackLayout } from '../layout.ts';
import { secretsOfStack } from './remembered-secrets.ts';

export type Ownership = ReturnType<typeof ownershipOf> | 'missing';

/** Current state of a stack on the disk. */
export interface Stack {
  readonly layout: StackLayout;
  /** Values of `.env`; nothing is expanded. */
  readonly values: ReadonlyMap<string, string>;
  readonly envProblems: readonly EnvProblem[];
  readonly config: StackConfig;
  /** Webhooks of the public reach it: the overlay is there. */
  readonly hasIngress: boolean;
  /** Ownership of the files that this tool writes. */
  readonly ownership: { readonly compose: Ownership; readonly overlay: Ownership; readonly caddyfile: Ownership };
  /** Everything that nothing may show: secrets of `.env` and of its earlier versions, and the App's private key where we may read it. */
  readonly secrets: readonly string[];
}

/**
 * Reads the stack in a directory. Changes nothing.
 * @throws DeployError notAStack when one of its files is missing or cannot be read; the errors of `readBackendConfig` for settings
 */
export function readStack(directory: string): Stack {
  const layout = layoutOf(directory);
  requireStack(layout);
  const { values, problems } = parseEnv(readText(layout.env));
  const ownership = {
    compose: ownerOf(layout.compose),
    overlay: ownerOf(layout.overlay),
    caddyfile: ownerOf(layout.caddyfile),
  };
  return {
    layout,
    values,
    envProblems: problems,
    config: readBackendConfig(readText(layout.config)),
    hasIngress: ownership.overlay !== 'missing',
    ownership,
    secrets: [...secretsOfStack(layout), ...privateKey(layout)],
  };
}

/** Reads `path`. @throws DeployError notAStack */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    throw new DeployError('notAStack', `${path} cannot be read (${code}).`, hints[code] ?? null, { cause: error });
  }
}

const hints: Readonly<Record<string, string>> = {
  ENOENT: missingFileHint,
  EACCES: 'It belongs to another user: run this command as the user that made the stack.',
};

/** A directory without any of the three files is not a stack; with some of them, `readText` names the missing one. */
function requireStack({ directory, compose, env, config }: StackLayout): void {
  if ([compose, env, config].some(exists)) return;
  throw new DeployError(
    'notAStack',
    `${directory} is not a review stack.`,
    'Name its directory with --dir, or make one: oratorio server init',
  );
}

function exists(path: string): boolean {
  return ownerOf(path) !== 'missing';
}

function ownerOf(path: string): Ownership {
  try {
    return ownershipOf(readFileSync(path, 'utf8'));
  } catch (error) {
    // A file that cannot be read was not written by this user.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : 'foreign';
  }
}

function privateKey({ privateKey: path }: StackLayout): string[] {
  try {
    return [readFileSync(path, 'utf8')];
  } catch {
    // An unreadable key cannot be printed either.
    return [];
  }
}
