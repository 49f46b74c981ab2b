import { join } from 'node:path';
import { type ActorRefFrom, createActor } from 'xstate';
import {
  type AgentServerEvent,
  type AgentServerSnapshot,
  agentServerMachine,
  isAsleep,
  isAtRest,
  isFallingAsleep,
  isServing,
  isStoppedByUser,
  isSuperseded,
  type SupervisionPolicy,
  sidecarSlotMachine,
} from '../../machines/index.ts';
import { workspaceKey } from '../config/index.ts';
import { type AppServerRecord, defaults, type HealthReport } from '../protocol/index.ts';
import { monotonicMs } from '../supervise/index.ts';
import { askToSleep } from './actors/ask-to-sleep.ts';
import { liveness } from './actors/liveness.ts';
import { prepare } from './actors/prepare.ts';
import { readiness } from './actors/readiness.ts';
import { readyPlace } from './actors/ready-place.ts';
import { serverProcess } from './actors/server-process.ts';
import { sidecarMachine } from './actors/sidecar.ts';
import { FeedConnection } from './contact.ts';
import { silenceReason } from './container.ts';
import { ExitHistory } from './exit-history.ts';
import type { FactsOf, HubServices, WorkspaceFacts } from './facts.ts';
import { endWaitingCommands } from './leftovers.ts';
import { publishEvents, publishGivingUp, publishHealth } from './publish.ts';
import { recordOf, storedFrom } from './record.ts';
import { type Sidecar, SidecarRequests } from './sidecar-request.ts';
import { followSleep } from './sleep.ts';
import type { StoredWorkspace } from './store.ts';
import { unfinishedTurns } from './unfinished-turns.ts';
import type { SettingsView, WorkspaceSettings } from './workspace-settings.ts';

/** A workspace under supervision: its root actor, its facts, and its record. */
export interface Workspace {
  readonly path: string;
  readonly facts: WorkspaceFacts;
  readonly actor: ActorRefFrom<typeof agentServerMachine>;
  snapshot(): AgentServerSnapshot;
  /**
   * The present record. Made once per change, so that a warm `ensure` costs no more than a look-up.
   *
   * @param requested the caller's spelling of the path; default: the one last asked for
   * @param maxAgeMs greatest age of the settings; default: 0, which checks their files
   */
  record(requested?: string, maxAgeMs?: number): AppServerRecord;
  /** Makes `requested` the spelling of the record in a list. */
  lastRequested(requested: string): void;
  /** The record as JSON, cached for the spellings asked for last. */
  recordBytes(requested: string): Buffer;
  send(event: AgentServerEvent): void;
  /** Takes a report from the feed of the agent server, and saves it. Ignores one of another start, and of a server that no Hub started. */
  takeReport(report: HealthReport): void;
  /** Current trust and settings on the disk. */
  settings(): WorkspaceSettings;
  /** Resolves at the first snapshot, this one included, with nothing under way and `until` true. */
  settled(until?: (snapshot: AgentServerSnapshot) => boolean): Promise<AgentServerSnapshot>;
  /** Resolves when the run of `before` is over, also when a later request has begun another, or will not end. */
  over(before: AgentServerSnapshot): Promise<AgentServerSnapshot>;
  /** Stops watching; every process lives on. */
  release(): void;
}

/** Facts of a workspace before anything of it runs. */
export function createFacts({ statePath, credentials, logger }: HubServices, stored: StoredWorkspace): WorkspaceFacts {
  const sidecar = sidecarOf(stored);
  const logDirectory = join(statePath, 'logs', workspaceKey(stored.canonicalWorkspacePath));
  return {
    stored,
    id: credentials.workspaceId(stored.canonicalWorkspacePath),
    secrets: new Set(sidecar ? [sidecar.apiKey] : []),
    logDirectory,
    endpoints: {},
    services: {},
    marker: null,
    launchDocument: null,
    container: null,
    passEnvironment: [],
    probe: {
      intervalMs: defaults.supervise.probeIntervalMs,
      timeoutMs: defaults.supervise.probeTimeoutMs,
    },
    contact: new FeedConnection(),
    sidecars: new SidecarRequests(),
    sidecar: null,
    nextAttemptAt: null,
    sleepingPorts: null,
    turnsLeft: null,
    lockOwner: null,
    external: null,
    stderrFrom: null,
    sidecarStderrFrom: null,
    lastStderr: null,
    exits: new ExitHistory(logDirectory, logger),
  };
}

/** The sidecar an earlier Hub started for this workspace. */
export function sidecarOf(stored: StoredWorkspace): Sidecar | null {
  const request = stored.proxy?.request;
  if (!request?.binaryPath || !request.configPath || !request.endpoint || !request.apiKey) return null;
  const { binaryPath, configPath, endpoint, apiKey } = request;
  return { binaryPath, configPath, endpoint, apiKey };
}

/** The agent-server machine with its real actors: made once per Hub, for XState rebuilds every state on `provide`. */
export function provideMachine(hub: HubServices, factsOf: FactsOf) {
  return agentServerMachine.provide({
    actors: {
      prepare: prepare(hub, factsOf),
      readyPlace: readyPlace(hub, factsOf),
      process: serverProcess(hub, factsOf),
      readiness: readiness(hub, factsOf),
      askToSleep: askToSleep(hub, factsOf),
      liveness: liveness(factsOf, (facts) => silenceReason(hub, facts)),
      sidecarSlot: sidecarSlotMachine.provide({ actors: { apiProxy: sidecarMachine(hub, factsOf) } }),
    },
  });
}

export interface WorkspaceOptions {
  readonly facts: WorkspaceFacts;
  readonly machine: ReturnType<typeof provideMachine>;
  readonly settings: SettingsView;
  readonly policy: SupervisionPolicy;
  /** Seed of the restart jitter. */
  readonly seed: number;
  /** Called with the actor before it starts. */
  readonly observe: (actor: ActorRefFrom<typeof agentServerMachine>, path: string) => void;
}

/** Spellings of one path whose JSON is cached: clients agree on one, or on a few. */
const maxSpellings = 8;
/** Greatest age of the settings in the JSON of a warm `ensure`, which makes no system call most of the time. */
const bytesAgeMs = 20;

/** Puts a workspace under supervision, at rest. Every workspace is a root actor: its faults are its own (design §3). */
export function createWorkspace(hub: HubServices, options: WorkspaceOptions): Workspace {
  const { facts } = options;
  const path = facts.stored.canonicalWorkspacePath;
  const actor = createActor(options.machine, {
    id: path,
    input: { workspacePath: path, policy: options.policy, seed: options.seed },
  });
  const { settings } = options;
  let known: WorkspaceSettings | null = null;
  let record: AppServerRecord | null = null;
  let noted: readonly number[] | null = null;
  const bytes = new Map<string, Buffer>();
  const touch = () => {
    record = null;
    bytes.clear();
  };

  const takeSettings = (found: WorkspaceSettings): WorkspaceSettings => {
    if (found !== known) touch();
    known = found;
    return found;
  };

  function serialise(requested: string): Buffer {
    if (bytes.size >= maxSpellings) bytes.clear();
    const made = Buffer.from(JSON.stringify(workspace.record(requested)));
    bytes.set(requested, made);
    return made;
  }

  function noteStop(snapshot: AgentServerSnapshot): void {
    const { stored } = facts;
    const isStoppedNow = isStoppedByUser(snapshot) || (stored.stoppedByUser && !isServing(snapshot));
    if (isStoppedNow === stored.stoppedByUser) return;
    stored.stoppedByUser = isStoppedNow;
    hub.save().catch((error: unknown) => hub.logger.error('the state file could not be written', { error }));
  }

  function noteFailures({ context: { failures } }: AgentServerSnapshot): void {
    // The first snapshot precedes the failures that an earlier Hub has stored.
    const isNew = noted !== null && noted !== failures;
    noted = failures;
    if (!isNew) return;
    const epoch = Date.now() - monotonicMs();
    facts.stored.failures = failures.map((at) => Math.round(epoch + at));
  }

  const sleep = followSleep(hub, facts, () => {
    const snapshot = actor.getSnapshot();
    if (isAsleep(snapshot) || isFallingAsleep(snapshot)) workspace.send({ type: 'ENSURE' });
  });
  actor.subscribe({
    next(snapshot) {
      const wasGivenUp = facts.stored.rest?.kind === 'gaveUp';
      Object.assign(facts.stored, storedFrom(snapshot, facts.stored, facts.exits.all));
      if (!wasGivenUp) publishGivingUp(hub, facts.stored);
      noteFailures(snapshot);
      noteStop(snapshot);
      sleep(snapshot);
      touch();
    },
    error: (error) => hub.logger.error('the supervisor of a workspace has failed', { workspacePath: path, error }),
  });
  publishEvents(actor, hub, facts);
  actor.on('appserver.exited', () => {
    if (!actor.getSnapshot().matches({ exited: 'givenUp' })) return;
    endWaitingCommands(hub, path).catch((error: unknown) =>
      hub.logger.error('could not end the commands of a workspace that was given up', { workspacePath: path, error }),
    );
  });
  options.observe(actor, path);
  actor.start();

  const workspace: Workspace = {
    path,
    facts,
    actor,
    snapshot: () => actor.getSnapshot(),
    record(requested = facts.stored.workspacePath, maxAgeMs = 0) {
      const found = takeSettings(settings.now(maxAgeMs));
      if (isAtRest(actor.getSnapshot())) facts.turnsLeft ??= unfinishedTurns(hub.home, path, hub.logger);
      record ??= recordOf(actor.getSnapshot(), facts, found);
      return requested === record.workspacePath ? record : { ...record, workspacePath: requested };
    },
    lastRequested(requested) {
      if (requested === facts.stored.workspacePath) return;
      facts.stored.workspacePath = requested;
      record = null;
    },
    recordBytes(requested) {
      takeSettings(settings.now(bytesAgeMs));
      return bytes.get(requested) ?? serialise(requested);
    },
    send(event) {
      actor.send(event);
      touch();
    },
    takeReport(report) {
      if (facts.marker !== report.incarnation || facts.external) return;
      const before = facts.stored.report;
      facts.stored.report = report;
      touch();
      publishHealth(hub, path, before, report);
      hub.save().catch((error: unknown) => hub.logger.error('the state file could not be written', { error }));
    },
    settings: () => takeSettings(settings.now()),
    settled: (until = () => true) => reached(actor, (snapshot) => snapshot.hasTag('settled') && until(snapshot)),
    over: (before) => reached(actor, (snapshot) => snapshot.hasTag('settled') || isSuperseded(snapshot, before)),
    release() {
      facts.sleepingPorts?.close();
      actor.stop();
    },
  };
  return workspace;
}

/** Resolves at the first snapshot, the present one included, for which `isReached` is true. */
function reached(
  actor: Workspace['actor'],
  isReached: (snapshot: AgentServerSnapshot) => boolean,
): Promise<AgentServerSnapshot> {
  const now = actor.getSnapshot();
  if (isReached(now)) return Promise.resolve(now);
  return new Promise((resolve, reject) => {
    const subscription = actor.subscribe({
      next(snapshot) {
        if (!isReached(snapshot)) return;
        subscription.unsubscribe();
        resolve(snapshot);
      },
      error: reject,
      complete: () => reject(new Error('The Hub is stopping.')),
    });
  });
}
