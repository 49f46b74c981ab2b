/**
 * `oratorio.config.json` of the review backend: one object `Oratorio` with PascalCase keys, matched in any case. The environment
 * wins: `Oratorio__GitHub__AppId=7`. Secrets may come from the environment or from files that are only named here.
 */
import * as v from 'valibot';
import { findingSeverities, onPushModes, ownAgent } from '../../protocol/index.ts';

const flag = (value: boolean, text: string) =>
  v.pipe(v.optional(v.boolean('true or false'), value), v.description(text));
const words = (value: string, text: string) => v.pipe(v.optional(v.string('a text'), value), v.description(text));
const list = (text: string, value: string[] = []) =>
  v.pipe(
    v.optional(v.array(v.pipe(v.string(), v.trim(), v.nonEmpty()), 'a list of texts'), value),
    v.description(text),
  );
function whole(value: number, min: number, max: number, text: string) {
  const range = `a whole number from ${min} to ${max}`;
  return v.pipe(
    v.optional(v.pipe(v.number(range), v.integer(range), v.minValue(min, range), v.maxValue(max, range)), value),
    v.description(text),
  );
}
const httpUrl = (value: string, text: string) =>
  v.pipe(
    v.optional(
      v.pipe(
        v.string('an http or https URL'),
        v.check((url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol), 'an http or https URL'),
      ),
      value,
    ),
    v.description(text),
  );

const Route = v.object({
  Project: v.pipe(v.string(), v.description('`owner/repo`, or `github:HOST/owner/repo`.')),
  WorkspacePath: v.pipe(
    v.string(),
    v.regex(/^\//, 'an absolute path'),
    v.description('Absolute path of its checkout, the same for the backend and the agent server.'),
  ),
});
const Profile = v.object({
  Instance: v.pipe(v.optional(v.string(), 'github.com'), v.description('Host of the source.')),
  Owner: v.pipe(v.string(), v.description('User or organisation whose repositories it is for.')),
  InstallationId: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.description("Number of the App's installation there."),
  ),
  Source: v.pipe(v.optional(v.string(), 'manual'), v.description('Who has written this entry.')),
});

/** External agents read every file of the user, run any command, and reach the network. */
const unconfined = `"${ownAgent}": nothing keeps an external agent from reading other files, running commands and sending both away, as a hostile pull request may ask`;

export const BackendSettings = v.object({
  Settings: v.optional(
    v.object({
      Writable: flag(true, 'Settings may be changed over the API; false answers 403 configWritesForbidden.'),
    }),
    {},
  ),
  Server: v.optional(
    v.object({
      Host: words('127.0.0.1', 'Listen address.'),
      Port: whole(5087, 0, 65_535, 'Listen port.'),
      ServiceToken: words('', 'Bearer token of the API; empty: one is made and kept in the state directory.'),
      AllowedHosts: list('Host names it is reached by besides localhost and plain addresses.'),
      TrustedProxies: list('Addresses or names of proxies whose X-Forwarded-For is believed, besides loopback.'),
      Role: v.pipe(
        v.optional(v.picklist(['all', 'web', 'worker'], '"all", "web" or "worker"'), 'all'),
        v.description('web: webhook and API only. worker: reviews only.'),
      ),
    }),
    {},
  ),
  Storage: v.optional(
    v.object({
      ConnectionString: words('', 'postgres://… for PostgreSQL; empty: SQLite in the state directory.'),
      DeliveryRetentionDays: whole(30, 1, 3_650, 'Retention of deliveries, in days.'),
      RunRetentionDays: whole(180, 1, 3_650, 'Retention of finished runs and their drafts, in days.'),
    }),
    {},
  ),
  Database: v.optional(
    v.object({
      ListenUrl: words(
        '',
        'postgres://… past pgbouncer for notifications, which its transaction mode does not forward; empty: Storage.ConnectionString.',
      ),
    }),
    {},
  ),
  GitHub: v.optional(
    v.object({
      Endpoint: httpUrl('https://api.github.com', 'API base URL; for Enterprise https://HOST/api/v3.'),
      GitEndpoint: words('', 'Base URL of git over https; empty: derived from Endpoint.'),
      AppId: v.pipe(
        v.optional(v.union([v.pipe(v.string(), v.nonEmpty()), v.pipe(v.number(), v.integer(), v.minValue(1))])),
        v.description("The App's id; without it GitHub cannot be asked."),
      ),
      PrivateKeyPath: words('', "File with the App's private key."),
      PrivateKey: words('', "The App's private key itself, for the environment."),
      InstallationProfiles: v.pipe(
        v.optional(v.array(Profile), []),
        v.description('Installations that are not looked for: which one is used for an owner.'),
      ),
      WebhookSecret: words('', 'Secret of the webhook; without it every delivery is answered 503.'),
      WebhookSecretPrevious: words('', 'Also accepted while the secret is being changed.'),
      Repositories: list('owner/name of the repositories to review.'),
      WritesEnabled: flag(false, 'Reviews may be written back to GitHub.'),
      Handle: words('oratorio', 'Name that begins a mention, without the @.'),
    }),
    {},
  ),
  DotCraft: v.optional(v.unknown()),
  AgentServer: v.optional(
    v.object({
      Agent: v.pipe(
        v.optional(v.picklist([ownAgent], unconfined), ownAgent),
        v.description(
          'Agent that reviews, also where another one does the turns of the workspace. Others are refused: nothing confines them to reading.',
        ),
      ),
      RepositoryWorkspaceRoutes: v.pipe(
        v.optional(v.array(Route), []),
        v.description('Where each repository has its checkout; one without a route is not reviewed.'),
      ),
      AppServerUrl: words('', 'ws:// address of the agent server; empty: found through the Hub.'),
      AppServerToken: words('', 'Its token.'),
      HubDiscoveryEnabled: flag(true, 'Finds or starts the agent server of a route through the Hub.'),
      ManagedWorktreesEnabled: flag(
        true,
        'Known from earlier configurations; reviews run in worktrees of their own in any case.',
      ),
      WorktreeRoot: words('', 'Where worktrees are made; empty: .oratorio/worktrees in each workspace.'),
      GlobalMaxActiveRuns: whole(2, 1, 1_000, 'Reviews at once.'),
      MaxActiveRunsPerRepository: whole(1, 1, 1_000, 'Reviews at once in one repository.'),
      MaxActiveRunsPerSource: whole(2, 1, 1_000, 'Reviews at once in one source.'),
      MaxRunAttempts: whole(3, 1, 20, 'Attempts of one review.'),
      RetryBackoffSeconds: whole(10, 0, 300, 'Before the second attempt; doubled with each.'),
      MaxRetryBackoffSeconds: whole(300, 1, 3_600, 'Longest pause before an attempt.'),
      ConnectTimeoutSeconds: whole(5, 1, 60, 'To reach the agent server.'),
      RunTimeoutSeconds: whole(1_800, 30, 7_200, 'For one review.'),
      StallTimeoutSeconds: whole(300, 5, 7_200, 'Silence of the agent after which a review is ended and tried again.'),
      SucceededWorktreeRetentionHours: whole(24, 0, 8_760, 'Retention of worktrees of finished reviews, in hours.'),
      FailedWorktreeRetentionHours: whole(168, 0, 8_760, 'Retention of worktrees of failed reviews, in hours.'),
    }),
    {},
  ),
  Automation: v.optional(
    v.object({
      AutoReviewRepositories: list('Repositories whose pull requests are reviewed by themselves; * means all.'),
      AutoReviewPublishEnabled: flag(
        false,
        'Drafts of automatic reviews are published by themselves where writes are enabled.',
      ),
      AutoReviewPublishRepositories: list('Only in these repositories; empty: in all.'),
      SyncIntervalSeconds: whole(300, 10, 86_400, 'Pause between two polls of a repository, in seconds.'),
      ReconcileIntervalSeconds: whole(600, 30, 86_400, 'Pause between two searches for missed deliveries, in seconds.'),
    }),
    {},
  ),
  Review: v.optional(
    v.object({
      OnPush: v.pipe(
        v.optional(v.picklist(onPushModes), 'incremental'),
        v.description('never, incremental (new commits), full, or onRequest (mention only).'),
      ),
      PauseAfter: whole(
        5,
        0,
        1_000,
        'Automatic reviews of one pull request after which only a mention starts one; 0: never pauses.',
      ),
      MaxFindings: whole(10, 1, 200, 'Findings of one review; the least severe are listed in the summary only.'),
      MinSeverity: v.pipe(
        v.optional(v.picklist(findingSeverities), 'minor'),
        v.description('Less severe findings are not published.'),
      ),
      QuietWhenClean: flag(true, 'A review without findings writes nothing but its check run.'),
      CheckRun: flag(true, 'Shows each review as a check run.'),
      Drafts: flag(false, 'Also reviews draft pull requests.'),
      Forks: v.pipe(
        v.optional(v.picklist(['none', 'collaborators', 'all']), 'collaborators'),
        v.description('Pull requests from forks that are reviewed by themselves.'),
      ),
      Bots: flag(false, 'Also reviews pull requests of bots.'),
      BaseBranches: list('Patterns of base branches; empty: all.'),
      IgnorePaths: list('Globs of files that are not reviewed.'),
      IgnoreTitles: list('Pull requests whose title contains one of these are left alone.', ['WIP', 'DO NOT REVIEW']),
      IgnoreLabels: list('Pull requests with one of these labels are left alone.', ['skip-review']),
      IgnoreAuthors: list('Pull requests of these are left alone.'),
      MaxFiles: whole(300, 1, 3_000, 'Files of one review; the rest is named in the summary.'),
      MaxDiffBytes: whole(1_048_576, 1_024, 104_857_600, 'Bytes of diff of one review.'),
      Instructions: words('', 'Instructions to the reviewers of every repository.'),
    }),
    {},
  ),
});
export type BackendSettings = v.InferOutput<typeof BackendSettings>;
export const BackendFile = v.object({ Oratorio: v.optional(BackendSettings, {}) });

/** Settings that are never shown, logged or published. */
export const secretSettings = [
  'Server.ServiceToken',
  'Storage.ConnectionString',
  'Database.ListenUrl',
  'GitHub.PrivateKey',
  'GitHub.WebhookSecret',
  'GitHub.WebhookSecretPrevious',
  'AgentServer.AppServerToken',
] as const;
