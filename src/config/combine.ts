import { isLoopback } from '../lib/index.ts';
import { isJsonObject } from './parse.ts';

/** Input of a combination. Values are expanded and not validated yet. */
export interface CombineInput {
  /** The user's value; undefined: the default holds. */
  readonly user: unknown;
  readonly workspace: unknown;
  /** Default of the schema. */
  readonly fallback: unknown;
  /** Other settings of the two layers, by dotted path. */
  readonly userAt: (path: string) => unknown;
  readonly workspaceAt: (path: string) => unknown;
  /** Refuses the workspace's value. */
  readonly refuse: (expected: string, received: string) => never;
}

/**
 * Decides the effective value of one setting from the user's and a workspace's. Never weaker than the user's. An invalid
 * value is returned unchanged: validation names it.
 *
 * @returns undefined: the workspace has no say, the user's value or the default holds
 */
export interface Combine {
  (input: CombineInput): unknown;
  /** Effect, in words for the documentation. */
  readonly words: string;
}

const named = (words: string, combine: (input: CombineInput) => unknown): Combine => Object.assign(combine, { words });

export const isUsersAlone = named('only your own file', ({ user }) => user);

/** @param order the strictest first */
export const strictest = (order: readonly unknown[]): Combine =>
  named(`the stricter: ${order.map(String).join(', then ')}`, ({ user, workspace, fallback }) =>
    stricterOf(order, user ?? fallback, workspace),
  );

function stricterOf(order: readonly unknown[], user: unknown, workspace: unknown): unknown {
  const [userRank, workspaceRank] = [order.indexOf(user), order.indexOf(workspace)];
  if (workspaceRank < 0 || userRank < 0) return workspaceRank < 0 ? workspace : user;
  return workspaceRank <= userRank ? workspace : user;
}

/** `policy` approves or declines as `AutoApprove` says; `interactive` asks, which is between the two. */
export const approvalMode = named('the stricter, Api.AutoApprove considered', (input) => {
  const { user = input.fallback, workspace, userAt, workspaceAt } = input;
  if (userAt('Api.AutoApprove') === false) return stricterOf(['policy', 'interactive'], user, workspace);
  if (workspaceAt('Api.AutoApprove') === false) return workspace;
  return stricterOf(['interactive', 'policy'], user, workspace);
});

export const staysSwitchedOff = named('off when your own file says false', ({ user, workspace }) =>
  user === false ? user : workspace,
);

/** The lower of two limits; 0 stands for no limit. */
export const lowerLimit = named('the lower limit', ({ user, workspace }) => {
  if (typeof user !== 'number' || typeof workspace !== 'number' || user <= 0) return workspace;
  return workspace <= 0 ? user : Math.min(user, workspace);
});

export const hasTheFirstKey = named('your own when you have set one', ({ user, workspace }) =>
  user === undefined || user === '' ? workspace : user,
);

export const isLoopbackOrUsers = named('your own, or loopback', ({ user, workspace }) => {
  if (typeof workspace !== 'string' || workspace.trim() === '') return workspace;
  return isLoopback(workspace.trim()) ? workspace : user;
});

export const union = named('both lists together', ({ user, workspace }) =>
  Array.isArray(user) && Array.isArray(workspace) ? [...new Set<unknown>([...user, ...workspace])] : workspace,
);

const lower = (value: unknown): unknown => (typeof value === 'string' ? value.toLowerCase() : value);

/** Intersection of both lists, in the user's spelling: entries that the user has allowed. */
function common(user: readonly unknown[], workspace: readonly unknown[]): readonly unknown[] {
  if (workspace.some((each) => typeof each !== 'string')) return workspace;
  const wanted = new Set(workspace.map(lower));
  return user.filter((each) => wanted.has(lower(each)));
}

/** Empty enables all, so that two lists without a common tool have no valid result. */
export const isWithinUsersTools = named('tools of both lists', ({ user, workspace, refuse }) => {
  if (!Array.isArray(workspace) || !Array.isArray(user) || user.length === 0) return workspace;
  if (workspace.length === 0) return user;
  const both = common(user, workspace);
  if (both.length > 0) return both;
  return refuse('a list with a tool that the same list of your own config.json has', 'a list without one');
});

export const isWithinUsersHosts = named('hosts of both lists', ({ user, workspace }) =>
  Array.isArray(workspace) ? common(Array.isArray(user) ? user : [], workspace) : workspace,
);

/** The smaller number. An invalid value is returned unchanged: validation names it. */
export const smaller = named('a smaller number', ({ user, workspace, fallback }) => {
  const limit = user ?? fallback;
  if (typeof limit !== 'number' || typeof workspace !== 'number') return workspace;
  return workspace < limit ? workspace : user;
});

/** Rules that ask or deny, in addition to the user's rules. */
export const restrictingRules = named('rules that ask or deny', ({ user, workspace }) => {
  if (!Array.isArray(workspace)) return user;
  const rules = workspace.filter(
    (rule) => isJsonObject(rule) && (rule['Decision'] === 'deny' || rule['Decision'] === 'ask'),
  );
  return rules.length === 0 ? user : rules;
});

/** Whether a model is written as NAME/MODEL, which chooses a provider of the user and its account. */
export const namesProvider = (model: unknown): boolean => typeof model === 'string' && model.includes('/');

/** Settings that choose the service and the account that pay for a model. */
const accounts = ['Provider', 'Providers', 'EndPoint', 'ApiKey', 'ApiKeyCommand'];
const isEmpty = (value: unknown): boolean =>
  value === undefined || value === '' || (isJsonObject(value) && Object.keys(value).length === 0);

/** A name decides the price of the user's service, so it holds only where the user has chosen neither model nor service. */
export const isUnchosenModel = named(
  'a name without a provider, when your own file has neither a model nor a service',
  ({ user, workspace, userAt }) => {
    const isUnchosen = isEmpty(user) && accounts.every((path) => isEmpty(userAt(path)));
    return isUnchosen && !namesProvider(workspace) ? workspace : user;
  },
);
