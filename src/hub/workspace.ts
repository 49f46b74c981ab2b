import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { type ActorRefFrom, createActor } from 'xstate';
import { type AgentServerEvent, agentServerMachine, type SupervisionPolicy } from '../../machines/index.ts';
import { type AppServerRecord, defaults } from '../protocol/index.ts';
import { liveness } from './actors/liveness.ts';
import { prepare } from './actors/prepare.ts';
import { readiness } from './actors/readiness.ts';
import { serverProcess } from './actors/server-process.ts';
import { sidecarMachine } from './actors/sidecar.ts';
import { announce } from './announce.ts';
import type { FactsOf, HubServices, WorkspaceFacts } from './facts.ts';
import { type AgentServerSnapshot, recordOf } from './record.ts';
import type { Sidecar } from './sidecar-request.ts';
import type { StoredWorkspace } from './store.ts';

/** A workspace under supervision: its root actor, what is kept beside it, and its record. */
export interface Workspace {
  readonly path: string;
  readonly facts: WorkspaceFacts;
  readonly actor: ActorRefFrom<typeof agentServerMachine>;
  snapshot(): AgentServerSnapshot;
  /** The record as it is now. Made once per change, so that a warm `ensure` costs no more than a look-up. */
  record(): AppServerRecord;
  /** The same, serialised. */
  recordBytes(): Buffer;
  /** What is kept beside the chart has changed. */
  touch(): void;
  send(event: AgentServerEvent): void;
  /** Resolves at the first snapshot, this one included, in which nothing is under way. Rejects when `signal` aborts. */
  settled(signal?: AbortSignal): Promise<AgentServerSnapshot>;
  /** Lets go of everything without ending it. */
  release(): void;
}

/** The name of a workspace's directories in the Hub's state: as short as file systems like it, and free of secrets. */
export function workspaceKey(canonicalPath: string): string {
  return createHash('sha256').update(canonicalPath).digest('hex').slice(0, 24);
}

/** What is known of a workspace before anything of it runs. */
export function createFacts(statePath: string, stored: StoredWorkspace): WorkspaceFacts {
  const sidecar = sidecarOf(stored);
  return {
    stored,
    secrets: new Set(sidecar ? [sidecar.apiKey] : []),
    logDirectory: join(statePath, 'logs', workspaceKey(stored.canonicalWorkspacePath)),
    endpoints: {},
    services: {},
    marker: null,
    launchDocument: null,
    passEnvironment: [],
    probe: {
      intervalMs: defaults.supervise.probeIntervalMs,
      timeoutMs: defaults.supervise.probeTimeoutMs,
      idleStopMs: 0,
    },
    sidecar,
    pendingWish: undefined,
    lockOwner: null,
    stderrFrom: 0,
    sidecarStderrFrom: 0,
  };
}

function sidecarOf(stored: StoredWorkspace): Sidecar | null {
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
      process: serverProcess(hub, factsOf),
      readiness: readiness(hub, factsOf),
      liveness: liveness(factsOf),
      apiProxy: sidecarMachine(hub, factsOf),
    },
  });
}

export interface WorkspaceOptions {
  readonly facts: WorkspaceFacts;
  readonly machine: ReturnType<typeof provideMachine>;
  readonly policy: SupervisionPolicy;
  /** Seed of the restart jitter. */
  readonly seed: number;
  /** Called with the actor before it starts. */
  readonly observe: (actor: ActorRefFrom<typeof agentServerMachine>, path: string) => void;
}

/** Puts a workspace under supervision, at rest. Every workspace is a root actor: its faults are its own (DESIGN §3). */
export function createWorkspace(hub: HubServices, options: WorkspaceOptions): Workspace {
  const { facts } = options;
  const path = facts.stored.canonicalWorkspacePath;
  const actor = createActor(options.machine, {
    id: path,
    input: { workspacePath: path, policy: options.policy, seed: options.seed },
  });
  let record: AppServerRecord | null = null;
  let bytes: Buffer | null = null;
  let nextAttemptAt: string | null = null;
  const touch = () => {
    record = null;
    bytes = null;
  };

  actor.subscribe({
    next(snapshot) {
      const { delayMs } = snapshot.context;
      const waits = snapshot.matches({ exited: 'backingOff' }) && delayMs !== null;
      nextAttemptAt = waits ? (nextAttemptAt ?? new Date(Date.now() + delayMs).toISOString()) : null;
      touch();
    },
    error: (error) => hub.logger.error('the supervisor of a workspace has failed', { workspacePath: path, error }),
  });
  announce(actor, hub, facts);
  options.observe(actor, path);
  actor.start();

  const workspace: Workspace = {
    path,
    facts,
    actor,
    snapshot: () => actor.getSnapshot(),
    record: () => (record ??= recordOf(actor.getSnapshot(), facts, nextAttemptAt)),
    recordBytes: () => (bytes ??= Buffer.from(JSON.stringify(workspace.record()))),
    touch,
    send(event) {
      actor.send(event);
      touch();
    },
    settled: (signal) => settled(actor, signal),
    release: () => actor.stop(),
  };
  return workspace;
}

function settled(actor: Workspace['actor'], signal?: AbortSignal): Promise<AgentServerSnapshot> {
  const now = actor.getSnapshot();
  if (now.hasTag('settled')) return Promise.resolve(now);
  return new Promise((resolve, reject) => {
    const finish = () => {
      subscription.unsubscribe();
      signal?.removeEventListener('abort', onAbort);
    };
    const onAbort = () => {
      finish();
      reject(signal?.reason);
    };
    const subscription = actor.subscribe({
      next(snapshot) {
        if (!snapshot.hasTag('settled')) return;
        finish();
        resolve(snapshot);
      },
      error(error) {
        finish();
        reject(error);
      },
      complete() {
        finish();
        reject(new Error('The Hub is stopping.'));
      },
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
