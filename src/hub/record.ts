import { basename } from 'node:path';
import {
  type AgentServerContext,
  type AgentServerSnapshot,
  endsSidecarRequest,
  isAtRest,
  isStopped,
} from '../../machines/index.ts';
import { quotedPath } from '../config/index.ts';
import { redact } from '../lib/index.ts';
import {
  type AppServerRecord,
  type AppServerState,
  appServerStates,
  defaults,
  gaveUpWords,
  healthNow,
  type IncidentFacts,
  incidentOf,
  latestCrashes,
  problemsOf,
  type ServerExit,
  type ServiceName,
  type ServiceStatus,
  workspacePagePath,
} from '../protocol/index.ts';
import { logFiles, readTail } from '../supervise/index.ts';
import type { WorkspaceFacts } from './facts.ts';
import type { StoredWorkspace } from './store.ts';
import { countContinuing } from './unfinished-turns.ts';
import { sizeOf } from './workspace-files.ts';
import type { WorkspaceSettings } from './workspace-settings.ts';

/** The public state: the top level of the chart. */
export function publicState(snapshot: AgentServerSnapshot): AppServerState {
  return appServerStates.find((state) => snapshot.matches(state)) ?? 'stopped';
}

/** The state with its child states, outermost first, e.g. `stopping.killing`. */
export function phaseOf(snapshot: AgentServerSnapshot): string {
  const names: string[] = [];
  let value: unknown = snapshot.value;
  while (typeof value === 'object' && value !== null) {
    const [entry] = Object.entries(value);
    if (!entry) break;
    names.push(entry[0]);
    value = entry[1];
  }
  if (typeof value === 'string') names.push(value);
  return names.join('.');
}

/** Facts of the chart that outlive the Hub, after `snapshot`. @param known as stored before @param exits oldest first */
export function storedFrom(snapshot: AgentServerSnapshot, known: StoredWorkspace, exits: readonly ServerExit[] = []) {
  return {
    ...endOf(snapshot, known),
    rest: restOf(snapshot, known, exits),
    proxy: endsSidecarRequest(snapshot) ? null : known.proxy,
  } satisfies Partial<StoredWorkspace>;
}

/** End of the last run: none while a run is under way. A stop does not explain itself, and keeps the error before it. */
function endOf(
  snapshot: AgentServerSnapshot,
  known: Pick<StoredWorkspace, 'exitCode' | 'lastError'>,
): Pick<StoredWorkspace, 'exitCode' | 'lastError'> {
  const { exitCode, lastError, stopReason, mustEmitExit } = snapshot.context;
  if (mustEmitExit) return { exitCode: null, lastError: null };
  if (snapshot.matches('exited')) return { exitCode, lastError: stopReason === null ? lastError : null };
  return { exitCode: exitCode ?? known.exitCode, lastError: known.lastError };
}

/** Why the server rests, which a later Hub shows, too. Unchanged while a start is under way. */
function restOf(
  snapshot: AgentServerSnapshot,
  { rest: known, canonicalWorkspacePath }: StoredWorkspace,
  exits: readonly ServerExit[],
): StoredWorkspace['rest'] {
  const { context } = snapshot;
  if (snapshot.matches('running')) return null;
  if (isStopped(snapshot)) return context.stopReason === null ? known : null;
  if (!snapshot.matches('exited') || snapshot.matches({ exited: 'backingOff' })) return known;
  const { failures, restartCount: restarts, policy, failureKind, lastError } = context;
  if (snapshot.matches({ exited: 'givenUp' })) {
    if (known?.kind === 'gaveUp') return known;
    const limit = { failures: policy.maxRestarts + 1, withinMs: policy.withinMs };
    const { what, note } = gaveUpWords(basename(canonicalWorkspacePath), latestCrashes(exits, failures.length), limit);
    return { kind: 'gaveUp', message: what, note, restarts };
  }
  return lastError === null ? null : { kind: failureKind ?? 'crashed', message: lastError, note: null, restarts };
}

function tailSince(logDirectory: string, from: number | null, secrets: Iterable<string>): string | null {
  if (from === null) return null;
  const file = logFiles(logDirectory).stderr;
  const size = sizeOf(file);
  // A log that has become shorter was cut, and its rest is of this run.
  const ours = size < from ? size : size - from;
  const bytes = Math.min(ours, defaults.supervise.recentStderrBytes);
  if (bytes === 0) return null;
  return redact(readTail(file, bytes), [...secrets]).trimEnd() || null;
}

/** The last standard error output of this incarnation, tokens removed; null without output or without a process. */
export function recentStderr(facts: WorkspaceFacts): string | null {
  return facts.lastStderr ?? tailSince(facts.logDirectory, facts.stderrFrom, facts.secrets);
}

/** Last standard error of the sidecar, secrets removed; null without output or without a sidecar. */
export function sidecarStderr(facts: WorkspaceFacts): string | null {
  return tailSince(`${facts.logDirectory}/sidecar`, facts.sidecarStderrFrom, facts.secrets);
}

const proxyStates = {
  none: 'disabled',
  starting: 'allocated',
  running: 'running',
  unhealthy: 'unavailable',
  exited: 'exited',
} as const;

function sidecarStatus(context: AgentServerContext, facts: WorkspaceFacts): ServiceStatus {
  const { state, held, inForce, pending, error } = context.slot;
  const url = facts.sidecars.get(held ?? inForce)?.endpoint ?? null;
  if (state === 'unhealthy' || state === 'exited') return { state: proxyStates[state], url, reason: error };
  if (pending !== null) {
    const reason = 'Another sidecar was requested; a restart with that apiProxy applies it.';
    return { state: 'restartRequired', url, reason };
  }
  if (state === 'none') return { state: 'disabled', url: null, reason: 'No sidecar was requested.' };
  return { state: proxyStates[state], url, reason: null };
}

function serviceStatus(state: AppServerState, context: AgentServerContext, facts: WorkspaceFacts) {
  if (state === 'stopped') return {};
  const apiProxy = sidecarStatus(context, facts);
  if (context.ownership === 'external') {
    const external = Object.entries(facts.endpoints).map(([name, url]): [string, ServiceStatus] => [
      name,
      { state: 'external', url, reason: facts.services[name as ServiceName]?.reason ?? null },
    ]);
    return { ...Object.fromEntries(external), ...(context.slot.pending !== null && { apiProxy }) };
  }
  const services = { ...facts.services };
  if (state === 'exited') {
    for (const [name, status] of Object.entries(services)) {
      if (status.state === 'disabled' || status.state === 'unavailable') continue;
      services[name as keyof typeof services] = { state: 'exited', url: null, reason: context.lastError };
    }
  }
  return { ...services, apiProxy };
}

function endpointsNow(state: AppServerState, context: AgentServerContext, facts: WorkspaceFacts) {
  if (state === 'stopped' || state === 'exited') return {};
  const { slot } = context;
  const sidecar = slot.state === 'running' ? facts.sidecars.get(slot.held) : null;
  return sidecar ? { ...facts.endpoints, apiProxy: sidecar.endpoint } : { ...facts.endpoints };
}

/** The record of specification §2.4, from the statechart and the facts beside it. */
export function recordOf(
  snapshot: AgentServerSnapshot,
  facts: WorkspaceFacts,
  settings: WorkspaceSettings,
): AppServerRecord {
  const { context } = snapshot;
  const { stored } = facts;
  const { trust, restrictedSettings } = settings;
  const state = publicState(snapshot);
  // At rest, a refusal holds only while the lock is held, which an inspection checks.
  const { exitCode, lastError } = state === 'stopped' ? stored : context;
  const isInTrouble = state === 'exited' || state === 'unhealthy';
  const phase = phaseOf(snapshot);
  const nextAttemptAt = phase === 'exited.backingOff' ? facts.nextAttemptAt : null;
  const condition = conditionOf(
    {
      ...{ state, lastError, isOurs: context.ownership !== 'external', incarnation: facts.marker },
      serviceNotes: Object.values(facts.services).flatMap(({ state, reason }) =>
        state === 'running' ? (reason ?? []) : [],
      ),
      lostEngine: isPlaceLost(context) ? (stored.server?.container?.engine ?? null) : null,
    },
    stored,
    settings,
  );
  return {
    workspacePath: stored.workspacePath,
    canonicalWorkspacePath: stored.canonicalWorkspacePath,
    state,
    // A pod has no process id on this machine.
    pid: context.hasProcess && stored.server?.container?.kind !== 'pod' ? context.pid : null,
    endpoints: endpointsNow(state, context, facts),
    serviceStatus: serviceStatus(state, context, facts),
    serverVersion: context.serverVersion,
    startedByHub: context.hasProcess && context.ownership !== 'external',
    exitCode,
    lastError,
    recentStderr: isInTrouble && context.ownership !== 'external' ? recentStderr(facts) : null,
    displayName: basename(stored.canonicalWorkspacePath),
    phase,
    adopted: context.hasProcess && context.ownership === 'adopted',
    incarnation: context.incarnation,
    restartCount: context.restartCount,
    nextAttemptAt,
    lastStartedAt: stored.lastStartedAt,
    lastExitedAt: stored.lastExitedAt,
    trust,
    restrictedSettings: [...restrictedSettings],
    ...condition,
    incident: incidentFor(
      { state, phase, nextAttemptAt, problems: condition.problems, places: settings.places },
      stored,
      facts.exits.all,
    ),
    ...(isAtRest(snapshot) && { turnsResumed: countContinuing(facts.turnsLeft ?? [], settings.resumeWithinHours) }),
    ...placeIn(snapshot, facts),
    page: workspacePagePath(facts.id),
  };
}

/** Only a process that is there, or is being started, has a place that can be lost. */
const isPlaceLost = ({ isPlaceLost, hasProcess }: AgentServerContext): boolean => isPlaceLost && hasProcess;

/** Field `place` of the record; absent for a process of this machine. */
function placeIn({ context }: AgentServerSnapshot, { stored }: WorkspaceFacts): Pick<AppServerRecord, 'place'> {
  const container = stored.server?.container;
  if (!container) return {};
  const { kind, engine, image } = container;
  const network = kind === 'container' ? container.network : undefined;
  const state = isPlaceLost(context) ? 'lost' : 'ready';
  return { place: { kind, engine, image, ...(network && { network }), state } };
}

/** Report on a workspace that is down; null while its server runs, starts or ends. */
export const incidentFor = (
  present: Omit<IncidentFacts, 'name' | 'rest' | 'failures' | 'exits'>,
  { canonicalWorkspacePath, rest, failures }: Pick<StoredWorkspace, 'canonicalWorkspacePath' | 'rest' | 'failures'>,
  exits: readonly ServerExit[],
) => incidentOf({ ...present, name: basename(canonicalWorkspacePath), rest, failures: failures.length, exits });

interface Present {
  readonly state: AppServerState;
  readonly lastError: string | null;
  /** A Hub of this user has started the server. */
  readonly isOurs: boolean;
  /** Marker of the present start: a report of an earlier one says nothing about this one. */
  readonly incarnation: string | null;
  /** Why services listen elsewhere than asked for. */
  readonly serviceNotes: readonly string[];
  /** Socket of the container engine that does not answer; absent or null: each engine in use answers. */
  readonly lostEngine?: string | null;
  /** Why the workspace cannot be used now; absent: as stored. */
  readonly rest?: StoredWorkspace['rest'];
}

/** Health, problems and last turn of a record. */
export function conditionOf(
  { state, lastError, isOurs, incarnation, serviceNotes, lostEngine = null, rest }: Present,
  stored: StoredWorkspace | null,
  settings: WorkspaceSettings,
) {
  const report = stored?.report ?? null;
  const isUp = state === 'running' || state === 'unhealthy';
  const present = isUp && isOurs && report?.incarnation === incarnation ? report : null;
  const configChanged =
    isUp && isOurs && stored?.configHash != null && settings.hash !== null && settings.hash !== stored.configHash;
  return {
    health: healthNow(present, isUp),
    problems: problemsOf({
      state,
      workspace: quotedPath(settings.workspacePath),
      lastError,
      rest: rest ?? stored?.rest ?? null,
      report: present,
      configProblem: settings.problem,
      places: settings.places,
      isConfigChanged: configChanged,
      restrictedSettings: settings.restrictedSettings,
      lostHistory: settings.lostHistory,
      serviceNotes,
      lostEngine,
    }),
    lastTurn: report?.lastTurn ?? null,
    failuresInARow: report?.failuresInARow ?? 0,
    model: report?.model ?? null,
    agent: report?.agent ? { ...report.agent, state: present?.agent?.state ?? 'absent' } : null,
    pendingApprovals: present?.pendingApprovals ?? 0,
    turnsResumed: present?.turnsResumed ?? 0,
    costUsd: report?.costUsd ?? null,
    sandbox: present?.sandbox ?? null,
    configChanged,
  };
}
