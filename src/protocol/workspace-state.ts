/**
 * State of a workspace in words, for `list`, `inspect`, `doctor`, the page and the metrics: pure functions over the Hub's facts.
 * A workspace is `ready` only while no known fact would fail its next turn.
 */
import type { HealthReport, HealthState, LastTurn, ModelInUse, Problem, Remedy } from './health.ts';
import { incidentLine, type RestFailure } from './incident-words.ts';
import { mcpLoginCommand } from './mcp-words.ts';
import { blamedSettings, remedied, remedyOfFailure, type SettingPlaces } from './remedies.ts';

/** Words for people, each with how good it is. */
const stateTones = {
  ready: 'ok',
  restricted: 'warn',
  degraded: 'warn',
  failing: 'danger',
  starting: 'progress',
  stopping: 'progress',
  restarting: 'warn',
  'not answering': 'danger',
  'gave up': 'danger',
  broken: 'danger',
  locked: 'danger',
  missing: 'danger',
  failed: 'danger',
  ended: 'neutral',
  asleep: 'neutral',
  stopped: 'neutral',
} as const;

export type StateWord = keyof typeof stateTones;
export type StateTone = (typeof stateTones)[StateWord] | 'neutral';
export const stateWords = Object.keys(stateTones) as readonly StateWord[];

/** Rates a state; an unknown word is neither good nor bad. */
export const toneOfState = (word: string): StateTone =>
  word in stateTones ? stateTones[word as StateWord] : 'neutral';

/** Why a workspace rests, by code of its first problem. */
const wordsAtRest: Readonly<Record<string, StateWord>> = {
  gaveUp: 'gave up',
  invalidConfig: 'broken',
  workspaceLocked: 'locked',
  workspaceGone: 'missing',
};

/** Fields of a record that decide its word. */
export interface StateFacts {
  readonly state: string;
  readonly phase: string;
  readonly exitCode: number | null;
  readonly health: string;
  readonly problems: readonly Pick<Problem, 'code'>[];
}

/** The state of a workspace in one or two words. */
export function stateWordOf({ state, phase, exitCode, health, problems }: StateFacts): StateWord {
  switch (state) {
    case 'running':
      if (health === 'failing' || health === 'degraded') return health;
      return problems.some(({ code }) => code === 'restricted') ? 'restricted' : 'ready';
    case 'unhealthy':
      return problems.some(({ code }) => code === 'workspaceLocked') ? 'locked' : 'not answering';
    case 'starting':
    case 'stopping':
      return state;
    default:
      return atRest(state, phase, exitCode, problems);
  }
}

/** Start of the process that runs, or the end of the last one. */
export const sinceOf = ({
  state,
  lastStartedAt,
  lastExitedAt,
}: {
  readonly state: string;
  readonly lastStartedAt: string | null;
  readonly lastExitedAt: string | null;
}): string | null => (state === 'stopped' || state === 'exited' ? (lastExitedAt ?? lastStartedAt) : lastStartedAt);

function atRest(state: string, phase: string, exitCode: number | null, problems: StateFacts['problems']): StateWord {
  if (phase === 'exited.backingOff') return 'restarting';
  for (const { code } of problems) {
    const word = wordsAtRest[code];
    if (word !== undefined) return word;
  }
  if (problems.some(({ code }) => code === 'exited')) return 'failed';
  if (phase === 'asleep') return 'asleep';
  if (state !== 'exited') return 'stopped';
  return exitCode === 0 ? 'ended' : 'failed';
}

/** Everything that a workspace's problems are derived from. */
export interface ProblemFacts {
  readonly state: string;
  /** Canonical path, quoted for a shell. */
  readonly workspace: string;
  readonly lastError: string | null;
  readonly rest: RestFailure | null;
  /** Last report of the agent server; null without one. */
  readonly report:
    | (Pick<HealthReport, 'health' | 'failure' | 'failuresInARow' | 'model' | 'mcpServers'> &
        Partial<Pick<HealthReport, 'sandbox'>>)
    | null;
  /** Reason why the current configuration cannot be used; null when it can. */
  readonly configProblem: {
    readonly message: string;
    readonly where: string;
    readonly file: string;
    readonly line: number | null;
    readonly key: string;
  } | null;
  /** Places of the settings that a failed turn may blame. */
  readonly places: SettingPlaces;
  /** The configuration differs from the one that the running server has read. */
  readonly isConfigChanged: boolean;
  readonly restrictedSettings: readonly string[];
  /** Loss of the workspace's history; null without one. */
  readonly lostHistory: Problem | null;
  /** Why services listen elsewhere than asked for, one sentence each. */
  readonly serviceNotes: readonly string[];
  /** Socket of the container engine that does not answer; absent or null: each engine in use answers. */
  readonly lostEngine?: string | null;
}

/** Lists the problems of a workspace, the most urgent first; a changed configuration is a note after them. */
export function problemsOf(facts: ProblemFacts): Problem[] {
  const isOwnedByOther = facts.rest?.kind === 'workspaceLocked';
  const isUp = (facts.state === 'running' || facts.state === 'unhealthy') && !isOwnedByOther;
  return [
    ...lostPlaceProblems(facts),
    ...(isUp ? [] : restProblems(facts)),
    ...(facts.state === 'unhealthy' && isUp ? [silent(facts)] : []),
    ...(isUp ? turnProblems(facts) : []),
    ...configProblems(facts, isUp),
    ...(facts.lostHistory === null ? [] : [facts.lostHistory]),
    ...restrictedProblems(facts),
    ...(isUp ? [...sandboxProblems(facts), ...toolProblems(facts), ...facts.serviceNotes.map(portProblem)] : []),
    ...(isUp ? changeNotes(facts) : []),
  ];
}

/** Commands for a server that does not run, by kind of failure. */
const restRemedies: Readonly<Record<string, (workspace: string, message: string) => string>> = {
  workspaceLocked: (workspace) => `oratorio stop ${workspace}`,
  // A stop removes a workspace from the list whose directory is gone.
  workspaceGone: (workspace, message) =>
    `oratorio ${message.includes('oratorio init ') ? 'init' : 'stop'} ${workspace}`,
};
const seeLogs = (workspace: string) => `oratorio logs ${workspace}`;

function restProblems({ rest, state, lastError, workspace, configProblem }: ProblemFacts): Problem[] {
  if (rest === null) {
    if (state !== 'exited' || lastError === null) return [];
    return [{ code: 'exited', what: lastError, where: null, ...remedied({ act: 'start' }, workspace) }];
  }
  // A corrected configuration is no longer a reason; a broken one is reported from its current state.
  if (rest.kind === 'invalidConfig') return [];
  if (configProblem !== null && rest.kind === 'workspaceGone') return [];
  const code = rest.kind in wordsAtRest ? rest.kind : 'exited';
  const what = incidentLine({ what: rest.message, note: rest.note ?? null });
  const next = restRemedies[rest.kind]?.(workspace, rest.message);
  if (next !== undefined) return [{ code, what, where: null, next }];
  return [{ code, what, where: null, ...remedied({ act: 'start' }, workspace) }];
}

function lostPlaceProblems({ lostEngine = null, workspace }: ProblemFacts): Problem[] {
  if (lostEngine === null) return [];
  const what = 'The container engine does not answer. Nothing is started, ended or restarted until it does.';
  return [{ code: 'placeLost', what, where: lostEngine, next: `oratorio place ${workspace}` }];
}

const silent = ({ lastError, workspace }: ProblemFacts): Problem => ({
  code: 'notAnswering',
  what: `The agent server does not answer: ${lastError ?? 'no reason given'}`,
  where: null,
  ...remedied({ act: 'restart' }, workspace),
});

function configProblems(facts: ProblemFacts, isUp: boolean): Problem[] {
  const { configProblem, workspace } = facts;
  if (configProblem === null) return [];
  const { message, where, file, line, key: keyPath } = configProblem;
  const what = isUp ? `${message}. The running server keeps the earlier settings.` : message;
  const remedy = remedied({ act: 'editSetting', file, line, keyPath }, workspace);
  return [{ code: isUp ? 'configUnusable' : 'invalidConfig', what, where, ...remedy }];
}

function changeNotes({ configProblem, isConfigChanged, workspace }: ProblemFacts): Problem[] {
  if (configProblem !== null || !isConfigChanged) return [];
  const what = 'The configuration has changed: restart to apply.';
  return [{ code: 'configChanged', what, where: null, ...remedied({ act: 'restart' }, workspace) }];
}

/** Number of problems besides the first: `+2 more problems`; empty without one. */
export const moreProblems = (count: number): string =>
  count > 1 ? `+${count - 1} more ${count === 2 ? 'problem' : 'problems'}` : '';

function restrictedProblems({ restrictedSettings, workspace }: ProblemFacts): Problem[] {
  if (restrictedSettings.length === 0) return [];
  const are = restrictedSettings.length === 1 ? 'is' : 'are';
  const what = `Restricted: ${restrictedSettings.join(', ')} ${are} ignored until you trust the workspace.`;
  return [{ code: 'restricted', what, where: null, ...remedied({ act: 'trust' }, workspace) }];
}

/** The failure of turns in words of the field, and the command that helps when no setting is to blame. */
const turnFailures: Readonly<Record<string, { readonly says: string; readonly next: string | null }>> = {
  upstreamUnauthorized: { says: 'refuses the key', next: 'oratorio login' },
  upstreamUnreachable: { says: 'cannot be reached', next: 'oratorio model test' },
  upstreamQuotaExceeded: { says: 'reports no credit or quota', next: 'oratorio model test' },
  upstreamRejected: { says: 'refuses the request', next: 'oratorio model list' },
  upstreamRateLimited: { says: 'limits the rate of requests', next: 'oratorio model test' },
  upstreamFailed: { says: 'fails', next: 'oratorio model test' },
  upstreamProtocol: { says: 'does not answer as expected', next: 'oratorio model test' },
  upstreamEmptyAnswer: { says: 'gives empty answers', next: 'oratorio model test' },
  answerTooLong: { says: 'sends answers without end', next: 'oratorio model test' },
  budgetReached: { says: 'The budget is used up', next: 'oratorio model' },
  storageFailed: { says: 'Conversations cannot be saved', next: 'df -h' },
};

/** Sentence that ends the message of a failure because another program holds a database. */
export const findHolder = (file: string): string =>
  `Find it with: fuser -v ${/^[\w./@%+=:,-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`}`;
/** Command in that sentence. */
const holderCommand = /\. Find it with: (fuser -v .+)$/s;

function turnProblems(facts: ProblemFacts): Problem[] {
  const { report, workspace } = facts;
  const failure = report?.failure;
  if (!report || !failure) return [];
  const known = turnFailures[failure.code];
  const host = report.model?.host ?? null;
  const isUpstream = failure.code.startsWith('upstream');
  const subject = isUpstream ? `${host ?? 'The model provider'} ` : '';
  const says = known === undefined ? '' : `${subject}${known.says}: `;
  const times = report.failuresInARow > 1 ? ` (${report.failuresInARow} turns in a row)` : '';
  return [
    {
      code: failure.code,
      what: `${says}${failure.message.replace(/\.$/, '')}${times}`,
      where: isUpstream ? host : null,
      next: holderCommand.exec(failure.message)?.[1] ?? known?.next ?? seeLogs(workspace),
      ...turnRemedy(facts, failure.code),
    },
  ];
}

/** The next step towards a value that the next turn uses: trust or restart for one that was edited, else the edit. */
function turnRemedy(facts: ProblemFacts, code: string): Partial<Problem> {
  const { workspace, places, restrictedSettings, isConfigChanged } = facts;
  const settings = blamedSettings[code] ?? [];
  if (settings.some((name) => restrictedSettings.includes(name))) return remedied({ act: 'trust' }, workspace);
  if (settings.length > 0 && isConfigChanged) return remedied({ act: 'restart' }, workspace);
  const remedy = remedyOfFailure(code, places);
  return remedy ? remedied(remedy, workspace) : {};
}

function sandboxProblems({ report }: ProblemFacts): Problem[] {
  const sandbox = report?.sandbox;
  if (sandbox?.state !== 'failed') return [];
  const what = `Commands are refused, because there is no sandbox: ${sandbox.reason}`;
  return [{ code: 'sandboxFailed', what, where: 'Tools.Shell.Sandbox', next: 'oratorio doctor' }];
}

function toolProblems({ report, workspace, places }: ProblemFacts): Problem[] {
  const { total, down: all, toolProblems } = report?.mcpServers ?? { total: 0, down: [], toolProblems: [] };
  const down = all.filter(({ needsLogin }) => needsLogin !== true);
  const left =
    toolProblems.length === 0
      ? []
      : [{ code: 'mcpTool', what: toolProblems.join(' ').slice(0, 4_000), where: null, next: seeLogs(workspace) }];
  const logins = all
    .filter(({ needsLogin }) => needsLogin === true)
    .map(({ name }) => ({
      code: 'mcpServerNeedsLogin',
      what: `The MCP server ${name} wants you to log in.`,
      where: `McpServers.${name}`,
      next: `${mcpLoginCommand(name)} --workspace ${workspace}`,
    }));
  if (down.length === 0) return [...logins, ...left];
  const reasons = down.map(({ name, error }) => (error === null ? name : `${name}: ${reasonIn(error)}`));
  const what = `${down.length} of ${total} MCP servers ${down.length === 1 ? 'is' : 'are'} down (${reasons.join('; ')})`;
  const keyPath = `McpServers.${down[0]?.name}`;
  const place = places[keyPath];
  const remedy: Remedy | undefined = place && { act: 'editSetting', file: place.file, line: place.line, keyPath };
  const step = remedy ? remedied(remedy, workspace) : { next: seeLogs(workspace) };
  return [{ code: 'mcpServerDown', what, where: keyPath, ...step }, ...logins, ...left];
}

const portProblem = (what: string): Problem => ({ code: 'portMoved', what, where: null, next: 'ss -ltnp' });

/** `It exited (code 3): boom`: the first line of an error, and the last line of the output that follows. */
function reasonIn(error: string): string {
  const [first = '', ...output] = error.split('\n').filter((line) => line.trim() !== '');
  const last = output.at(-1);
  return last === undefined ? first : `${first.replace(/\.$/, '')}: ${last.trim()}`;
}

/** Short words for the codes of failed turns, in a column. */
const shortFailures: Readonly<Record<string, string>> = {
  upstreamUnauthorized: 'key refused',
  upstreamUnreachable: 'unreachable',
  upstreamQuotaExceeded: 'no credit',
  upstreamRejected: 'refused',
  upstreamRateLimited: 'rate limited',
  upstreamFailed: 'upstream failed',
  upstreamProtocol: 'bad answer',
  upstreamEmptyAnswer: 'empty answer',
  answerTooLong: 'answer too long',
  budgetReached: 'budget',
  storageFailed: 'not saved',
};

type TurnWords = Pick<LastTurn, 'code' | 'message'> & { readonly status: string };

/** End of the last turn in a column: `ok`, `cancelled`, `401 ×6`, `rate limited`. */
export function lastTurnWords({ status, code, message }: TurnWords, failuresInARow: number): string {
  if (status !== 'failed') return status === 'completed' ? 'ok' : status;
  const answered = /\banswered ([45]\d\d)\b/.exec(message ?? '')?.[1];
  const why = answered ?? (code === null ? 'failed' : (shortFailures[code] ?? code));
  return failuresInARow > 1 ? `${why} ×${failuresInARow}` : why;
}

/** A model with its place: `gpt-x at api.openai.com`, `demo (offline)`. */
export function modelWords({ name, provider, host }: ModelInUse): string {
  if (provider === 'demo') return 'demo (offline)';
  const model = name === '' ? 'default model' : name;
  return host === null ? model : `${model} at ${host}`;
}

/** The record's health, for a server that runs: of an earlier start nothing is known any more. */
export const healthNow = (report: Pick<HealthReport, 'health'> | null, isRunning: boolean): HealthState =>
  isRunning ? (report?.health ?? 'unknown') : 'unknown';
