import type { Runtime } from '../agent/index.ts';
import { type Config, isLoopback } from '../config/index.ts';
import { type AnyRoute, createServer, type HttpServer, loopbackHosts, type ServerOptions } from '../http/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, type LaunchDocument, version } from '../protocol/index.ts';
import { urlHost } from './address.ts';
import type { ListenAddress } from './arguments.ts';
import { listen } from './server.ts';
import { StartupError } from './startup-error.ts';

/** How this process runs, and so which services it offers where. */
export type Mode = 'managed' | 'appServer' | 'api' | 'gateway';

export interface ServicesOptions {
  readonly mode: Mode;
  readonly config: Config;
  readonly launch: LaunchDocument | undefined;
  readonly runtime: Runtime;
  readonly health: () => Readonly<Record<string, unknown>>;
  readonly logger: Logger;
}

/** One of the HTTP services, where it is to listen. */
interface Planned {
  readonly name: 'api' | 'agui';
  readonly address: ListenAddress;
  readonly path: string;
  /** Rather another port than none: the Hub reads the real one from the lock file. */
  readonly takesAnyPort: boolean;
}

export interface Services {
  /** By service: where it answers. */
  readonly endpoints: Readonly<Partial<Record<'api' | 'agui', string>>>;
  close(): Promise<void>;
}

/**
 * Opens the HTTP services that the mode and the configuration ask for: chat completions and AG-UI. Services with the same
 * address share one server.
 *
 * @throws StartupError config (others could reach it and nothing protects it), system (the port cannot be had)
 */
export async function openServices(options: ServicesOptions): Promise<Services> {
  const servers: HttpServer[] = [];
  const endpoints: Partial<Record<'api' | 'agui', string>> = {};
  const close = async () => {
    await Promise.all(servers.map((server) => server.close(defaults.http.closeGraceMs)));
  };
  try {
    for (const group of groupsOf(planOf(options))) {
      const server = await open(group, options);
      servers.push(server);
      const bound = await bind(server, group, options.logger);
      for (const { name, path } of group) endpoints[name] = `http://${urlHost(bound.host)}:${bound.port}${path}`;
    }
    return { endpoints, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function planOf({ mode, config, launch }: ServicesOptions): Planned[] {
  const { Api, AgUi } = config;
  if (mode === 'managed') {
    const { api, agui } = launch?.services ?? {};
    return [
      ...(api ? [{ name: 'api', address: api, path: '', takesAnyPort: true } as const] : []),
      ...(agui ? [{ name: 'agui', address: agui, path: agui.path, takesAnyPort: true } as const] : []),
    ];
  }
  const wantsApi = mode === 'api' || mode === 'gateway' || Api.Enabled;
  return [
    ...(wantsApi
      ? [{ name: 'api', address: { host: Api.Host, port: Api.Port }, path: '', takesAnyPort: false } as const]
      : []),
    ...(AgUi.Enabled && mode !== 'api'
      ? [{ name: 'agui', address: { host: AgUi.Host, port: AgUi.Port }, path: AgUi.Path, takesAnyPort: false } as const]
      : []),
  ];
}

/** Services with the same address, together. A port of 0 is never the same as another. */
function groupsOf(planned: readonly Planned[]): Planned[][] {
  const groups = new Map<string, Planned[]>();
  for (const service of planned) {
    const { host, port } = service.address;
    const key = port === 0 ? service.name : `${host}:${port}`;
    groups.set(key, [...(groups.get(key) ?? []), service]);
  }
  return [...groups.values()];
}

async function open(group: readonly Planned[], options: ServicesOptions): Promise<HttpServer> {
  const { config, logger } = options;
  const host = group[0]?.address.host ?? '';
  const isPublic = !isLoopback(host);
  for (const { name } of group) requireKey(name, host, isPublic, config);
  const routes: AnyRoute[] = [];
  let guard: ServerOptions['guard'];
  let errorBody: ServerOptions['errorBody'] = ({ code, message, details }) => ({ error: { code, message, details } });
  for (const { name, path } of group) {
    if (name === 'agui') {
      const { aguiRoutes } = await import('../agui/index.ts');
      routes.push(...aguiRoutes({ runtime: options.runtime, path, apiKey: config.AgUi.ApiKey }));
    } else {
      const { chatErrorBody, chatGuard, chatRoutes, isChatPath } = await import('../chat/index.ts');
      const { mode, runtime, health } = options;
      routes.push(...chatRoutes({ runtime, api: config.Api, isPublic, version, mode, logger, health }));
      guard = chatGuard({ api: config.Api });
      const elsewhere = errorBody;
      errorBody = (error) => (isChatPath(error.path) ? chatErrorBody(error) : elsewhere(error));
    }
  }
  return createServer(
    {
      routes,
      ...(guard && { guard }),
      hostAllowed: isPublic ? () => true : loopbackHosts(),
      errorBody,
      onBug: (error, errorId) => logger.error('a request failed because of a bug', { errorId, error }),
      limits: {
        bodyBytes: defaults.http.hubBodyBytes,
        deadlineMs: defaults.http.requestDeadlineMs,
        sseBufferBytes: defaults.sse.bufferBytes,
        sseHeartbeatMs: defaults.sse.heartbeatMs,
        sseRetryMs: defaults.sse.retryMs,
      },
    },
    'auto',
    (reason) => logger.warn('uWebSockets.js does not load here; serving on node:http instead', { reason }),
  );
}

/** An agent that runs commands is not left open to the network. @throws StartupError (config) */
function requireKey(name: 'api' | 'agui', host: string, isPublic: boolean, config: Config): void {
  const [key, setting] = name === 'api' ? [config.Api.ApiKey, 'Api.ApiKey'] : [config.AgUi.ApiKey, 'AgUi.ApiKey'];
  if (isPublic && key === '') {
    throw new StartupError('config', `${setting} must be set to listen on ${host}, which others can reach`);
  }
}

async function bind(server: HttpServer, group: readonly Planned[], logger: Logger): Promise<ListenAddress> {
  const [first] = group;
  if (!first) throw new TypeError('a group of services has one at least');
  try {
    return await (first.takesAnyPort ? listen(server, first.address, logger) : server.listen(first.address));
  } catch (error) {
    const { host, port } = first.address;
    const reason =
      (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'the port is taken' : (error as Error).message;
    const setting = first.name === 'api' ? 'Api.Port' : 'AgUi.Port';
    throw new StartupError('system', `cannot listen on ${host}:${port}: ${reason}; see ${setting}`, { cause: error });
  }
}
