import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type AgentServerSnapshot,
  type FailureKind,
  failureKindOf,
  hasExternalProcess,
  hasUnprovenSidecar,
  isAdopting,
  isAsleep,
  isAtRest,
  isDecided,
  isServing,
  isStarting,
  isStopped,
  isStopping,
  isSuperseded,
  type SidecarReference,
  type SupervisionPolicy,
  sidecarsInUse,
} from '../../machines/index.ts';
import type { AppServerRecord, PlaceRequest, PlaceStatus } from '../protocol/index.ts';
import { monotonicMs, probeLock, workspaceFiles, workspaceLockPath } from '../supervise/index.ts';
import { addressOf, checkPlace, endContainers, type PlaceAddress } from './container.ts';
import { hubError } from './errors.ts';
import type { HubServices, WorkspaceFacts } from './facts.ts';
import { StartError } from './failure.ts';
import { inspectUnmanaged, restingRecord } from './inspect-unmanaged.ts';
import { endWaitingCommands } from './leftovers.ts';
import { goneWorkspace, isGone } from './moved-workspace.ts';
import { placeStatuses } from './place-statuses.ts';
import { publicState, recentStderr } from './record.ts';
import { parseSidecarRequest, type SidecarRequest } from './sidecar-request.ts';
import type { StoredWorkspace } from './store.ts';
import {
  createFacts,
  createWorkspace,
  provideMachine,
  sidecarOf,
  type Workspace,
  type WorkspaceOptions,
} from './workspace.ts';
import { foreignHolder, ownedMessage } from './workspace-files.ts';
import type { WorkspacePath } from './workspace-path.ts';
import { type SettingsView, settingsViews } from './workspace-settings.ts';

/** Greatest age of the settings in a list. */
const maxListAgeMs = 10_000;

export interface RegistryOptions {
  readonly hub: HubServices;
  readonly resolvePath: (path: unknown) => WorkspacePath;
  /** Policy of a workspace whose settings cannot be used. Its next start reports why. */
  readonly defaultPolicy: SupervisionPolicy;
  readonly seed: () => number;
  /** Called with every new root actor before it starts. */
  readonly observe: WorkspaceOptions['observe'];
}

export interface EnsureOptions {
  readonly workspacePath: unknown;
  readonly startIfMissing: boolean;
  readonly apiProxy: unknown;
  /** Place of this and later starts. */
  readonly place?: PlaceRequest | undefined;
}

const errorCodes: Record<FailureKind, Parameters<typeof hubError>[0]> = {
  startFailed: 'appServerStartFailed',
  crashed: 'appServerStartFailed',
  apiProxy: 'appServerStartFailed',
  unhealthy: 'appServerUnhealthy',
  workspaceLocked: 'workspaceLocked',
  portUnavailable: 'portUnavailable',
  invalidConfig: 'invalidConfig',
  workspaceGone: 'workspaceNotFound',
  neverStarted: 'appServerStartFailed',
  placeUnavailable: 'placeUnavailable',
  imageMissing: 'imageMissing',
  placeRefused: 'placeRefused',
};

/** The refusal of an `ensure` or `restart` whose server or sidecar is not ready (specification §7.1). */
function failureOf(workspace: Workspace, snapshot: AgentServerSnapshot, requested: string) {
  const { context } = snapshot;
  const { facts, path } = workspace;
  const kind = failureKindOf(snapshot);
  if (kind === 'apiProxy') return sidecarFailure(context.lastError ?? context.slot.error, requested);
  const message =
    context.lastError ?? `The agent server is ${publicState(snapshot)}; it was stopped while it was starting.`;
  if (kind === 'workspaceLocked') {
    const lockPath = facts.lockOwner?.lockPath ?? workspaceLockPath(path);
    const pid = facts.lockOwner?.pid ?? null;
    return hubError('workspaceLocked', message, { workspacePath: requested, pid, lockPath });
  }
  const exit =
    context.exitCode === null && context.signal === null ? {} : { exitCode: context.exitCode, signal: context.signal };
  const stderr = context.ownership === 'external' ? null : recentStderr(facts);
  return hubError(errorCodes[kind], message, {
    workspacePath: requested,
    error: message,
    ...exit,
    ...(stderr !== null && { recentStderr: stderr }),
  });
}

function sidecarFailure(error: string | null, workspacePath: string) {
  const message = error ?? 'The sidecar is not ready.';
  return hubError('appServerStartFailed', message, { workspacePath, stage: 'apiProxy', error: message });
}

/** Failures under an earlier Hub, as times of this process's clock. */
function failuresOf({ failures }: StoredWorkspace): readonly number[] {
  const epoch = Date.now() - monotonicMs();
  return failures.map((at) => at - epoch);
}

/** The workspaces of this Hub, by canonical path. */
export class Registry {
  readonly workspaces = new Map<string, Workspace>();
  /** Makes the view of a workspace's settings. */
  readonly settingsView: (workspacePath: string) => SettingsView;
  readonly #options: RegistryOptions;
  readonly #hub: HubServices;
  readonly #facts = new Map<string, WorkspaceFacts>();
  readonly #byId = new Map<string, Workspace>();
  readonly #machine: ReturnType<typeof provideMachine>;

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#hub = options.hub;
    this.settingsView = settingsViews(options.hub);
    this.#machine = provideMachine(options.hub, (path) => {
      const facts = this.#facts.get(path);
      if (!facts) throw new Error(`nothing is known of ${path}`);
      return facts;
    });
  }

  /** The workspace of an address `/w/<id>/`. */
  byId(id: string): Workspace | undefined {
    return this.#byId.get(id);
  }

  find(path: unknown): Workspace | undefined {
    return this.workspaces.get(this.canonical(path));
  }

  /**
   * Canonical path of a workspace.
   *
   * @throws HttpError `workspaceNotFound` unless `path` is a workspace or a known former one
   */
  canonical(path: unknown): string {
    return this.#resolveKnown(path).canonical;
  }

  /** Number of workspaces that sleep. */
  get asleep(): number {
    return [...this.workspaces.values()].filter(({ snapshot }) => isAsleep(snapshot())).length;
  }

  /**
   * Records of all known workspaces as this Hub supervises them. With many workspaces, their settings are a few seconds old: the Hub
   * checks the files of one workspace for each millisecond at most.
   */
  list(): AppServerRecord[] {
    const maxAgeMs = Math.min(this.workspaces.size, maxListAgeMs);
    return [...this.workspaces.values()]
      .map((workspace) => workspace.record(undefined, maxAgeMs))
      .sort((left, right) => (left.canonicalWorkspacePath < right.canonicalWorkspacePath ? -1 : 1));
  }

  /** Records of all known workspaces, with the servers that run without this Hub. */
  listAll(): Promise<AppServerRecord[]> {
    return Promise.all(this.list().map((record) => this.inspected(record)));
  }

  /** `GET /v1/appservers/by-workspace`: changes nothing. */
  inspect(path: unknown): Promise<AppServerRecord> | AppServerRecord {
    return this.#inspectPath(this.#resolveKnown(path));
  }

  /** Puts a workspace that an earlier Hub knew under supervision, at rest. */
  restore(stored: StoredWorkspace, settings = this.settingsView(stored.canonicalWorkspacePath)): Workspace {
    const path = stored.canonicalWorkspacePath;
    const facts = createFacts(this.#hub, stored);
    this.#facts.set(path, facts);
    const workspace = createWorkspace(this.#hub, {
      facts,
      machine: this.#machine,
      settings,
      policy: settings.now().policy ?? this.#options.defaultPolicy,
      seed: this.#options.seed(),
      observe: this.#options.observe,
    });
    // Without the sidecar's key, its old log cannot be redacted.
    if (!stored.proxy) rmSync(join(workspace.facts.logDirectory, 'sidecar'), { recursive: true, force: true });
    this.workspaces.set(path, workspace);
    this.#byId.set(facts.id, workspace);
    return workspace;
  }

  /** Adopts the running processes of a restored workspace. */
  adopt(workspace: Workspace): void {
    const { stored } = workspace.facts;
    const sidecar = sidecarOf(stored) ?? 'none';
    workspace.send({ type: 'ADOPT', failures: failuresOf(stored), ...this.#choice(workspace, sidecar) });
  }

  /** Restores the state of a workspace on which an earlier Hub had given up. */
  restoreGivingUp(workspace: Workspace): void {
    const { stored } = workspace.facts;
    const { rest, exitCode } = stored;
    if (rest?.kind !== 'gaveUp') return;
    const error = stored.lastError ?? rest.message;
    workspace.send({
      type: 'RESTORE',
      failures: failuresOf(stored),
      restartCount: rest.restarts ?? 0,
      error,
      exitCode,
    });
  }

  /** Restores a workspace that slept under an earlier Hub. */
  restoreSleep(workspace: Workspace, ports: StoredWorkspace['asleep']): void {
    if (ports === null || !isStopped(workspace.snapshot())) return;
    workspace.facts.stored.asleep = ports;
    workspace.send({ type: 'STOP', reason: 'idle' });
  }

  /** Places of this machine, and the reason if a place cannot run an agent server now. */
  places(): Promise<PlaceStatus[]> {
    return placeStatuses(this.#hub);
  }

  /** Resolves when every end is on disk. */
  async flush(): Promise<void> {
    await Promise.all([...this.#facts.values()].map(({ exits }) => exits.flush()));
  }

  /** `POST /v1/appservers/ensure`. Synchronous when the server already runs. */
  ensure(request: EnsureOptions): Workspace | AppServerRecord | Promise<Workspace | AppServerRecord> {
    const sidecar = parseSidecarRequest(request.apiProxy);
    const path = this.#resolveLive(request.workspacePath);
    if (!request.startIfMissing) return this.#inspectPath(path);
    const workspace = this.#open(path);
    const start = () => this.#start(workspace, path.requested, sidecar);
    const { place } = request;
    if (!place || isDeepStrictEqual(workspace.facts.stored.place, place)) return start();
    return this.#choosePlace(workspace, path.requested, place).then(start);
  }

  #start(workspace: Workspace, requested: string, sidecar: SidecarRequest): Workspace | Promise<Workspace> {
    const before = workspace.snapshot();
    if (sidecar === undefined && isServing(before)) return workspace;
    workspace.send({ type: 'ENSURE', ...this.#choice(workspace, sidecar) });
    const shares = sidecar === undefined && isStarting(before);
    return isServing(workspace.snapshot()) ? workspace : this.#reachServing(workspace, requested, shares);
  }

  /** `POST /v1/appservers/restart`. Checks the place first, so that a server that runs is not stopped for one that cannot start. */
  async restart(path: unknown, apiProxy: unknown, place?: PlaceRequest): Promise<AppServerRecord> {
    const sidecar = parseSidecarRequest(apiProxy);
    const { requested, canonical } = this.#resolveLive(path);
    const workspace = this.#open({ requested, canonical });
    const before = workspace.snapshot();
    refuseExternal(workspace, requested);
    if (isServing(before)) refuseUnusable(workspace, requested);
    if (isServing(before) || place) await this.#choosePlace(workspace, requested, place);
    workspace.send({ type: 'RESTART', ...this.#choice(workspace, sidecar) });
    await this.#reachServing(workspace, requested);
    // The running adoption may have found an external server, which a restart does not touch.
    if (isAdopting(before)) refuseExternal(workspace, requested);
    return workspace.record(requested);
  }

  /** `POST /v1/appservers/stop`. A workspace whose directory is gone is not listed afterwards. */
  async stop(path: unknown, endsTurns: boolean): Promise<AppServerRecord> {
    const resolved = this.#resolveKnown(path);
    const { requested, canonical } = resolved;
    const workspace = this.workspaces.get(canonical);
    const before = workspace?.snapshot();
    if (!before?.context.hasProcess && !(before && isStarting(before))) this.#refuseForeign(canonical, requested);
    if (!workspace || !before) {
      await endWaitingCommands(this.#hub, canonical);
      return this.#inspectPath(resolved);
    }
    workspace.send({ type: 'STOP', reason: 'user', endsTurns });
    const snapshot = await workspace.over(before);
    if (isStopping(snapshot)) throw failureOf(workspace, snapshot, requested);
    // If this Hub is killed now, the next one must not start the workspace again. Failed writes are logged elsewhere.
    await this.#hub.save().catch(() => undefined);
    // A later request has begun another run: the answer describes the end of the one that this request stopped.
    if (isSuperseded(snapshot, before)) return restingRecord(this.#hub, resolved, workspace.facts);
    await endWaitingCommands(this.#hub, canonical);
    const record = workspace.record(requested);
    const isHeld = probeLock(workspaceFiles(this.#hub.home, canonical).mutexPath) === 'held';
    if (isStopped(snapshot) && !isHeld && isGone(canonical)) this.#forget(workspace);
    return record;
  }

  /** Stops every managed agent server; resolves when all are at rest. */
  async stopAll(): Promise<void> {
    const addresses = new Map(
      [...this.workspaces.values()].flatMap(enginesOf).map((each) => [JSON.stringify(each), each]),
    );
    const left = [...this.workspaces.values()].filter(({ snapshot }) => hasWork(snapshot()));
    await Promise.all(left.map(stopForGood));
    for (const address of addresses.values()) {
      await endContainers(this.#hub, address).catch((error: unknown) =>
        this.#hub.logger.warn('could not remove old containers of this home; the next start tries again', {
          ...address,
          error,
        }),
      );
    }
  }

  /** Stops watching; all processes continue. The workspaces stay known for a queued write of the state. */
  releaseAll(): void {
    for (const workspace of this.workspaces.values()) workspace.release();
  }

  /**
   * Checks the place of the next start and saves it, so that no kill loses it.
   *
   * @param place absent: as chosen before
   * @throws HttpError `placeUnavailable`, `imageMissing`, `placeRefused`
   */
  async #choosePlace({ path, facts: { stored } }: Workspace, requested: string, place = stored.place): Promise<void> {
    try {
      await checkPlace(this.#hub, path, place);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      const message = `${error.message} The agent server was not changed.`;
      throw hubError(errorCodes[error.failure.kind], message, { workspacePath: requested, error: error.message });
    }
    if (place) stored.place = place;
    // The start that follows saves again, and fails if that fails.
    await this.#hub.save().catch(() => undefined);
  }

  #open({ requested, canonical }: WorkspacePath): Workspace {
    const known = this.workspaces.get(canonical);
    if (known) {
      known.lastRequested(requested);
      return known;
    }
    return this.restore({
      workspacePath: requested,
      canonicalWorkspacePath: canonical,
      directory: null,
      server: null,
      external: false,
      proxy: null,
      exitCode: null,
      lastError: null,
      lastStartedAt: null,
      lastExitedAt: null,
      rest: null,
      asleep: null,
      tokenSeed: null,
      stoppedByUser: false,
      report: null,
      configHash: null,
      failures: [],
    });
  }

  /** A workspace whose directory has been deleted or moved is still known by the path it had. */
  #find(path: unknown): Workspace | undefined {
    const byName = typeof path === 'string' ? this.workspaces.get(path) : undefined;
    if (byName) return byName;
    for (const workspace of this.workspaces.values()) {
      if (workspace.facts.stored.workspacePath === path) return workspace;
    }
    return undefined;
  }

  /** @throws HttpError `workspaceNotFound`; for a known workspace whose directory is gone with its new place */
  #resolveLive(path: unknown): WorkspacePath {
    try {
      return this.#options.resolvePath(path);
    } catch (error) {
      const known = this.#find(path);
      if (!known || !isGone(known.path)) throw error;
      const { message, movedTo } = goneWorkspace(known.facts.stored);
      throw hubError('workspaceNotFound', message, { workspacePath: path, movedTo }, 404);
    }
  }

  /** Ends the supervision of a workspace whose directory is gone. Its state in the home stays. */
  #forget(workspace: Workspace): void {
    workspace.release();
    this.workspaces.delete(workspace.path);
    this.#facts.delete(workspace.path);
    this.#byId.delete(workspace.facts.id);
    void this.#hub.save();
  }

  #resolveKnown(path: unknown): WorkspacePath {
    try {
      return this.#options.resolvePath(path);
    } catch (error) {
      const known = this.#find(path);
      if (known) return { requested: String(path), canonical: known.path };
      throw error;
    }
  }

  /** The request as the machine takes it: by number, for the key stays outside. */
  #choice({ facts, snapshot }: Workspace, request: SidecarRequest): { sidecar?: SidecarReference } {
    if (request === undefined) return {};
    if (request === 'none') return { sidecar: 'none' };
    facts.secrets.add(request.apiKey);
    return { sidecar: facts.sidecars.numberOf(request, sidecarsInUse(snapshot().context)) };
  }

  /** @param shares the caller named no sidecar and waits for a start that another request began */
  async #reachServing(workspace: Workspace, requested: string, shares = false): Promise<Workspace> {
    const snapshot = await workspace.settled(isDecided);
    if (isServing(snapshot)) return workspace;
    // The sidecar that failed was requested by another caller: this one starts without it.
    if (shares && hasUnprovenSidecar(snapshot)) {
      workspace.send({ type: 'ENSURE' });
      return this.#reachServing(workspace, requested);
    }
    throw failureOf(workspace, snapshot, requested);
  }

  #inspectPath(path: WorkspacePath): Promise<AppServerRecord> | AppServerRecord {
    const workspace = this.workspaces.get(path.canonical);
    if (workspace && !isStopped(workspace.snapshot())) return workspace.record(path.requested);
    return inspectUnmanaged(this.#hub, path, workspace?.record(path.requested));
  }

  /** @throws HttpError `workspaceLocked` when a process of another home owns the workspace: it is not this Hub's to stop */
  #refuseForeign(canonical: string, requested: string): void {
    const files = workspaceFiles(this.#hub.home, canonical);
    const owner = foreignHolder(files);
    if (!owner) return;
    const { pid } = owner;
    const { lockPath } = files;
    throw hubError('workspaceLocked', ownedMessage(owner), { workspacePath: requested, pid, lockPath });
  }

  /** Present record of a row of the list, with a server that runs without this Hub. */
  inspected(row: AppServerRecord): Promise<AppServerRecord> | AppServerRecord {
    const record = this.workspaces.get(row.canonicalWorkspacePath)?.record() ?? row;
    const { state, workspacePath: requested, canonicalWorkspacePath: canonical } = record;
    return state === 'stopped' ? inspectUnmanaged(this.#hub, { requested, canonical }, record) : record;
  }
}

/** Refuses a restart with invalid settings, so that the running server continues. @throws HttpError `invalidConfig` */
function refuseUnusable(workspace: Workspace, requested: string): void {
  const { problem } = workspace.settings();
  if (problem === null) return;
  const { message, file, key } = problem;
  throw hubError('invalidConfig', `${message}. The running server was not changed.`, {
    workspacePath: requested,
    error: message,
    file,
    key: key === '' ? null : key,
  });
}

/** @throws HttpError `workspaceLocked` when the live server was started outside the Hub */
function refuseExternal(workspace: Workspace, requested: string): void {
  const snapshot = workspace.snapshot();
  if (!hasExternalProcess(snapshot)) return;
  throw hubError('workspaceLocked', 'The agent server was started outside the Hub; restart it there.', {
    workspacePath: requested,
    pid: snapshot.context.pid,
    lockPath: workspaceLockPath(workspace.path),
  });
}

/** Engines and clusters on which a workspace has or had a container or pod of this Hub. */
const enginesOf = ({ facts: { stored, container } }: Workspace): PlaceAddress[] =>
  [stored.server?.container, container].flatMap((each) => (each ? [addressOf(each)] : []));

/** Keeps the reason that a stopped workspace does not run. */
const hasWork = (snapshot: AgentServerSnapshot): boolean =>
  !isAtRest(snapshot) || isAsleep(snapshot) || snapshot.context.slot.state !== 'none';

async function stopForGood(workspace: Workspace): Promise<void> {
  workspace.send({ type: 'STOP', reason: 'hub' });
  await workspace.settled();
}
