import type { ChatRequestStore, ResponseStore, Runtime } from '../agent/index.ts';
import type { Config } from '../config/index.ts';
import type { Dashboard } from '../dashboard/index.ts';
import {
  type AnyRoute,
  type AnyWebSocketRoute,
  createServer,
  type HttpServer,
  knownHosts,
  loopbackHosts,
  type OwnerAccess,
  ownAuthorities,
  publishedAs,
  type ServerOptions,
} from '../http/index.ts';
import { hostAndPort, httpBase, isLoopback, type ListenAddress, plainHost } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { dashboardPaths, defaults, type LaunchDocument, version } from '../protocol/index.ts';
import { apiToolsOf } from './offered-tools.ts';
import { listen } from './server.ts';
import { StartupError } from './startup-error.ts';

/** Mode of this process, and so the services that it offers. */
export type Mode = 'managed' | 'appServer' | 'api' | 'gateway';

export interface ServicesOptions {
  readonly mode: Mode;
  readonly config: Config;
  readonly launch: LaunchDocument | undefined;
  readonly runtime: Runtime;
  readonly chatRequests: ChatRequestStore;
  readonly responses: ResponseStore;
  readonly health: () => Readonly<Record<string, unknown>>;
  /** Makes the dashboard; called when it is wanted. */
  readonly dashboard: (listener: DashboardListener) => Promise<Dashboard>;
  /** Users that a service without a configured key serves. Present when `hasFaceWithoutKey`. */
  readonly ownerAccess: OwnerAccess | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
}

type PlanOptions = Pick<ServicesOptions, 'mode' | 'config' | 'launch'>;

export type ServiceKey = 'api' | 'agui' | 'dashboard';

/** The listener that carries the dashboard. */
export interface DashboardListener {
  /** Nothing else is served at its address. */
  readonly ownsListener: boolean;
  /** Whether clients that believe to speak to `host[:port]` speak to it. */
  readonly isOwn: (authority: string) => boolean;
}

/** HTTP service with the address that it will listen on. */
interface Planned {
  readonly name: ServiceKey;
  readonly address: ListenAddress;
  readonly path: string;
  /** Another port is better than none: the lock file has the actual one, for the Hub and for all clients. */
  readonly takesAnyPort: boolean;
}

/** A service whose port could not be had. */
export interface MovedService {
  readonly service: ServiceKey;
  readonly wanted: ListenAddress;
  readonly bound: ListenAddress;
}

export interface Services {
  /** Address of each service that answers. */
  readonly endpoints: Readonly<Partial<Record<ServiceKey, string>>>;
  /** Services that listen on another port than asked for. */
  readonly moved: readonly MovedService[];
  readonly servers: readonly HttpServer[];
  close(): Promise<void>;
}

/**
 * Opens the HTTP services that the mode and the configuration ask for: chat completions, AG-UI and the dashboard. Services
 * with the same address share one server (specification §1).
 *
 * @throws StartupError config (others could reach it and nothing protects it), system (the port cannot be had)
 */
export async function openServices(options: ServicesOptions): Promise<Services> {
  const servers: HttpServer[] = [];
  const dashboards: Dashboard[] = [];
  const endpoints: Partial<Record<ServiceKey, string>> = {};
  const moved: MovedService[] = [];
  const close = async () => {
    for (const dashboard of dashboards) dashboard.close();
    await Promise.all(servers.map((server) => server.close(defaults.http.closeGraceMs)));
  };
  try {
    for (const group of groupsOf(planOf(options))) {
      const { server, dashboard } = await open(group, options);
      servers.push(server);
      if (dashboard) dashboards.push(dashboard);
      const bound = await bind(server, group, options);
      for (const { name, path, address: wanted } of group) {
        endpoints[name] = `${httpBase(bound)}${path}`;
        if (wanted.port !== 0 && wanted.port !== bound.port) moved.push({ service: name, wanted, bound });
      }
    }
    return { endpoints, moved, servers, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Whether this server offers a dashboard at all. */
export function wantsDashboard({ mode, config, launch }: PlanOptions): boolean {
  return mode === 'managed' ? launch?.services.dashboard !== undefined : mode !== 'api' && config.DashBoard.Enabled;
}

/** Whether this server offers a face that runs commands and for which no key is configured. */
export function hasFaceWithoutKey(options: PlanOptions): boolean {
  return planOf(options).some(({ name }) => lacksKey(name, options.config));
}

function lacksKey(name: ServiceKey, { Api, AgUi }: Config): boolean {
  return (name === 'api' && Api.ApiKey.trim() === '') || (name === 'agui' && AgUi.ApiKey === '');
}

function planOf(options: PlanOptions): Planned[] {
  const { mode, config, launch } = options;
  const { Api, AgUi, DashBoard } = config;
  const page = { name: 'dashboard', path: dashboardPaths.page, takesAnyPort: true } as const;
  if (mode === 'managed') {
    const { api, agui, dashboard } = launch?.services ?? {};
    return [
      ...(api ? [{ name: 'api', address: api, path: '', takesAnyPort: true } as const] : []),
      ...(agui ? [{ name: 'agui', address: agui, path: agui.path, takesAnyPort: true } as const] : []),
      ...(dashboard ? [{ ...page, address: dashboard }] : []),
    ];
  }
  const wantsApi = mode === 'api' || Api.Enabled;
  return [
    ...(wantsApi
      ? [{ name: 'api', address: { host: Api.Host, port: Api.Port }, path: '', takesAnyPort: false } as const]
      : []),
    ...(AgUi.Enabled && mode !== 'api'
      ? [{ name: 'agui', address: { host: AgUi.Host, port: AgUi.Port }, path: AgUi.Path, takesAnyPort: false } as const]
      : []),
    ...(wantsDashboard(options) ? [{ ...page, address: { host: DashBoard.Host, port: DashBoard.Port } }] : []),
  ];
}

/** Services with the same address, together. A port of 0 is never the same as another. */
function groupsOf(planned: readonly Planned[]): Planned[][] {
  const groups: Planned[][] = [];
  for (const service of planned) {
    const group = groups.find((members) => members.every(({ address }) => isSameAddress(address, service.address)));
    if (group) group.push(service);
    else groups.push([service]);
  }
  return groups;
}

/** `localhost` is whichever loopback address the other service names. */
function isSameAddress(a: ListenAddress, b: ListenAddress): boolean {
  if (a.port !== b.port || a.port === 0) return false;
  const [left, right] = [plainHost(a.host), plainHost(b.host)];
  if (left === right) return true;
  return (left === 'localhost' && isLoopback(right)) || (right === 'localhost' && isLoopback(left));
}

/** Address of a group: the address that one of its services spells out, rather than the name `localhost`. */
function addressOfGroup(group: readonly Planned[]): ListenAddress | undefined {
  return (group.find(({ address }) => plainHost(address.host) !== 'localhost') ?? group[0])?.address;
}

/** Routes and hooks that one service adds to its server. */
interface Face {
  readonly routes: readonly AnyRoute[];
  readonly webSockets?: readonly AnyWebSocketRoute[];
  /** Whether the service answers for a path, known or not. Absent: it answers for the paths of no other service. */
  readonly owns?: (path: string | undefined) => boolean;
  readonly guard?: ServerOptions['guard'];
  readonly headers?: ServerOptions['headers'];
  readonly errorBody?: ServerOptions['errorBody'];
  readonly dashboard?: Dashboard;
}

const faces: { readonly [K in ServiceKey]: (planned: Planned, group: Group) => Promise<Face> } = {
  async agui({ path }, { options: { runtime, config, ownerAccess } }) {
    const { aguiRoutes } = await import('../agui/index.ts');
    const routes = aguiRoutes({ runtime, path, apiKey: config.AgUi.ApiKey, ownerAccess });
    return { routes, owns: (asked) => asked === path };
  },
  async api(_planned, { isPublic, options }) {
    const { chatErrorBody, chatGuard, chatRoutes, isChatPath } = await import('../chat/index.ts');
    const { config, mode, runtime, chatRequests: requests, responses, health, logger, ownerAccess } = options;
    return {
      routes: chatRoutes({
        runtime,
        requests,
        responses,
        api: { ...config.Api, EnabledTools: [...apiToolsOf(config)] },
        ownerAccess,
        isPublic,
        version,
        mode,
        logger,
        health,
      }),
      owns: isChatPath,
      guard: chatGuard({ api: config.Api, ownerAccess }),
      errorBody: chatErrorBody,
    };
  },
  async dashboard(_planned, { members, options, bound }) {
    const names = options.config.DashBoard.AllowedHosts;
    const isOwn = ownAuthorities({ bound, names, published: publishedAs(options.env) });
    const [{ dashboardGuard, dashboardHeaders }, dashboard] = await Promise.all([
      import('../dashboard/index.ts'),
      options.dashboard({ ownsListener: members.length === 1, isOwn }),
    ]);
    const { routes, webSockets } = dashboard;
    return { routes, webSockets, guard: dashboardGuard, headers: dashboardHeaders, dashboard };
  },
};

/** Services that share an address. */
interface Group {
  readonly members: readonly Planned[];
  readonly isPublic: boolean;
  readonly options: ServicesOptions;
  /** Returns the address of the group, once it listens. */
  readonly bound: () => ListenAddress | undefined;
}

async function open(members: readonly Planned[], options: ServicesOptions) {
  const { config, logger } = options;
  const host = members[0]?.address.host ?? '';
  let listening: HttpServer | undefined;
  const group: Group = { members, isPublic: !isLoopback(host), options, bound: () => listening?.bound };
  if (group.isPublic) for (const { name } of members) requireProtection(name, host, config);
  const carried = await Promise.all(members.map((planned) => faces[planned.name](planned, group)));
  const faceOf = (path: string | undefined) =>
    carried.find(({ owns }) => owns?.(path)) ?? carried.find(({ owns }) => owns === undefined);
  const dashboard = carried.find((face) => face.dashboard)?.dashboard;
  // Only `node:http` knows the process of the client, see `RequestContext.peerUid`.
  const readsPeerUid = members.some(({ name }) => lacksKey(name, config)) && process.platform === 'linux';
  const server = await createServer(
    {
      readsPeerUid,
      routes: carried.flatMap(({ routes }) => routes),
      webSockets: carried.flatMap(({ webSockets = [] }) => webSockets),
      guard: (request) => faceOf(request.path)?.guard?.(request),
      headers: (path) => faceOf(path)?.headers?.(path) ?? [],
      hostAllowed: hostRule(group, dashboard !== undefined),
      errorBody: (error) =>
        faceOf(error.path)?.errorBody?.(error) ?? {
          error: { code: error.code, message: error.message, details: error.details },
        },
      onBug: (error, errorId) => logger.error('a request failed because of a bug', { errorId, error }),
      limits: {
        bodyBytes: defaults.http.hubBodyBytes,
        deadlineMs: defaults.http.requestDeadlineMs,
        sseBufferBytes: dashboard ? defaults.dashboard.streamBufferBytes : defaults.sse.bufferBytes,
        sseHeartbeatMs: defaults.sse.heartbeatMs,
        sseRetryMs: defaults.sse.retryMs,
      },
    },
    readsPeerUid ? 'node' : 'auto',
    (reason) => logger.warn('uWebSockets.js does not load here; serving on node:http instead', { reason }),
  );
  listening = server;
  return { server, dashboard };
}

/** Returns the host rule of a listener. With the dashboard, browsers use it: all its services then follow the stricter rule. */
function hostRule(
  { members, isPublic, options: { config } }: Group,
  hasDashboard: boolean,
): ServerOptions['hostAllowed'] {
  const hosts = members.map(({ address }) => address.host);
  if (hasDashboard) return knownHosts({ isPublic, names: [...hosts, ...config.DashBoard.AllowedHosts] });
  return isPublic ? () => true : loopbackHosts();
}

/** Refuses to expose an agent or its conversations to the network without protection. @throws StartupError (config) */
function requireProtection(name: ServiceKey, host: string, config: Config): void {
  const { Api, AgUi, DashBoard } = config;
  const missing: Readonly<Record<ServiceKey, string | undefined>> = {
    api: Api.ApiKey.trim() === '' ? 'Api.ApiKey' : undefined,
    agui: AgUi.ApiKey === '' ? 'AgUi.ApiKey' : undefined,
    dashboard:
      DashBoard.Username === '' || DashBoard.Password === ''
        ? 'DashBoard.Username and DashBoard.Password'
        : DashBoard.Auth === 'none'
          ? 'DashBoard.Auth ("token")'
          : undefined,
  };
  if (missing[name] === undefined) return;
  throw new StartupError('config', `${missing[name]} must be set to listen on ${host}, which others can reach`);
}

const portSettings: Readonly<Record<ServiceKey, string>> = {
  api: 'Api.Port',
  agui: 'AgUi.Port',
  dashboard: 'DashBoard.Port',
};

async function bind(
  server: HttpServer,
  group: readonly Planned[],
  { launch, logger }: Pick<ServicesOptions, 'launch' | 'logger'>,
): Promise<ListenAddress> {
  const [first] = group;
  const address = addressOfGroup(group);
  if (!first || !address) throw new TypeError('a group of services has one at least');
  // A client that has a port finds nothing at another one: one such service is enough.
  const takesAnyPort = group.every((service) => service.takesAnyPort);
  try {
    return await (takesAnyPort ? listen(server, address, logger, launch?.sharesPorts) : server.listen(address));
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    const reason = isTaken ? 'the port is taken' : (error as Error).message;
    const message = `cannot listen on ${hostAndPort(address)}: ${reason}; see ${portSettings[first.name]}`;
    throw new StartupError(isTaken ? 'portTaken' : 'system', message, { cause: error });
  }
}
