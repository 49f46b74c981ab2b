import type { BackendSettings } from './schema.ts';

/** `owner/name` within GitHub's rules, which cannot name a path on a disk. */
const fullName = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\/(?!\.{1,2}$)[a-z0-9._-]{1,100}$/i;

export const isFullName = (text: string): boolean => fullName.test(text);

/** The host by which people know a source: `api.github.com` is `github.com`; an Enterprise endpoint is its own host. */
export function instanceOf(endpoint: string): string {
  const host = new URL(endpoint).host.toLowerCase();
  return host === 'api.github.com' ? 'github.com' : host;
}

/** `github:github.com/owner/repo`, in lower case; undefined when the name is not a repository's. */
export function repositoryKeyOf(instance: string, name: string): string | undefined {
  return isFullName(name) ? `github:${instance}/${name}`.toLowerCase() : undefined;
}

/** The key of `owner/repo` or `github:host/owner/repo`, the names in routes and lists; undefined for any other text. */
export function projectKey(instance: string, project: string): string | undefined {
  const whole = /^github:([a-z0-9.-]+(?::\d+)?)\/(.+)$/i.exec(project);
  return whole ? repositoryKeyOf(whole[1] ?? '', whole[2] ?? '') : repositoryKeyOf(instance, project);
}

/** One configured repository. */
export interface ConfiguredRepository {
  readonly repositoryKey: string;
  readonly instance: string;
  readonly owner: string;
  readonly name: string;
  readonly autoReview: boolean;
  /** Path of the checkout; undefined: no route leads to it, so the repository cannot be reviewed. */
  readonly workspacePath: string | undefined;
}

/** The repositories of the settings in their order, each once. */
export function configuredRepositories(settings: BackendSettings): readonly ConfiguredRepository[] {
  const instance = instanceOf(settings.GitHub.Endpoint);
  const keysOf = (names: readonly string[]) => new Set(names.map((name) => projectKey(instance, name)));
  const reviewed = keysOf(settings.Automation.AutoReviewRepositories);
  const isEvery = settings.Automation.AutoReviewRepositories.includes('*');
  const routes = new Map(
    settings.AgentServer.RepositoryWorkspaceRoutes.map((route) => [
      projectKey(instance, route.Project),
      route.WorkspacePath,
    ]),
  );
  const found = new Map<string, ConfiguredRepository>();
  for (const fullName of settings.GitHub.Repositories) {
    const repositoryKey = repositoryKeyOf(instance, fullName);
    if (repositoryKey === undefined || found.has(repositoryKey)) continue;
    const [owner = '', name = ''] = fullName.split('/');
    const autoReview = isEvery || reviewed.has(repositoryKey);
    found.set(repositoryKey, {
      repositoryKey,
      instance,
      owner,
      name,
      autoReview,
      workspacePath: routes.get(repositoryKey),
    });
  }
  return [...found.values()];
}
