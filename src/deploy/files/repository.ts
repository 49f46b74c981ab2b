import { DeployError } from '../errors.ts';
import { containerPaths } from './container-paths.ts';

/** Why a text names no repository. */
export const repositoryRefusals = {
  forge: 'does not begin with github:',
  shape: 'is not github:owner/name',
  owner: 'has an owner that GitHub does not allow: letters, digits and single hyphens, 39 at most',
  name: 'has a name that GitHub does not allow: letters, digits, dots, hyphens and underscores, 100 at most',
  gitSuffix: 'ends in .git: leave that out',
} as const satisfies Record<string, string>;
export type RepositoryRefusal = keyof typeof repositoryRefusals;

export interface Repository {
  readonly owner: string;
  readonly name: string;
  /** `owner/name` in the given spelling. */
  readonly fullName: string;
  /** Name without its case: GitHub does not distinguish it. */
  readonly key: string;
  /** Name of its checkout below `workspace/`, in the spelling of the name. Owners have no underscore: no two repositories share one. */
  readonly directory: string;
  /** Absolute path of its checkout inside of both containers. */
  readonly workspacePath: string;
}
export type CheckedRepository = { readonly repository: Repository } | { readonly refused: RepositoryRefusal };

/** Reads `github:owner/name`. */
export function checkRepository(text: string): CheckedRepository {
  const [, forge, path] = /^([^:]*):(.*)$/s.exec(text) ?? [];
  if (forge?.toLowerCase() !== 'github' || path === undefined) return { refused: 'forge' };
  return checkFullName(path);
}

/** Reads `owner/name`. */
export function checkFullName(fullName: string): CheckedRepository {
  const [owner = '', name = '', ...more] = fullName.split('/');
  if (owner === '' || name === '' || more.length > 0) return { refused: 'shape' };
  if (owner.length > 39 || !/^[a-z0-9](?:-?[a-z0-9])*$/i.test(owner)) return { refused: 'owner' };
  if (!/^[a-z0-9._-]{1,100}$/i.test(name) || name === '.' || name === '..') return { refused: 'name' };
  if (/\.git$/i.test(name)) return { refused: 'gitSuffix' };
  const directory = `${owner}__${name}`;
  const key = fullName.toLowerCase();
  return {
    repository: { owner, name, fullName, key, directory, workspacePath: `${containerPaths.workspace}/${directory}` },
  };
}

/** Copy of a repository with another directory below the workspace for its checkout. */
export const inDirectory = (repository: Repository, directory: string): Repository => ({
  ...repository,
  directory,
  workspacePath: `${containerPaths.workspace}/${directory}`,
});

/** Reads a repository's name by `checkRepository`. @throws DeployError (invalidInput) */
export function repositoryOf(text: string): Repository {
  const checked = checkRepository(text);
  if ('repository' in checked) return checked.repository;
  throw new DeployError(
    'invalidInput',
    `${shown(text)} ${repositoryRefusals[checked.refused]}.`,
    'Name a repository as github:owner/name.',
  );
}

/** Reads `owner/name` or `github:owner/name`. @throws DeployError (invalidInput) */
export function repositoryNamed(text: string): Repository {
  if (text.includes(':')) return repositoryOf(text);
  const checked = checkFullName(text);
  if ('repository' in checked) return checked.repository;
  throw new DeployError(
    'invalidInput',
    `${JSON.stringify(text.slice(0, 80))} is not the name of a repository.`,
    'Name a repository as owner/name.',
  );
}

export const isSameRepository = (one: Pick<Repository, 'key'>, other: Pick<Repository, 'key'>): boolean =>
  one.key === other.key;

/** Text for a message, on one line and short; a text with credentials is not repeated. */
function shown(text: string): string {
  if (text.includes('@')) return 'This';
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
