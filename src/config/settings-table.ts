import {
  approvalMode,
  type Combine,
  hasTheFirstKey,
  isLoopbackOrUsers,
  isUnchosenModel,
  isUsersAlone,
  isWithinUsersHosts,
  isWithinUsersTools,
  lowerLimit,
  namesProvider,
  restrictingRules,
  smaller,
  staysSwitchedOff,
  strictest,
  union,
} from './combine.ts';
import { isJsonObject, type JsonObject } from './parse.ts';

/** Layers that may set a setting. */
export interface SettingRule {
  /** Dotted path in the spelling of the documentation; a section stands for everything in it. */
  readonly path: string;
  /** Ignored in a workspace's file until the user trusts the workspace (design §9). */
  readonly isSensitive?: true;
  /** Sensitive only with such a value. */
  readonly isSensitiveWhen?: (value: unknown) => boolean;
  /** Effect of the setting, for the documentation. */
  readonly why: string;
  /** Rule when user and trusted workspace both set it; absent: the workspace's value. */
  readonly combine?: Combine;
  /** Value of a workspace that is not trusted, as far as it only restricts; absent: it is ignored. */
  readonly restricts?: Combine;
  /** Text for the model: without trust it is shown marked as untrusted. */
  readonly isText?: true;
  /** Gives no right beyond cost, text and records: the page of a trusted workspace may change it. */
  readonly isOnPage?: true;
}

/**
 * Every setting that a workspace must not decide freely. Names that the schema does not have yet are reserved: they are
 * part of the user's agreement, so that a later version does not apply an old agreement to a new setting.
 */
export const settingsTable: readonly SettingRule[] = [
  { path: 'Provider', isSensitive: true, why: 'sends prompts and keys to an address' },
  { path: 'Providers', isSensitive: true, why: 'sends prompts and keys to an address' },
  { path: 'EndPoint', isSensitive: true, why: 'sends prompts and keys to an address' },
  { path: 'Proxy', isSensitive: true, why: 'sends prompts and keys through another host' },
  { path: 'ApiKey', isSensitive: true, why: 'decides which account a request is made with' },
  { path: 'ApiKeyCommand', isSensitive: true, why: 'starts a program' },
  { path: 'Models', isSensitive: true, why: 'decides the prices that a budget counts' },
  { path: 'Wire', isSensitive: true, why: 'decides the form of requests to a provider' },
  {
    path: 'Model',
    isSensitiveWhen: namesProvider,
    why: 'decides the cost of an answer and the receiver of prompts',
    restricts: isUnchosenModel,
  },
  { path: 'SystemPrompt', isSensitive: true, isOnPage: true, why: 'instructs the agent', isText: true },
  {
    path: 'MaxToolCallRounds',
    isSensitive: true,
    isOnPage: true,
    why: 'raises the cost of a turn',
    restricts: smaller,
  },
  { path: 'UpstreamRetries', isSensitive: true, isOnPage: true, why: 'raises the cost of a turn', restricts: smaller },
  { path: 'Compaction', isSensitive: true, isOnPage: true, why: 'decides how much is sent with a request' },
  { path: 'SubAgent', isSensitive: true, isOnPage: true, why: 'raises the cost of a turn' },
  { path: 'SubAgent.MaxDepth', why: 'raises the cost of a turn', restricts: smaller },
  { path: 'SubAgent.MaxConcurrency', why: 'raises the cost of a turn', restricts: smaller },
  { path: 'SubAgent.MaxToolCallRounds', why: 'raises the cost of a turn', restricts: smaller },
  { path: 'FallbackModels', isSensitive: true, why: 'sends prompts to another provider' },
  { path: 'ReasoningEffort', isSensitive: true, why: 'raises the cost of an answer' },
  { path: 'MaxOutputTokens', isSensitive: true, why: 'raises the cost of an answer' },
  { path: 'Budget', isSensitive: true, why: 'limits the costs' },
  { path: 'Budget.TurnUsd', why: 'limits the costs', combine: lowerLimit, restricts: lowerLimit },
  { path: 'Budget.SessionUsd', why: 'limits the costs', combine: lowerLimit, restricts: lowerLimit },
  { path: 'Budget.DayUsd', why: 'limits the costs', combine: lowerLimit, restricts: lowerLimit },
  { path: 'Agent', isSensitive: true, why: 'starts a program' },
  { path: 'McpServers', isSensitive: true, why: 'starts programs and sends data to addresses' },
  { path: 'Hooks', isSensitive: true, why: 'starts programs' },
  { path: 'EnabledTools', why: 'limits the tools of the agent', combine: isWithinUsersTools },
  { path: 'Permissions', isSensitive: true, why: 'answers approvals' },
  {
    path: 'Permissions.DefaultApprovalPolicy',
    why: 'answers approvals',
    combine: strictest(['interrupt', 'default', 'autoApprove']),
    restricts: strictest(['interrupt', 'default', 'autoApprove']),
  },
  { path: 'Permissions.BlockedPaths', why: 'protects files', combine: union, restricts: union },
  { path: 'Permissions.Rules', why: 'answers approvals', combine: union, restricts: restrictingRules },
  { path: 'Permissions.WorktreeRoot', why: 'opens directories to conversations', combine: isUsersAlone },
  { path: 'Tools.Shell', isSensitive: true, why: 'decides how commands run' },
  { path: 'Tools.Shell.VisibleHome', why: 'shows files of the home to commands', combine: isUsersAlone },
  {
    path: 'Tools.Shell.Sandbox',
    why: 'contains commands',
    combine: strictest(['required', 'auto', 'off']),
    restricts: strictest(['required', 'auto', 'off']),
  },
  {
    path: 'Tools.Shell.Network',
    why: 'lets sandboxed commands send data',
    combine: strictest(['deny', 'allow']),
    restricts: strictest(['deny', 'allow']),
  },
  {
    path: 'Tools.File.MaxFileBytes',
    isSensitive: true,
    isOnPage: true,
    why: 'raises the size of content that is read',
    restricts: smaller,
  },
  {
    path: 'Tools.Web.MaxBytes',
    isSensitive: true,
    isOnPage: true,
    why: 'raises the size of content that is read',
    restricts: smaller,
  },
  {
    path: 'Tools.Web.MaxChars',
    isSensitive: true,
    isOnPage: true,
    why: 'raises the cost of an answer',
    restricts: smaller,
  },
  {
    path: 'Tools.Web.AllowedHosts',
    isSensitive: true,
    why: 'opens hosts to requests',
    combine: isWithinUsersHosts,
    restricts: isWithinUsersHosts,
  },
  { path: 'Tools.Web.SearchProvider', isSensitive: true, why: 'sends queries to an address' },
  { path: 'Tools.Web.SearchUrl', isSensitive: true, why: 'sends queries to an address' },
  { path: 'Tools.Web.SearchApiKey', isSensitive: true, why: 'decides which account a query is made with' },
  { path: 'Quota', isSensitive: true, why: 'lets turns continue unattended' },
  {
    path: 'Quota.Wait',
    why: 'lets turns continue unattended',
    combine: strictest(['never', 'ask', 'auto']),
    restricts: strictest(['never', 'ask', 'auto']),
  },
  { path: 'Quota.MaxWaitHours', why: 'lets turns continue unattended', combine: smaller, restricts: smaller },
  { path: 'Turns', isSensitive: true, why: 'lets turns continue unattended' },
  {
    path: 'Turns.Resume',
    why: 'lets turns continue unattended',
    combine: strictest(['never', 'ask', 'auto']),
    restricts: strictest(['never', 'ask', 'auto']),
  },
  { path: 'Turns.MaxResumes', why: 'lets turns continue unattended', combine: smaller, restricts: smaller },
  { path: 'Turns.ResumeWithinHours', why: 'lets turns continue unattended', combine: smaller, restricts: smaller },
  { path: 'Turns.HandOverSeconds', why: 'delays a restart', combine: smaller, restricts: smaller },
  {
    path: 'Turns.KeepCommands',
    why: 'lets commands outlive their agent server',
    combine: strictest([false, true]),
    restricts: strictest([false, true]),
  },
  { path: 'Turns.KeepSeconds', why: 'lets commands outlive their agent server', combine: smaller, restricts: smaller },
  {
    path: 'Turns.ResumeAgents',
    why: 'lets an external agent continue unattended',
    combine: strictest([false, true]),
    restricts: strictest([false, true]),
  },
  { path: 'Automations', isSensitive: true, isOnPage: true, why: 'runs the agent unattended' },
  {
    path: 'Automations.Enabled',
    why: 'runs the agent unattended',
    combine: staysSwitchedOff,
    restricts: strictest([false, true]),
  },
  { path: 'Automations.MaxConcurrentRuns', why: 'raises the cost of runs', restricts: smaller },
  { path: 'Automations.TurnTimeoutMinutes', why: 'raises the cost of runs', restricts: smaller },
  { path: 'Automations.MaxRetries', why: 'raises the cost of runs', restricts: smaller },
  { path: 'Tracing', isSensitive: true, isOnPage: true, why: 'decides the content and the age of records' },
  { path: 'Api', isSensitive: true, why: 'opens a listener' },
  { path: 'Api.Enabled', why: 'opens a listener', combine: staysSwitchedOff, restricts: strictest([false, true]) },
  { path: 'Api.Host', why: 'decides which machines can connect', combine: isLoopbackOrUsers },
  { path: 'Api.ApiKey', why: 'authenticates clients', combine: hasTheFirstKey },
  {
    path: 'Api.AutoApprove',
    why: 'answers approvals',
    combine: strictest([false, true]),
    restricts: strictest([false, true]),
  },
  { path: 'Api.ApprovalMode', why: 'answers approvals', combine: approvalMode, restricts: approvalMode },
  {
    path: 'Api.EnabledTools',
    why: 'limits the tools of the agent',
    combine: isWithinUsersTools,
    restricts: isWithinUsersTools,
  },
  { path: 'AgUi', isSensitive: true, why: 'opens a listener' },
  { path: 'AgUi.Enabled', why: 'opens a listener', combine: staysSwitchedOff, restricts: strictest([false, true]) },
  { path: 'AgUi.Host', why: 'decides which machines can connect', combine: isLoopbackOrUsers },
  { path: 'AgUi.ApiKey', why: 'authenticates clients', combine: hasTheFirstKey },
  { path: 'DashBoard', isSensitive: true, why: 'opens a listener' },
  {
    path: 'DashBoard.Enabled',
    why: 'opens a listener',
    combine: staysSwitchedOff,
    restricts: strictest([false, true]),
  },
  { path: 'DashBoard.Host', why: 'decides which machines can connect', combine: isLoopbackOrUsers },
  {
    path: 'DashBoard.Auth',
    why: 'authenticates clients',
    combine: strictest(['token', 'none']),
    restricts: strictest(['token', 'none']),
  },
  { path: 'DashBoard.Username', why: 'authenticates clients', combine: isUsersAlone },
  { path: 'DashBoard.Password', why: 'authenticates clients', combine: isUsersAlone },
  { path: 'DashBoard.AllowedHosts', why: 'decides which pages can connect', combine: isUsersAlone },
  { path: 'AppServer', isSensitive: true, why: 'opens a listener' },
  { path: 'AppServer.WebSocket.Host', why: 'decides which machines can connect', combine: isLoopbackOrUsers },
  { path: 'AppServer.WebSocket.Token', why: 'authenticates clients', combine: hasTheFirstKey },
  { path: 'Supervision', isSensitive: true, why: 'decides how programs are started and ended' },
  { path: 'Supervision.PassEnvironment', why: 'hands environment variables on', combine: isUsersAlone },
  { path: 'Place', isSensitive: true, why: 'decides where the agent server runs' },
  {
    path: 'Place.Default',
    why: 'decides where the agent server runs',
    combine: strictest(['container', 'local']),
    restricts: strictest(['container', 'local']),
  },
  {
    path: 'Place.Container.Network',
    why: 'lets commands send data',
    combine: strictest(['none', 'bridge']),
    restricts: strictest(['none', 'bridge']),
  },
  ...['Engine', 'MemoryMiB', 'Cpus', 'Pids', 'Mounts', 'AllowRoot'].map((name) => ({
    path: `Place.Container.${name}`,
    why: 'decides the rights of the container',
    combine: isUsersAlone,
  })),
  { path: 'Place.Pod', why: 'decides the cluster and the rights of the pod', combine: isUsersAlone },
  { path: 'Checkpoints', why: 'lets turns be taken back', combine: isUsersAlone },
  { path: 'Telemetry', why: 'sends conversations to an address', combine: isUsersAlone },
  { path: 'Notifications', why: 'sends notices to an address', combine: isUsersAlone },
  { path: 'Hub', why: 'opens a listener', combine: isUsersAlone },
  { path: 'Hosts', why: 'starts programs and reaches other machines', combine: isUsersAlone },
];

/** A key and the settings that decide where it is sent. */
export interface BoundCredential {
  readonly credential: string;
  readonly addresses: readonly string[];
}

/** A credential travels only to an address of its own layer: a stronger layer that sets an address drops a weaker one's key. */
export const boundCredentials: readonly BoundCredential[] = [
  { credential: 'ApiKey', addresses: ['EndPoint', 'Provider'] },
  { credential: 'ApiKeyCommand', addresses: ['EndPoint', 'Provider'] },
  { credential: 'Notifications.Ntfy.Token', addresses: ['Notifications.Ntfy.Url'] },
  { credential: 'Tools.Web.SearchApiKey', addresses: ['Tools.Web.SearchProvider', 'Tools.Web.SearchUrl'] },
];

/** Sections whose entries hold an address and its credentials together: a stronger layer's entry replaces a weaker one's. */
export const wholeEntries: readonly string[] = ['McpServers', 'Providers'];

export const sensitivePaths: readonly string[] = settingsTable.flatMap(({ path, isSensitive }) =>
  isSensitive ? [path] : [],
);

/** Top-level names of the table that the schema does not have: matched without case, as all keys are. */
export const reservedNames: readonly string[] = ['Hooks'];

/** The rule that decides about a setting: its own, else that of the section around it. */
export function ruleOf(keyPath: string): SettingRule | undefined {
  const around = settingsTable.filter(({ path }) => keyPath === path || keyPath.startsWith(`${path}.`));
  return around.sort((a, b) => b.path.length - a.path.length)[0];
}

/** The sensitive path that a setting belongs to; undefined: it is not sensitive. */
export const sensitivePathOf = (keyPath: string): string | undefined =>
  sensitivePaths.find((path) => keyPath === path || keyPath.startsWith(`${path}.`));

/** Whether a workspace's file gives rights by this setting, which its page must not. */
export const givesRights = (keyPath: string): boolean =>
  settingsTable.some(
    ({ path, isSensitive, isOnPage }) =>
      isSensitive && !isOnPage && (keyPath === path || keyPath.startsWith(`${path}.`)),
  );

/** Sensitive settings of a file, by path. A section without a setting in it asks for nothing. */
export function sensitiveSettings(settings: JsonObject): ReadonlyMap<string, unknown> {
  const found = settingsTable.flatMap(({ path, isSensitive, isSensitiveWhen }) => {
    const value = valueAt(settings, path);
    return value !== undefined && (isSensitive || isSensitiveWhen?.(value)) ? [[path, value] as const] : [];
  });
  return new Map(found.filter(([, value]) => !isEmptySection(value)));
}

const isEmptySection = (value: unknown): boolean => isJsonObject(value) && Object.keys(value).length === 0;

/** The value at a dotted path; undefined when the object does not have it. */
export function valueAt(settings: unknown, path: string): unknown {
  let inside = settings;
  for (const key of path.split('.')) {
    if (!isJsonObject(inside) || !Object.hasOwn(inside, key)) return undefined;
    inside = inside[key];
  }
  return inside;
}

/** A copy with `value` at a dotted path; undefined takes the setting out. Sections on the way must exist. */
export function withValue(settings: JsonObject, path: string, value: unknown): JsonObject {
  const [key = '', ...rest] = path.split('.');
  if (!Object.hasOwn(settings, key)) return settings;
  const entries = Object.entries(settings).flatMap(([name, inside]) => {
    if (name !== key) return [[name, inside] as const];
    if (rest.length > 0)
      return [[name, isJsonObject(inside) ? withValue(inside, rest.join('.'), value) : inside] as const];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(entries);
}
