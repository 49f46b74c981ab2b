import type { Readable, Writable } from 'node:stream';
import type { StoredThread } from '../agent/index.ts';
import {
  type Config,
  extraToolNames,
  generatedKeyFile,
  handOverMsOf,
  type LoadedConfig,
  settingPlaces,
  toolNames,
} from '../config/index.ts';
import type { HttpServer, OwnerAccess } from '../http/index.ts';
import { hostAndPort, isLoopback } from '../lib/index.ts';
import type { RecentLog } from '../log/index.ts';
import { openRelaySockets, type Relay, relayDirectory } from '../places/index.ts';
import { defaults, type Sleep, type SleepRequest, type Turn, version } from '../protocol/index.ts';
import { type DashboardTokens, ownIdentity, takeHandOver } from '../supervise/index.ts';
import { ActiveSessions, Activity } from './activity.ts';
import { addressOf, type ServingAddress } from './address.ts';
import type { AppServer, AppServerOptions, TurnsEnd } from './app-server.ts';
import { type Assembly, assemble } from './assembly.ts';
import type { AssemblyOptions } from './assembly-options.ts';
import { prepared } from './compiled-program.ts';
import type { ConnectionOptions } from './connection.ts';
import { openDashboard } from './dashboard.ts';
import { homeOf, tokenSource } from './dashboard-access.ts';
import { examine, type Health, metricsText } from './health.ts';
import { HealthWatch } from './health-watch.ts';
import { Inbox, inboxRoutes } from './inbox.ts';
import { incarnationOf, withIncarnation } from './incarnation.ts';
import { inspectionRoutes, inspectionSocket } from './inspection.ts';
import { type Methods, methodsOf } from './methods.ts';
import { Observatory } from './observatory.ts';
import { type FaceTools, faceToolsOf } from './offered-tools.ts';
import { ProgramFile } from './program-file.ts';
import { type GeneratedKey, generatedKey, secretsOf } from './secrets.ts';
import { listen, openServer } from './server.ts';
import {
  type DashboardListener,
  hasFaceWithoutKey,
  type MovedService,
  openServices,
  type Services,
  type ServicesOptions,
  wantsDashboard,
} from './services.ts';
import { StartupError } from './startup-error.ts';
import { serveStdio } from './stdio.ts';
import { notificationOf } from './turn-notification.ts';
import type { HeldWorkspace } from './workspace.ts';

/** Time since the last use before an idle server is restarted: a client that has just read is about to ask. */
const quietMs = 1_000;

/** Stores the server's own log for the log view, and the function that ends that. */
export interface KeptLog {
  readonly recentLog: RecentLog;
  readonly untap: () => void;
}

/** Settings, the user's trust in the workspace, and sandboxes of the server before this one. */
export type RunningConfig = Pick<LoadedConfig, 'config' | 'trust' | 'layers'> & Pick<AssemblyOptions, 'sandboxes'>;

/** One workspace being served: the runtime, the listeners in front of it, and the order in which they come and go. */
export class RunningServer implements AppServer {
  readonly workspacePath: string;
  readonly #workspace: HeldWorkspace;
  readonly #config: Config;
  readonly #options: AppServerOptions;
  readonly #address: ServingAddress;
  readonly #incarnation: string;
  readonly #log: KeptLog;
  readonly #startedAt = new Date().toISOString();
  readonly #active = new ActiveSessions();
  readonly #dashboardTokens: (() => DashboardTokens) | undefined;
  readonly #ownerAccess: (OwnerAccess & Pick<GeneratedKey, 'isNew'>) | undefined;
  readonly #observatory: Observatory;
  readonly #activity: Activity;
  readonly #program: ProgramFile;
  readonly #assembly: Assembly;
  readonly #health: HealthWatch;
  readonly #connection: Omit<ConnectionOptions, 'wire'>;
  readonly #inbox: Inbox;
  #isServing = false;
  #server: HttpServer | undefined;
  #services: Services | undefined;
  #authority = '';
  #relay: Relay | undefined;
  #closing: Promise<void> | undefined;
  readonly #asleep = Promise.withResolvers<void>();

  /** @throws StartupError (config) */
  private constructor(
    workspace: HeldWorkspace,
    { config, trust, layers, sandboxes }: RunningConfig,
    options: AppServerOptions,
    log: KeptLog,
  ) {
    const { launch, logger, env, provider, checkpointEngines } = options;
    this.workspacePath = workspace.path;
    this.#workspace = workspace;
    this.#config = config;
    this.#options = options;
    this.#address = addressOf(config, options);
    this.#incarnation = incarnationOf(launch, env);
    this.#log = log;
    const isShown = wantsDashboard({ mode: this.#mode, config, launch });
    this.#dashboardTokens = isShown ? tokenSource(homeOf(launch, env), workspace.path, logger) : undefined;
    this.#ownerAccess = this.#findOwnerAccess();
    const tokens = [this.#address.token, this.dashboardToken ?? '', this.#ownerAccess?.key ?? ''];
    const secrets = secretsOf(config, launch, tokens);
    for (const secret of secrets) logger.protect(secret);
    this.#observatory = new Observatory(logger);
    this.#assembly = assemble({
      workspacePath: workspace.path,
      workspace: workspace.pinned,
      stateDirectory: workspace.stateDirectory,
      config,
      layers,
      isTrusted: trust === 'trusted',
      isManaged: launch !== undefined,
      isContained: launch?.tools?.sandbox === 'container',
      sandboxes,
      upstream: launch?.upstream,
      incarnation: this.#incarnation,
      env: withIncarnation(env, this.#incarnation),
      secrets,
      logger,
      provider,
      checkpointEngines,
      observe: (actor, observable) => {
        this.#active.observe(actor, observable);
        if (observable.machine === 'turn') this.#inbox.hasten();
        this.#observatory.add(actor, observable);
      },
      stepsOf: this.#observatory.stepsOf,
      onTurnEnd: (thread, turn) => this.#noteTurnEnd(thread, turn),
    });
    this.#program = options.program ?? new ProgramFile();
    this.#health = new HealthWatch({
      workspacePath: workspace.path,
      stateDirectory: workspace.stateDirectory,
      incarnation: this.#incarnation,
      config,
      places: settingPlaces({ layers }, homeOf(launch, env)),
      launch,
      assembly: this.#assembly,
      onChange: () => this.#inbox.reportChange(),
    });
    const { runtime, mcp, threadServers, automations, library, paths } = this.#assembly;
    runtime.feed.join(this.#active.hear);
    this.#inbox = new Inbox(runtime, { examine: () => this.#examine(), report: () => this.#health.report() });
    // A client that is connected is about to ask, and a command that runs on needs its server.
    this.#activity = new Activity(() => this.#assembly.isBusy() || automations.isExpecting || this.#hasClients());
    this.#connection = {
      methods: this.#introduced(
        methodsOf(
          runtime,
          mcp,
          threadServers,
          automations,
          { library, paths, workspacePath: this.workspacePath },
          this.#assembly,
        ),
      ),
      feed: runtime.feed,
      respond: (...answer) => runtime.turns.respond(...answer),
      onWork: this.#activity.note,
      onStorageFailed: (message) => this.#health.storageFailed(message),
      onBug: (error) => logger.bug(error),
    };
  }

  /**
   * Opens everything, the WebSocket last, and publishes its address. After a failure, closes everything that was opened.
   *
   * @throws StartupError config, system
   */
  static async start(
    workspace: HeldWorkspace,
    config: RunningConfig,
    options: AppServerOptions,
    log: KeptLog,
  ): Promise<RunningServer> {
    const running = new RunningServer(workspace, config, options, log);
    try {
      await running.#open();
      return running;
    } catch (error) {
      await running.#release(0);
      throw error;
    }
  }

  get webSocketUrl(): string {
    return `ws://${this.#authority}/ws?token=${encodeURIComponent(this.#address.token)}`;
  }

  get baseUrl(): string {
    return `http://${this.#authority}`;
  }

  get dashboardToken(): string | undefined {
    return this.#dashboardTokens?.().current;
  }

  get endpoints(): AppServer['endpoints'] {
    return this.#services?.endpoints ?? {};
  }

  get moved(): AppServer['moved'] {
    return this.#services?.moved ?? [];
  }

  get generatedKey(): AppServer['generatedKey'] {
    const { key, keyFile, isNew = false } = this.#ownerAccess ?? {};
    return key === undefined || keyFile === undefined ? undefined : { key, file: keyFile, isNew };
  }

  get asleep(): Promise<void> {
    return this.#asleep.promise;
  }

  serveStdio(input: Readable, output: Writable): Promise<void> {
    return serveStdio({ input, output, connection: this.#connection });
  }

  async describe(): ReturnType<AppServer['describe']> {
    return { model: await this.#health.modelInUse(), ...this.#faceTools() };
  }

  #faceTools(): FaceTools {
    return faceToolsOf(
      this.#config,
      { standard: toolNames, extra: extraToolNames },
      {
        api: this.endpoints.api !== undefined,
        server: this.#mode !== 'api',
      },
    );
  }

  handOver(): TurnsEnd {
    const { launch, env } = this.#options;
    const order = takeHandOver(homeOf(launch, env), this.workspacePath, this.#incarnation);
    if (order?.endsTurns) return { kind: 'cancel' };
    const { reason = 'stop', withinMs = handOverMsOf(this.#config) } = order ?? {};
    return {
      kind: 'suspend',
      reason: reason === 'restart' && this.#program.isReplaced() ? 'upgrade' : reason,
      withinMs,
    };
  }

  close(turns: TurnsEnd = { kind: 'cancel' }): Promise<void> {
    this.#isServing = false;
    this.#closing ??= this.#release(defaults.http.closeGraceMs, turns);
    return this.#closing;
  }

  async #open(): Promise<void> {
    const { launch, logger } = this.#options;
    await this.#assembly.checkBudget();
    this.#server = await this.#createServer();
    this.#services = await openServices({
      mode: this.#mode,
      config: this.#config,
      launch,
      runtime: this.#assembly.runtime,
      chatRequests: this.#assembly.chatRequests,
      responses: this.#assembly.responses,
      health: this.#assembly.describe,
      dashboard: (listener) => this.#openDashboard(listener),
      ownerAccess: this.#ownerAccess,
      env: this.#options.env,
      logger,
    });
    this.#authority = hostAndPort(await this.#listen(this.#server));
    if (launch?.listen === 'unix') this.#relay = await this.#openRelay();
    this.#isServing = true;
    // The request that wakes a workspace comes after the address is published.
    this.#activity.note();
    this.#health.start();
    this.#publish();
    this.#assembly.runtime.resume();
    // Elsewhere the banner says so.
    if (launch) for (const warning of this.#faceTools().warnings) logger.warn(warning);
    const { library } = this.#server;
    logger.info('serving', { workspacePath: this.workspacePath, address: this.#authority, library });
    // Loading their client takes a while, and the start of the server must not wait for it.
    this.#assembly.mcp.start().catch((error: unknown) => logger.bug(error));
    this.#assembly.automations.start().catch((error: unknown) => logger.bug(error));
    this.#assembly.warmUp().then(
      () => prepared.publish(undefined),
      (error: unknown) => logger.bug(error),
    );
  }

  /** The generated key, when a face without a configured one is served. Without a writable home only the owner is served. */
  #findOwnerAccess(): (OwnerAccess & Pick<GeneratedKey, 'isNew'>) | undefined {
    const { launch, env, logger } = this.#options;
    if (!hasFaceWithoutKey({ mode: this.#mode, config: this.#config, launch })) return undefined;
    const home = homeOf(launch, env);
    try {
      const { key, file, isNew } = generatedKey(home, this.workspacePath);
      return { key, keyFile: file, isNew };
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      logger.warn('could not save an API key; only this user is served by the HTTP faces without a key', {
        home,
        code,
      });
      return { key: undefined, keyFile: generatedKeyFile(home, this.workspacePath), isNew: false };
    }
  }

  get #mode(): ServicesOptions['mode'] {
    const { launch, mode = 'appServer' } = this.#options;
    return launch ? 'managed' : mode;
  }

  /** Sends a client the address of its trace. */
  #introduced(methods: Methods): Methods {
    const { initialize } = methods;
    const endpoint = () => this.endpoints.dashboard;
    return {
      ...methods,
      async initialize(params, asker) {
        const handled = await initialize(params, asker);
        const dashboardUrl = endpoint();
        return dashboardUrl === undefined ? handled : { ...handled, result: { ...handled.result, dashboardUrl } };
      },
    };
  }

  #openDashboard(listener: DashboardListener) {
    const { launch, env, logger } = this.#options;
    return openDashboard(
      {
        workspacePath: this.workspacePath,
        home: homeOf(launch, env),
        env,
        config: this.#config,
        tokens: () => this.#dashboardTokens?.() ?? { current: '', earlier: [] },
        assembly: this.#assembly,
        health: this.#health,
        active: this.#active,
        observatory: this.#observatory,
        recentLog: this.#log.recentLog,
        startedAt: this.#startedAt,
        endpoints: () => this.endpoints,
        connection: this.#connection,
        isReady: () => this.#isServing,
        metrics: () =>
          metricsText(
            this.#assembly,
            this.#listeners().map((server) => server.stats()),
          ),
        logger,
      },
      listener,
    );
  }

  /** Whether a client has a lasting connection: a WebSocket, or a stream of the dashboard. The Hub reads a stream of the other listener. */
  #hasClients(): boolean {
    const ofServices = this.#services?.servers.map((server) => server.stats()) ?? [];
    return (
      (this.#server?.stats().webSockets ?? 0) > 0 ||
      ofServices.some(({ webSockets, sseReaders }) => webSockets > 0 || sseReaders > 0)
    );
  }

  /** All listeners of this process. */
  #listeners(): readonly HttpServer[] {
    return [...(this.#services?.servers ?? []), ...(this.#server ? [this.#server] : [])];
  }

  /**
   * Ends this server if it is idle. Stops listening before the last check: a connection that came before it keeps the server awake, and
   * a later one finds the Hub at the same port.
   */
  async #sleep({ idleMs }: SleepRequest): Promise<Sleep> {
    const isIdle = () => this.#activity.idleMs >= idleMs && !this.#hasConnections();
    if (!this.#isServing) return { sleeps: true };
    if (!isIdle()) return { sleeps: false };
    const listeners = this.#listeners();
    await Promise.all(listeners.map((server) => server.pause()));
    if (!isIdle()) {
      await Promise.all(listeners.map((server) => server.bound && server.listen(server.bound, true)));
      return { sleeps: false };
    }
    this.#asleep.resolve();
    return { sleeps: true };
  }

  /** Whether a connection is open beside those of the Hub: the feed of its inbox, and the request to sleep. */
  #hasConnections(): boolean {
    const { connections = 0, sseReaders = 0 } = this.#server?.stats() ?? {};
    const ofServices = this.#services?.servers.some((server) => server.stats().connections > 0) ?? false;
    return ofServices || connections - sseReaders > 1;
  }

  #createServer(): Promise<HttpServer> {
    const { logger } = this.#options;
    return openServer({
      token: this.#address.token,
      isPublic: !isLoopback(this.#address.host),
      connection: this.#connection,
      sleep: (request) => this.#sleep(request),
      inspection: (auth) => inspectionRoutes(this.#observatory, auth),
      inbox: (auth) => inboxRoutes(this.#inbox, auth),
      inspectionSocket: (auth) => inspectionSocket(this.#observatory, auth),
      examine: () => this.#examine(),
      isReady: () => this.#isServing,
      logger,
    });
  }

  #examine(): Promise<Health> {
    return examine({
      incarnation: this.#incarnation,
      runtime: this.#assembly.runtime,
      connection: this.#connection,
      connections: () => this.#server?.stats().webSockets ?? 0,
      idleMs: () => this.#activity.idleMs,
      // The lock went with the directory: a restart finds the right words for it, and costs no failed probes.
      isLockIntact: () => this.#workspace.lock.intact() || this.#isWorkspaceLost(),
      isRestartDue: () =>
        this.#isWorkspaceLost() ||
        (this.#program.isReplaced() && !this.#assembly.isBusy() && this.#activity.sinceUseMs > quietMs),
    });
  }

  /** Whether the path of the workspace leads elsewhere, and no work runs that a restart would end. */
  #isWorkspaceLost(): boolean {
    return this.#workspace.pinned.loss !== undefined && !this.#assembly.isBusy();
  }

  async #listen(server: HttpServer) {
    const { host, port } = this.#address;
    try {
      const { launch, logger } = this.#options;
      return await listen(server, { host, port }, logger, launch?.sharesPorts);
    } catch (error) {
      throw new StartupError('system', `cannot listen on ${host}: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Sockets through which the Hub reaches listeners in a separate network. */
  #openRelay(): Promise<Relay> {
    const urls = [this.baseUrl, ...Object.values(this.endpoints)];
    const ports = urls.map((url) => Number(new URL(url).port));
    const home = homeOf(this.#options.launch, this.#options.env);
    return openRelaySockets(relayDirectory(home, this.workspacePath), ports, this.#incarnation);
  }

  #publish(): void {
    const { launch } = this.#options;
    try {
      this.#workspace.publish({
        version: 1,
        pid: process.pid,
        identity: ownIdentity(),
        workspacePath: this.workspacePath,
        managedByHub: launch !== undefined,
        incarnation: this.#incarnation,
        adoptionProof: launch?.adoptionProof ?? null,
        startedAt: this.#startedAt,
        serverVersion: version,
        endpoints: { appServerWebSocket: this.webSocketUrl, ...this.endpoints },
        ...(this.moved.length > 0 && { serviceNotes: notesOf(this.moved) }),
        report: this.#health.report(),
      });
    } catch (error) {
      throw new StartupError('system', `cannot publish the address: ${(error as Error).message}`, { cause: error });
    }
  }

  #noteTurnEnd(thread: StoredThread, turn: Turn): void {
    const { logger } = this.#options;
    this.#activity.note();
    const { status, error } = turn;
    const about = { threadId: thread.id, turnId: turn.id, status };
    if (error) logger.warn('a turn has failed', { ...about, code: error.code, reason: error.message });
    else logger.debug('a turn has ended', about);
    if (!this.#isServing) return;
    this.#health.turnEnded(turn);
    const notification = notificationOf(thread, turn);
    if (notification) this.#inbox.notify(notification);
  }

  /** Accepts no new client; turns are suspended or end, and their clients receive that; then the listeners close, and the workspace is free. */
  async #release(graceMs: number, turns: TurnsEnd = { kind: 'cancel' }): Promise<void> {
    this.#isServing = false;
    this.#health.stop();
    try {
      this.#workspace.withdraw();
      if (turns.kind === 'suspend' && turns.reason !== 'stop') this.#assembly.handOver();
      if (turns.kind === 'suspend') await this.#assembly.runtime.suspend(turns);
      await this.#assembly.close();
      this.#observatory.close();
      this.#inbox.close();
      await Promise.all([this.#services?.close(), this.#server?.close(graceMs)]);
    } finally {
      this.#relay?.close();
      this.#log.untap();
      this.#workspace.release();
    }
  }
}

/** Returns notes for the records of services that listen on another port than requested. */
function notesOf(moved: readonly MovedService[]): Record<string, string> {
  return Object.fromEntries(
    moved.map(({ service, wanted, bound }) => [
      service,
      `Port ${wanted.port} was not free; listening on ${bound.port}.`,
    ]),
  );
}
