import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { FailureKind, SupervisionPolicy } from '../../machines/index.ts';
import type { AppServerRecord } from '../protocol/index.ts';
import { workspaceFiles } from './actors/prepare.ts';
import { hubError } from './errors.ts';
import type { HubServices, WorkspaceFacts } from './facts.ts';
import { inspectStranger } from './inspect-stranger.ts';
import { type AgentServerSnapshot, publicState, recentStderr } from './record.ts';
import { differs, parseSidecarWish, type SidecarWish } from './sidecar-request.ts';
import type { StoredWorkspace } from './store.ts';
import { createFacts, createWorkspace, provideMachine, type Workspace, type WorkspaceOptions } from './workspace.ts';
import type { WorkspacePath } from './workspace-path.ts';

export interface RegistryOptions {
  readonly hub: HubServices;
  readonly resolvePath: (path: unknown) => WorkspacePath;
  /** The policy of a workspace as configured now. */
  readonly policyOf: (canonicalPath: string) => SupervisionPolicy;
  readonly seed: () => number;
  /** Called with every new root actor before it starts. */
  readonly observe: WorkspaceOptions['observe'];
}

/** The workspaces of this Hub, by canonical path. */
export interface Registry {
  readonly workspaces: ReadonlyMap<string, Workspace>;
  /** Puts a workspace that an earlier Hub knew under supervision, at rest. */
  restore(stored: StoredWorkspace): Workspace;
  /** `POST /v1/appservers/ensure`. Synchronous when the server already runs. */
  ensure(request: EnsureOptions): Workspace | AppServerRecord | Promise<Workspace | AppServerRecord>;
  /** `GET /v1/appservers/by-workspace`: changes nothing. */
  inspect(path: unknown): Promise<AppServerRecord> | AppServerRecord;
  list(): AppServerRecord[];
  stop(path: unknown): Promise<AppServerRecord>;
  restart(path: unknown, apiProxy: unknown): Promise<AppServerRecord>;
  find(path: unknown): Workspace | undefined;
  /** Stops every managed agent server; resolves when all are at rest. */
  stopAll(): Promise<void>;
  /** Stops watching; every process lives on. */
  releaseAll(): void;
}

export interface EnsureOptions {
  readonly workspacePath: unknown;
  readonly startIfMissing: boolean;
  readonly apiProxy: unknown;
}

type Wish = 'keep' | 'replace' | 'none';

const errorCodes: Record<FailureKind, Parameters<typeof hubError>[0]> = {
  startFailed: 'appServerStartFailed',
  crashed: 'appServerStartFailed',
  apiProxy: 'appServerStartFailed',
  unhealthy: 'appServerUnhealthy',
  workspaceLocked: 'workspaceLocked',
  portUnavailable: 'portUnavailable',
  invalidConfig: 'invalidConfig',
  workspaceGone: 'workspaceNotFound',
};

/** What an `ensure` or `restart` that did not end in `running` is answered with (specification §7.1). */
function failureOf(workspace: Workspace, snapshot: AgentServerSnapshot) {
  const { context } = snapshot;
  const { facts, path } = workspace;
  const kind = context.failureKind ?? 'startFailed';
  const message =
    context.lastError ?? `The agent server is ${publicState(snapshot)}; it was stopped while it was starting.`;
  if (kind === 'workspaceLocked') {
    const lockPath = facts.lockOwner?.lockPath ?? workspaceFiles(path).lockPath;
    return hubError('workspaceLocked', message, { workspacePath: path, pid: facts.lockOwner?.pid ?? null, lockPath });
  }
  const stage = kind === 'apiProxy' ? { stage: 'apiProxy' } : {};
  const exit =
    context.exitCode === null && context.signal === null ? {} : { exitCode: context.exitCode, signal: context.signal };
  const stderr = context.ownership === 'external' ? null : recentStderr(facts);
  return hubError(errorCodes[kind], message, {
    workspacePath: path,
    ...stage,
    error: message,
    ...exit,
    ...(stderr !== null && { recentStderr: stderr }),
  });
}

export function createRegistry(options: RegistryOptions): Registry {
  const { hub, resolvePath } = options;
  const workspaces = new Map<string, Workspace>();
  const allFacts = new Map<string, WorkspaceFacts>();
  const machine = provideMachine(hub, (path) => {
    const facts = allFacts.get(path);
    if (!facts) throw new Error(`nothing is known of ${path}`);
    return facts;
  });

  function add(stored: StoredWorkspace): Workspace {
    const path = stored.canonicalWorkspacePath;
    const facts = createFacts(hub.statePath, stored);
    allFacts.set(path, facts);
    const workspace = createWorkspace(hub, {
      facts,
      machine,
      policy: options.policyOf(path),
      seed: options.seed(),
      observe: options.observe,
    });
    // Its key is not known any more, so what it wrote could not be shown safely.
    if (!stored.proxy) rmSync(join(workspace.facts.logDirectory, 'sidecar'), { recursive: true, force: true });
    workspaces.set(path, workspace);
    return workspace;
  }

  function open({ requested, canonical }: WorkspacePath): Workspace {
    return (
      workspaces.get(canonical) ??
      add({
        workspacePath: requested,
        canonicalWorkspacePath: canonical,
        server: null,
        proxy: null,
        exitCode: null,
        lastError: null,
        lastStartedAt: null,
        lastExitedAt: null,
      })
    );
  }

  /** A workspace whose directory has been deleted or moved is still known by the path it had. */
  function find(path: unknown): Workspace | undefined {
    const byName = typeof path === 'string' ? workspaces.get(path) : undefined;
    if (byName) return byName;
    for (const workspace of workspaces.values()) {
      if (workspace.facts.stored.workspacePath === path) return workspace;
    }
    return undefined;
  }

  function resolveKnown(path: unknown): WorkspacePath {
    try {
      return resolvePath(path);
    } catch (error) {
      const known = find(path);
      if (known) return { requested: known.facts.stored.workspacePath, canonical: known.path };
      throw error;
    }
  }

  /** Tells the machine how the sidecar is wished, and keeps what it must not know. */
  function takeWish(workspace: Workspace, asked: SidecarWish): { proxy?: Wish } {
    const { facts } = workspace;
    const wish = asked ?? facts.pendingWish;
    facts.pendingWish = undefined;
    if (wish === undefined) return {};
    const replaces = differs(wish, facts.sidecar);
    if (wish === 'none') {
      facts.sidecar = null;
      return { proxy: 'none' };
    }
    facts.sidecar = wish;
    facts.secrets.add(wish.apiKey);
    return { proxy: replaces ? 'replace' : 'keep' };
  }

  /** A server that runs is never disturbed by an `ensure`: a sidecar it does not have is noted for the next start. */
  function noteWish(workspace: Workspace, wish: SidecarWish): void {
    if (wish === undefined) return;
    const { facts } = workspace;
    const active = workspace.snapshot().context.wantsProxy ? facts.sidecar : null;
    facts.pendingWish = differs(wish, active) ? wish : undefined;
    workspace.touch();
  }

  /** An operator's stop ends the wish for a sidecar too. */
  function forgetSidecar({ facts, touch }: Workspace): void {
    facts.pendingWish = undefined;
    facts.sidecar = null;
    facts.stored.proxy = null;
    touch();
  }

  async function reachRunning(workspace: Workspace): Promise<Workspace> {
    const snapshot = await workspace.settled();
    if (snapshot.matches('running')) return workspace;
    throw failureOf(workspace, snapshot);
  }

  function ensure(request: EnsureOptions): Workspace | AppServerRecord | Promise<Workspace | AppServerRecord> {
    const wish = parseSidecarWish(request.apiProxy);
    const path = resolvePath(request.workspacePath);
    if (!request.startIfMissing) return inspectPath(path);
    const workspace = open(path);
    const snapshot = workspace.snapshot();
    if (snapshot.matches('running')) {
      noteWish(workspace, wish);
      if (snapshot.context.proxy === 'exited') workspace.send({ type: 'ENSURE' });
      return workspace;
    }
    if (snapshot.matches('starting')) {
      noteWish(workspace, wish);
      return reachRunning(workspace);
    }
    workspace.send({ type: 'ENSURE', ...takeWish(workspace, wish) });
    return reachRunning(workspace);
  }

  function inspectPath(path: WorkspacePath): Promise<AppServerRecord> | AppServerRecord {
    const workspace = workspaces.get(path.canonical);
    if (workspace && !workspace.snapshot().matches('stopped')) return workspace.record();
    return inspectStranger(hub, path, workspace?.record());
  }

  async function stop(path: unknown): Promise<AppServerRecord> {
    const resolved = resolveKnown(path);
    const workspace = workspaces.get(resolved.canonical);
    if (!workspace) return inspectPath(resolved);
    workspace.send({ type: 'STOP', reason: 'user' });
    const snapshot = await workspace.settled();
    if (snapshot.matches('stopping')) throw failureOf(workspace, snapshot);
    if (snapshot.matches('stopped')) forgetSidecar(workspace);
    return workspace.record();
  }

  async function restart(path: unknown, apiProxy: unknown): Promise<AppServerRecord> {
    const wish = parseSidecarWish(apiProxy);
    const workspace = open(resolvePath(path));
    const { context } = workspace.snapshot();
    if (context.hasProcess && context.ownership === 'external') {
      const lockPath = workspaceFiles(workspace.path).lockPath;
      throw hubError('workspaceLocked', 'The agent server was started outside the Hub; restart it there.', {
        workspacePath: workspace.path,
        pid: context.pid,
        lockPath,
      });
    }
    workspace.send({ type: 'RESTART', ...takeWish(workspace, wish) });
    return (await reachRunning(workspace)).record();
  }

  async function stopForGood(workspace: Workspace): Promise<void> {
    // A stop in the middle of an adoption would leave a live server that nobody watches.
    if (!workspace.snapshot().context.mayStart) await workspace.settled();
    workspace.send({ type: 'STOP', reason: 'hub' });
    await workspace.settled();
  }

  async function stopAll(): Promise<void> {
    await Promise.all([...workspaces.values()].map(stopForGood));
  }

  return {
    workspaces,
    restore: add,
    ensure,
    inspect: (path) => inspectPath(resolveKnown(path)),
    list: () =>
      [...workspaces.values()]
        .map((workspace) => workspace.record())
        .sort((left, right) => (left.canonicalWorkspacePath < right.canonicalWorkspacePath ? -1 : 1)),
    stop,
    restart,
    find: (path) => workspaces.get(resolveKnown(path).canonical),
    stopAll,
    releaseAll() {
      for (const workspace of workspaces.values()) workspace.release();
      workspaces.clear();
    },
  };
}
