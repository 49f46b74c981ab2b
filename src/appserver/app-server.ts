import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { type ModelProvider, type SandboxStatus, sandboxStatus } from '../agent/index.ts';
import { type Config, ConfigError, homeDirectory, isLoopback, loadConfig } from '../config/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, type LaunchDocument, version } from '../protocol/index.ts';
import { ownIdentity } from '../supervise/index.ts';
import { Activity } from './activity.ts';
import type { ListenAddress } from './arguments.ts';
import { assemble } from './assembly.ts';
import { inspectionRoutes } from './inspection.ts';
import { methodsOf } from './methods.ts';
import { Observatory } from './observatory.ts';
import { listen, openServer } from './server.ts';
import { type Mode, openServices, urlHost } from './services.ts';
import { StartupError } from './startup-error.ts';
import { serveStdio } from './stdio.ts';
import { notificationOf, tellHub } from './tell-hub.ts';
import { type HeldWorkspace, holdWorkspace } from './workspace.ts';

export interface AppServerOptions {
  readonly workspacePath: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  /** What the Hub says, when a Hub started this process. Its ports and tokens come before everything configured. */
  readonly launch?: LaunchDocument | undefined;
  /** Comes before the configured address. */
  readonly listen?: ListenAddress | undefined;
  /** Which services are offered; default: those of the Hub's launch document, or of the configuration. */
  readonly mode?: Exclude<Mode, 'managed'> | undefined;
  /** Another model provider than the configured one, for those who embed the server. */
  readonly provider?: () => Promise<ModelProvider>;
}

/** A server that answers. */
export interface AppServer {
  readonly workspacePath: string;
  /** With its token. */
  readonly webSocketUrl: string;
  /** Without one; `/healthz` and `/readyz` are there. */
  readonly baseUrl: string;
  /** Where the other services answer. */
  readonly endpoints: Readonly<Partial<Record<'api' | 'agui', string>>>;
  /** Speaks JSON-RPC on these two instead of a socket; resolves when the input ends. */
  serveStdio(input: Readable, output: Writable): Promise<void>;
  /** What answers, and with which tools: for people. */
  describe(): Promise<{ readonly provider: string; readonly model: string; readonly tools: readonly string[] }>;
  /** Ends turns (their clients hear of it), withdraws the address, closes every connection, lets the workspace go. */
  close(): Promise<void>;
}

/**
 * Starts serving one workspace. Its OS lock comes first: whoever does not get it has changed nothing.
 *
 * @throws StartupError for everything that the user or the Hub can do something about
 */
export async function startAppServer(options: AppServerOptions): Promise<AppServer> {
  const workspace = holdWorkspace(options.workspacePath);
  try {
    const { launch } = options;
    if (launch && launch.workspacePath !== workspace.path) {
      throw new StartupError('config', `the launch document is for another workspace, ${launch.workspacePath}`);
    }
    return await serve(workspace, options, await readConfig(workspace, options));
  } catch (error) {
    workspace.lock.release();
    throw error;
  }
}

async function readConfig(workspace: HeldWorkspace, { env, logger }: AppServerOptions): Promise<Config> {
  try {
    const { config, warnings } = await loadConfig({ home: homeDirectory(env), workspace: workspace.path, env });
    for (const warning of warnings) logger.warn(warning);
    return config;
  } catch (error) {
    if (error instanceof ConfigError) throw new StartupError('config', error.message, { cause: error });
    throw error;
  }
}

/** The address and token to serve with: the Hub's word, the command line's, the configuration's. @throws StartupError (config) */
function addressOf(config: Config, { launch, listen: asked }: AppServerOptions): ListenAddress & { token: string } {
  if (launch) return launch.services.appServerWebSocket;
  const { Host, Port, Token } = config.AppServer.WebSocket;
  const { host, port } = asked ?? { host: Host, port: Port };
  if (!isLoopback(host) && Token === '') {
    throw new StartupError(
      'config',
      `AppServer.WebSocket.Token must be set to listen on ${host}, which others can reach`,
    );
  }
  return { host, port, token: Token || randomBytes(32).toString('base64url') };
}

async function serve(workspace: HeldWorkspace, options: AppServerOptions, config: Config): Promise<AppServer> {
  const { launch, logger } = options;
  const address = addressOf(config, options);
  const secrets = [address.token, config.ApiKey, config.Api.ApiKey, config.AgUi.ApiKey, config.Tools.Web.SearchApiKey];
  for (const secret of [...secrets, launch?.notificationToken, launch?.upstream?.apiKey]) {
    if (secret) logger.protect(secret);
  }
  let state: 'starting' | 'serving' | 'stopping' = 'starting';
  const isReady = () => state === 'serving';
  const onBug = (error: unknown) => logger.bug(error);
  const observatory = new Observatory(logger);
  const {
    threads,
    mcp,
    close: closeRuntime,
  } = assemble({
    workspacePath: workspace.path,
    config,
    launch,
    env: options.env,
    logger,
    provider: options.provider,
    observe: observatory.add,
    onTurnEnd(thread, turn) {
      activity.note();
      const notification = launch && state === 'serving' ? notificationOf(thread, turn) : undefined;
      if (launch && notification) void tellHub(launch, notification, logger);
    },
  });
  const activity = new Activity(() => threads.activeTurns > 0);
  const connection = {
    methods: methodsOf(threads, mcp),
    feed: threads.feed,
    respond: threads.respond.bind(threads),
    onWork: activity.note,
    onBug,
  };
  const server = await openServer({
    token: address.token,
    isPublic: !isLoopback(address.host),
    connection,
    inspection: (auth) => inspectionRoutes(observatory, auth, logger),
    health: {
      incarnation: launch?.incarnation ?? null,
      threads,
      idleMs: () => activity.idleMs,
      isLockIntact: () => workspace.lock.intact(),
    },
    isReady,
    logger,
  });
  const mode: Mode = launch ? 'managed' : (options.mode ?? 'appServer');
  let sandbox: SandboxStatus = { mode: config.Tools.Shell.Sandbox, available: false, reason: 'not looked for yet' };
  void sandboxStatus(config.Tools.Shell.Sandbox, options.env).then((status) => {
    sandbox = status;
  }, onBug);
  const health = () => ({ sandbox, mcp: mcp.describe() });
  const abandon = async () => {
    await server.close(0);
    await closeRuntime();
  };
  const services = await openServices({ mode, config, launch, runtime: threads, health, logger }).catch(
    async (error: unknown) => {
      await abandon();
      throw error;
    },
  );
  const bound = await listen(server, address, logger).catch(async (error: unknown) => {
    await Promise.all([services.close(), abandon()]);
    throw new StartupError('system', `cannot listen on ${address.host}: ${(error as Error).message}`, { cause: error });
  });
  const authority = `${urlHost(bound.host)}:${bound.port}`;
  const webSocketUrl = `ws://${authority}/ws?token=${encodeURIComponent(address.token)}`;
  state = 'serving';
  try {
    workspace.publish({
      version: 1,
      pid: process.pid,
      identity: ownIdentity(),
      workspacePath: workspace.path,
      managedByHub: launch !== undefined,
      incarnation: launch?.incarnation ?? null,
      adoptionProof: launch?.adoptionProof ?? null,
      startedAt: new Date().toISOString(),
      serverVersion: version,
      endpoints: { appServerWebSocket: webSocketUrl, ...services.endpoints },
    });
  } catch (error) {
    await Promise.all([services.close(), abandon()]);
    throw new StartupError('system', `cannot publish the address: ${(error as Error).message}`, { cause: error });
  }
  logger.info('serving', { workspacePath: workspace.path, address: authority });

  async function close(): Promise<void> {
    state = 'stopping';
    workspace.withdraw();
    await closeRuntime();
    observatory.close();
    await Promise.all([services.close(), server.close(defaults.http.closeGraceMs)]);
    workspace.lock.release();
  }

  let closing: Promise<void> | undefined;
  return {
    workspacePath: workspace.path,
    webSocketUrl,
    baseUrl: `http://${authority}`,
    endpoints: services.endpoints,
    serveStdio: (input, output) => serveStdio({ input, output, connection }),
    describe: () => threads.describe(),
    close() {
      closing ??= close();
      return closing;
    },
  };
}
