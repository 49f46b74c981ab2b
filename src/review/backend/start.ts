import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { ownAuthorities, publishedAs } from '../../http/index.ts';
import { loadCharts } from '../../inspect/index.ts';
import { hostAndPort, httpBase } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { version } from '../../protocol/index.ts';
import { createReviewAgent, type ReviewAgent } from '../agent/index.ts';
import { createReviewServer, observationRoutes, type ReviewServer } from '../api/index.ts';
import type { ReviewGit } from '../git/index.ts';
import { cancelWaitingRun, createJobWorker, type JobWorker, Roles } from '../jobs/index.ts';
import { reviewPagePath, reviewPageRoutes } from '../page/index.ts';
import { createReviewRuns, type ReviewRuns, type ReviewRunsOptions } from '../runs/index.ts';
import type { BackendSettings, Environment, SettingsSource } from '../settings/index.ts';
import { openReviewStore, type ReviewStore, ReviewStoreError } from '../store/index.ts';
import { WebhookIntake, webhookRoute } from '../webhook/index.ts';
import { createActions } from './actions.ts';
import { cleanWorktrees } from './clean.ts';
import { Closers, endsWithin } from './closers.ts';
import { BackendError } from './error.ts';
import { createRoutedGit } from './git.ts';
import { createInspection } from './inspection.ts';
import { limits } from './limits.ts';
import { renderMetrics } from './metrics.ts';
import { followRepositories, openSettings } from './settings.ts';
import { LiveSource, type LiveSourceOptions } from './source.ts';
import { lockState, openStateDirectory, serviceToken } from './state.ts';

export interface BackendOptions {
  /** `oratorio.config.json`; a missing file counts as empty. */
  readonly configFile: string;
  /** Directory for database, token and lock; created if missing (0700). */
  readonly stateDirectory: string;
  /** Environment variables, which take precedence over the file. */
  readonly env: Environment;
  /** Names of the options that have set variables of `env`, by variable. */
  readonly options?: ReadonlyMap<string, string>;
  readonly logger: Logger;
  /** Replacements of parts, for tests and embedding. */
  readonly overrides?: BackendOverrides;
}
export interface BackendOverrides {
  readonly agent?: ReviewAgent;
  readonly git?: ReviewGit;
  readonly sourceLimits?: LiveSourceOptions['limits'];
  readonly runTimes?: ReviewRunsOptions['times'];
}

export interface Backend {
  readonly url: string;
  /** Address of the page without the token; undefined for a process with the role `worker`. */
  readonly pageUrl: string | undefined;
  /** Bearer token of the API. */
  readonly token: () => string;
  /** Name of this process among the replicas. */
  readonly node: string;
  /** Answers requests in flight, returns its work to the queue and releases everything. Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts a review backend in this process.
 * @throws BackendError with a hint, after closing the parts that had started
 */
export async function startBackend(options: BackendOptions): Promise<Backend> {
  const closers = new Closers(options.logger);
  try {
    return await assemble(options, closers);
  } catch (error) {
    await closers.close();
    throw error;
  }
}

async function assemble(options: BackendOptions, closers: Closers): Promise<Backend> {
  const { stateDirectory, logger } = options;
  openStateDirectory(stateDirectory);
  const settings = openSettings(options);
  closers.add('settings', () => settings.close());
  const isShared = settings.current.Storage.ConnectionString !== '';
  if (!isShared) {
    const lock = lockState(stateDirectory);
    closers.add('lock', () => lock.release());
  }
  const ownToken = settings.current.Server.ServiceToken === '' ? serviceToken(stateDirectory) : '';
  logger.protect(ownToken);
  const token = () => settings.current.Server.ServiceToken || ownToken;
  const node = `${hostname()}-${process.pid}-${randomBytes(3).toString('hex')}`;
  const store = await openStore(settings.current, stateDirectory, node, logger);
  closers.add('store', () => store.close(), limits.storeMs);
  closers.add('repositories', await followRepositories(settings, store, logger));
  const secrets = ownToken === '' ? [] : [ownToken];
  const parts = await createParts(options, { settings, store, node, closers, secrets });
  const intake = new WebhookIntake({ settings: () => settings.current, store, logger });
  const server = await serve({ ...parts, options, settings, store, node, token, intake });
  closers.add('intake', () => intake.close());
  let isServing = false;
  const announceEnd = async () => {
    if (isServing) await endsWithin(limits.announceMs, store.publish('backend.stopping', { node })).catch(() => {});
  };
  closers.add('server', () => server.close(announceEnd), limits.serverMs);
  const url = await listen(server, settings.current);
  await store.publish('backend.started', { node });
  isServing = true;
  parts.start();
  logger.info('the review backend is serving', { url, node, role: settings.current.Server.Role, storage: store.kind });
  const pageUrl = settings.current.Server.Role === 'worker' ? undefined : `${url}${reviewPagePath}`;
  return { url, pageUrl, token, node, close: () => closers.close() };
}

async function openStore(
  { Storage, Database }: BackendSettings,
  directory: string,
  owner: string,
  logger: Logger,
): Promise<ReviewStore> {
  try {
    const { ConnectionString: connectionString } = Storage;
    const { ListenUrl: listenUrl } = Database;
    // This process has locked the state directory: work of a crashed backend is resumed at once.
    return await openReviewStore({ connectionString, listenUrl, directory, owner, isAlone: true, logger });
  } catch (error) {
    if (!(error instanceof ReviewStoreError)) throw error;
    throw new BackendError('databaseUnusable', error.message, error.hint ?? null, { cause: error });
  }
}

interface Common {
  readonly settings: SettingsSource;
  readonly store: ReviewStore;
  readonly node: string;
}

/** Creates the parts that execute reviews and jobs, according to the role of the process. */
async function createParts(
  options: BackendOptions,
  { settings, store, node, closers, secrets }: Common & { closers: Closers; secrets: readonly string[] },
) {
  const { logger, env, overrides = {} } = options;
  const current = () => settings.current;
  const isWorking = settings.current.Server.Role !== 'web';
  const source = new LiveSource({
    ...{ settings, store, logger },
    onChange: (item) => cancelWaitingRun({ store, runs }, item),
    ...(overrides.sourceLimits && { limits: overrides.sourceLimits }),
  });
  closers.add('source', () => source.close());
  const git = overrides.git ?? createRoutedGit(current, env);
  closers.add('git', () => git.close());
  const agent = overrides.agent ?? createReviewAgent({ settings: current, logger, env });
  closers.add('agent', () => agent.close());
  const inspection = createInspection(logger);
  closers.add('inspection', () => inspection.end());
  const runs: ReviewRuns = createReviewRuns({
    ...{ store, git, agent, source, logger, node, settings: current, secrets, inspect: inspection.inspect },
    ...(overrides.runTimes && { times: overrides.runTimes }),
  });
  const worker = isWorking ? createJobWorker({ store, source, runs, settings: current, logger, node }) : undefined;
  const roles = worker
    ? new Roles({
        ...{ store, settings: current, node, logger, tick: worker.tickSoon },
        hasSource: () => source.state.state === 'ready',
      })
    : undefined;
  closers.add('work', () => Promise.all([roles?.stop(), worker?.stop(), runs.stop()]), limits.workMs);
  if (worker) closers.add('worktrees', cleanWorktrees({ git, store, logger }));
  function start(): void {
    if (!worker) return;
    runs.start();
    worker.start();
    roles?.start();
  }
  return { source, inspection, runs, worker, problem: () => problemOf({ worker, roles, runs }), start };
}

interface Working {
  readonly worker: JobWorker | undefined;
  readonly roles: Roles | undefined;
  readonly runs: ReviewRuns;
}

/** Reason why this process does no work, although it should; undefined while work continues. */
function problemOf({ worker, roles, runs }: Working): string | undefined {
  return (
    worker?.problem() ??
    stalled('No review was taken from the queue', runs.idleMs) ??
    stalled('No recurring work was queued', roles?.idleMs ?? 0)
  );
}

const stalled = (what: string, idleMs: number): string | undefined =>
  idleMs > limits.stalledMs ? `${what} for ${Math.round(idleMs / 1_000)} s.` : undefined;

interface Serving extends Common {
  readonly options: BackendOptions;
  readonly token: () => string;
  readonly intake: WebhookIntake;
  readonly source: LiveSource;
  readonly inspection: ReturnType<typeof createInspection>;
  readonly runs: ReviewRuns;
  readonly worker: JobWorker | undefined;
  readonly problem: () => string | undefined;
}

async function serve(parts: Serving): Promise<ReviewServer> {
  const { options, settings, store, node, token, intake, source, inspection, runs, worker, problem } = parts;
  const role = settings.current.Server.Role;
  const isHealthOnly = role === 'worker';
  const observed = observationRoutes({
    token,
    inspection: inspection.source,
    stately: inspection.stately,
    charts: loadCharts,
    metrics: () =>
      renderMetrics({
        ...{ store, version, worker, http: server.http, viewers: inspection.viewers },
        activeRuns: () => runs.active,
        apiRequests: () => source.requests,
        deliveries: () => intake.counts,
      }),
  });
  const webhook = () => webhookRoute({ intake, trustedProxies: () => settings.current.Server.TrustedProxies });
  const server: ReviewServer = await createReviewServer({
    ...{ store, settings, token, node, version, logger: options.logger, isHealthOnly },
    isOwn: ownAuthorities({
      bound: () => server.http.bound,
      names: settings.current.Server.AllowedHosts,
      published: publishedAs(options.env),
    }),
    actions: createActions(store, runs),
    about: () => ({ role, source: source.state }),
    problem,
    more: [...observed, ...(isHealthOnly ? [] : [webhook(), ...reviewPageRoutes()])],
  });
  return server;
}

async function listen(server: ReviewServer, { Server: { Host, Port } }: BackendSettings): Promise<string> {
  try {
    return httpBase(await server.http.listen({ host: Host, port: Port }));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE')
      throw new BackendError(
        'addressInUse',
        `Port ${Port} of ${Host} is in use.`,
        'Choose another port with --port or Server.Port; 0 selects any free port.',
        { cause: error },
      );
    throw new BackendError(
      'addressUnusable',
      `The backend cannot listen on ${hostAndPort({ host: Host, port: Port })}: ${message}`,
      'Choose another address with --host and --port, or Server.Host and Server.Port.',
      { cause: error },
    );
  }
}
