import type { BackendSettings } from '../settings/index.ts';
import { configuredRepositories, instanceOf } from '../settings/index.ts';
import type { IntakeRules } from './decide.ts';

const cache = new WeakMap<BackendSettings, IntakeRules>();

/** Derives the rules of the intake from the settings; once for each state of them. */
export function rulesOf(settings: BackendSettings): IntakeRules {
  const known = cache.get(settings);
  if (known) return known;
  const { GitHub } = settings;
  const repositories = configuredRepositories(settings);
  const rules: IntakeRules = {
    secrets: GitHub.WebhookSecret === '' ? [] : [GitHub.WebhookSecret, GitHub.WebhookSecretPrevious].filter(Boolean),
    instance: instanceOf(GitHub.Endpoint),
    handle: GitHub.Handle,
    appId: GitHub.AppId === undefined ? undefined : String(GitHub.AppId),
    repositories: new Map(
      repositories.map((each) => [each.repositoryKey, { hasWorkspaceRoute: each.workspacePath !== undefined }]),
    ),
    owners: new Set(repositories.map(({ owner }) => owner.toLowerCase())),
  };
  cache.set(settings, rules);
  return rules;
}
