import { appendElement } from '../../lib/index.ts';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import { stackFiles } from '../layout.ts';
import { checkFullName } from './repository.ts';
import { type StackSettings, settingsOf, spelledIn } from './stack-config.ts';

/** One repository of a stack. */
export interface RepositoryEntry {
  /** `owner/name`. */
  readonly repository: string;
  /** Absolute path of its checkout inside of both containers (specification §4.4 rule 8). */
  readonly workspacePath: string;
  readonly autoReview: boolean;
}

export interface Installation {
  readonly owner: string;
  readonly installationId: number;
}

export interface ConfigAnswers {
  /** The App's number or client id. */
  readonly appId: string;
  readonly writesEnabled: boolean;
  readonly repositories: readonly RepositoryEntry[];
  readonly installations?: readonly Installation[];
  /** Address of GitHub's API; only for Enterprise. */
  readonly endpoint?: string;
  /** Path inside of the backend's container; absent: the path that `server init` uses. */
  readonly privateKeyPath?: string;
}

/** Settings of `oratorio.config.json` that the deployment reads. */
export interface StackConfig {
  readonly appId: string | null;
  /** Path inside of the backend's container. */
  readonly privateKeyPath: string;
  readonly endpoint: string;
  readonly writesEnabled: boolean;
  readonly repositories: readonly (Omit<RepositoryEntry, 'workspacePath'> & {
    /** Null: no route leads to it, so it is not reviewed. */
    readonly workspacePath: string | null;
  })[];
  readonly installations: readonly (Installation & { readonly instance: string })[];
}

const paths = {
  repositories: ['Oratorio', 'GitHub', 'Repositories'],
  routes: ['Oratorio', 'AgentServer', 'RepositoryWorkspaceRoutes'],
  autoReview: ['Oratorio', 'Automation', 'AutoReviewRepositories'],
} as const;

/** A new `oratorio.config.json` (specification §2.9). No secret is in it. @throws DeployError (invalidInput) for repositories that collide */
export function newBackendConfig(answers: ConfigAnswers): string {
  const { appId, writesEnabled, installations = [], endpoint } = answers;
  const document = {
    Oratorio: {
      GitHub: {
        ...(endpoint === undefined ? {} : { Endpoint: endpoint }),
        AppId: /^\d{1,15}$/.test(appId) ? Number(appId) : appId,
        PrivateKeyPath: answers.privateKeyPath ?? defaults.privateKeyPath,
        WritesEnabled: writesEnabled,
        ...(installations.length === 0
          ? {}
          : { InstallationProfiles: installations.map((each) => profileOf(each, endpoint)) }),
        Repositories: [],
      },
      AgentServer: { RepositoryWorkspaceRoutes: [] },
      Automation: {
        AutoReviewRepositories: [],
        // Automatic reviews stay drafts without it.
        AutoReviewPublishEnabled: writesEnabled && answers.repositories.some(({ autoReview }) => autoReview),
      },
    },
  };
  return answers.repositories.reduce(withRepository, `${JSON.stringify(document, null, 2)}\n`);
}

function profileOf({ owner, installationId }: Installation, endpoint: string | undefined) {
  return { Instance: instanceOf(endpoint), Owner: owner, InstallationId: installationId, Source: 'manual' };
}

function instanceOf(endpoint = 'https://api.github.com'): string {
  const { host } = new URL(endpoint);
  return host === 'api.github.com' ? 'github.com' : host;
}

/**
 * Adds a repository, its route and, if wanted, its automatic review. No other character changes, unknown keys
 * included. For a repository that exists already, only missing parts are added.
 *
 * @throws DeployError (invalidInput) when its name is invalid, it is routed elsewhere, or another repository has its checkout
 */
export function withRepository(text: string, entry: RepositoryEntry): string {
  const settings = settingsOf(text);
  const key = requireKey(entry.repository);
  const add = (edited: string, path: readonly string[], element: unknown): string =>
    appendElement(edited, spelledIn(edited, path), element);
  let edited = text;
  const { Repositories } = settings.GitHub;
  if (!Repositories.some((name) => keyOf(name) === key)) edited = add(edited, paths.repositories, entry.repository);
  if (isRouteMissing(settings, key, entry))
    edited = add(edited, paths.routes, { Project: entry.repository, WorkspacePath: entry.workspacePath });
  if (entry.autoReview && !isReviewed(settings, key)) edited = add(edited, paths.autoReview, entry.repository);
  return edited;
}

/** @throws DeployError (invalidInput) */
function isRouteMissing(settings: StackSettings, key: string, { repository, workspacePath }: RepositoryEntry): boolean {
  const routes = settings.AgentServer.RepositoryWorkspaceRoutes;
  const other = routes.find((route) => route.WorkspacePath === workspacePath && keyOf(route.Project) !== key);
  if (other)
    throw new DeployError(
      'invalidInput',
      `${workspacePath} is the checkout of another repository, ${other.Project}.`,
      see,
    );
  const own = routes.findLast(({ Project }) => keyOf(Project) === key);
  if (own !== undefined && own.WorkspacePath !== workspacePath)
    throw new DeployError('invalidInput', `${repository} has its checkout at ${own.WorkspacePath} already.`, see);
  return own === undefined;
}

const see = `See AgentServer.RepositoryWorkspaceRoutes in ${stackFiles.config}.`;

/** Reads `oratorio.config.json`. @throws DeployError (invalidInput) naming the key and its type, never a value */
export function readBackendConfig(text: string): StackConfig {
  const settings = settingsOf(text);
  const { AppId, PrivateKeyPath, Endpoint, WritesEnabled, Repositories, InstallationProfiles } = settings.GitHub;
  const routes = new Map(
    settings.AgentServer.RepositoryWorkspaceRoutes.map(({ Project, WorkspacePath }) => [keyOf(Project), WorkspacePath]),
  );
  const named = new Map(Repositories.map((name, index) => [requireKey(name, `GitHub.Repositories.${index}`), name]));
  return {
    appId: AppId === undefined ? null : String(AppId),
    privateKeyPath: PrivateKeyPath,
    endpoint: Endpoint,
    writesEnabled: WritesEnabled,
    repositories: [...named].map(([key, repository]) => ({
      repository,
      workspacePath: routes.get(key) ?? null,
      autoReview: isReviewed(settings, key),
    })),
    installations: InstallationProfiles.map(({ Instance, Owner, InstallationId }) => ({
      instance: Instance,
      owner: Owner,
      installationId: InstallationId,
    })),
  };
}

const isReviewed = ({ Automation: { AutoReviewRepositories } }: StackSettings, key: string): boolean =>
  AutoReviewRepositories.some((name) => name === '*' || keyOf(name) === key);

/** `owner/name` in lower case, of that or of `github:host/owner/name`; undefined when it is neither. */
function keyOf(project: string): string | undefined {
  const checked = checkFullName(/^github:[^/]+\/([^/]+\/[^/]+)$/i.exec(project)?.[1] ?? project);
  return 'repository' in checked ? checked.repository.key : undefined;
}

function requireKey(name: string, keyPath?: string): string {
  const key = keyOf(name);
  if (key !== undefined) return key;
  const what = keyPath === undefined ? JSON.stringify(name) : `${stackFiles.config}: ${keyPath}`;
  throw new DeployError('invalidInput', `${what} must be a repository such as owner/name.`);
}
