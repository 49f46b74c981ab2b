import { DeployError } from '../errors.ts';
import { checkFullName, type Repository, repositoryOf } from '../files/index.ts';

/** Reads `owner/name` or `github:owner/name`. @throws DeployError (invalidInput) */
export function repositoryNamed(text: string): Repository {
  if (text.includes(':')) return repositoryOf(text);
  const checked = checkFullName(text);
  if ('repository' in checked) return checked.repository;
  throw new DeployError(
    'invalidInput',
    `${JSON.stringify(text.slice(0, 80))} is no repository.`,
    'Name a repository as owner/name.',
  );
}
