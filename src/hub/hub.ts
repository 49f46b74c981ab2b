import { randomBytes } from 'node:crypto';
import { basename, join } from 'node:path';
import { type ActorRefFrom, createActor, fromPromise } from 'xstate';
import { hubMachine } from '../../machines/index.ts';
import type { Config } from '../config/index.ts';
import type { HttpServer } from '../http/index.ts';
import { projections } from '../inspect/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, HubLock, type HubStatus } from '../protocol/index.ts';
import {
  ensurePrivateDirectory,
  lockHolder,
  lostList,
  ownIdentity,
  PortAllocator,
  readJson,
  removeStaleTemps,
} from '../supervise/index.ts';
import { type HubTelemetry, startHubTelemetry } from '../telemetry/index.ts';
import { watchAddress } from './actors/watch-address.ts';
import { createAddress, type PublishedAddress } from './address.ts';
import { type Claim, claimHome } from './claim.ts';
import { type Credentials, createToken, loadCredentials, type OwnedFile } from './credentials.ts';
import { createEvents, type HubEvents } from './events.ts';
import type { HubServices } from './facts.ts';
import { DecisionLog, Inbox, inboxFollower } from './inbox/index.ts';
import { createInspection, type Inspection } from './inspection.ts';
import { Notices, sendToNtfy, showOnDesktop, WebPush } from './notices/index.ts';
import { normaliseNotification } from './notifications.ts';
import { configuredPolicy, policyOf } from './policy.ts';
import { portFile, rememberPort } from './port.ts';
import { type Recovered, restoreKnown, resumeWorkspaces } from './recovery.ts';
import { createRegistry, type Registry } from './registry.ts';
import { ScopedTokens } from './scoped-tokens.ts';
import { openServer } from './server.ts';
import { createStore, type WorkspaceStore } from './store.ts';
import { createPathResolver } from './workspace-path.ts';

export interface HubOptions {
  /** User home, `$ORATORIO_HOME`; the Hub's state is in `hub` in it. */
  readonly home: string;
  readonly version: string;
  /** Merged configuration of the user (no workspace). */
  readonly config: Config;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Command line that runs an agent server. */
  readonly agentServer: HubServices['agentServer'];
  /** Parts of the supervision policy that override the configuration. */
  readonly policy?: HubServices['policy'];
  readonly logger: Logger;
}

/** Outcome of a run of the Hub. */
export type HubOutcome =
  | { readonly kind: 'stopped'; readonly problem: string | null }
  /** Another Hub serves this home: its address when published, its process id when known. */
  | { readonly kind: 'yielded'; readonly to: HubLock | null; readonly pid: number | null }
  | { readonly kind: 'failed'; readonly error: string };

export interface Hub {
  /** Resolves when it serves, or has ended before it could. */
  readonly serving: Promise<{ readonly apiBaseUrl: string } | HubOutcome>;
  /** Resolves when it has ended and nothing of it is left. */
  readonly outcome: Promise<HubOutcome>;
  shutdown(mode: 'stop' | 'detach'): void;
}

/** Headless: a desktop client owns tray and notification UI (specification §2.3). */
const capabilities = {
  appServerManagement: true,
  portManagement: true,
  events: true,
  notifications: true,
  tray: false,
};

/** Everything the Hub has once it has won the claim. */
interface ClaimedHub {
  readonly lock: Claim;
  readonly token: string;
  readonly startedAt: string;
  readonly credentials: Credentials;
  readonly events: HubEvents;
  readonly inbox: Inbox;
  readonly decisions: DecisionLog;
  readonly notices: Notices;
  readonly push: WebPush;
  readonly tokens: ScopedTokens;
  readonly inspection: Inspection;
  readonly telemetry: HubTelemetry;
  readonly registry: Registry;
  readonly services: HubServices;
  readonly store: WorkspaceStore;
  recoveries: readonly Promise<Recovered>[];
  server: HttpServer | null;
  apiBaseUrl: string;
  address: PublishedAddress | null;
}

/**
 * Runs a Hub in this process until it is shut down. The `hub` machine decides the order of the steps; this function
 * provides its actors. Never throws: the outcome reports a failure.
 */
export function startHub(options: HubOptions): Hub {
  const { home, logger, policy = {} } = options;
  const statePath = join(home, 'hub');
  const lockFile = join(statePath, 'hub.lock');
  const inspection = createInspection(logger);
  const telemetry = startHubTelemetry({ settings: options.config.Telemetry, projections, logger });
  let claimedHub: ClaimedHub | null = null;

  function claimed(): ClaimedHub {
    if (!claimedHub) throw new Error('the Hub has not claimed its home');
    return claimedHub;
  }

  function claimHub(lock: Claim): ClaimedHub {
    const events = createEvents(logger);
    const store: WorkspaceStore = createStore(statePath, () =>
      [...registry.workspaces.values()].map(({ facts }) => facts.stored),
    );
    const credentials = loadCredentials(statePath);
    const services: HubServices = {
      home,
      statePath,
      environment: options.environment,
      agentServer: options.agentServer,
      policy,
      credentials,
      ports: new PortAllocator(),
      logger,
      publish: events.publish,
      save: store.save,
    };
    const seed = () => randomBytes(4).readInt32LE();
    const decisions = new DecisionLog(statePath, logger);
    const notices = new Notices({
      pageUrl: () => options.config.Notifications.PageUrl || (claimedHub?.apiBaseUrl ?? ''),
      seed,
      observe: inspection.observeChannel,
      logger,
    });
    openChannels(notices, options);
    const subject = options.config.Notifications.PushSubject;
    const push = new WebPush({ statePath, notices, subject, logger });
    const inbox = new Inbox({
      publish(kind, workspacePath, data) {
        events.publish(kind, workspacePath, data);
        // Both kinds of the inbox have an id; only one of them an address.
        if ('actionUrl' in data) notices.added(basename(workspacePath), data);
        else notices.resolved(data);
      },
      record: (entry) => decisions.add(entry),
      observe: (actor, path, { requestId, tool }) => inspection.observeInboxRequest(actor, path, requestId, tool),
      onFault: (error) => logger.error('the actor of a request failed', { error }),
    });
    const followInbox = inboxFollower({
      logger,
      factsOf(path) {
        const known = registry.workspaces.get(path);
        if (!known) throw new Error(`nothing is known of ${path}`);
        return known.facts;
      },
      inbox,
      onReport: (path, report) => registry.workspaces.get(path)?.takeReport(report),
      notify: (path, notification) =>
        events.publish('notification.requested', path, normaliseNotification(notification, path)),
      seed,
      observe: inspection.observeInboxFeed,
    });
    const registry = createRegistry({
      hub: services,
      resolvePath: createPathResolver(home),
      policyOf: (path) => configuredPolicy(services, path) ?? policyOf(options.config, policy),
      seed,
      observe(actor, path) {
        inspection.observeWorkspace(actor, path);
        followInbox(actor, path);
        telemetry.observe(actor, 'agent-server', path);
      },
    });
    const startedAt = new Date().toISOString();
    return {
      lock,
      token: createToken(),
      startedAt,
      credentials,
      events,
      inbox,
      decisions,
      notices,
      push,
      tokens: new ScopedTokens(statePath, credentials, logger),
      inspection,
      telemetry,
      registry,
      services,
      store,
      recoveries: [],
      server: null,
      apiBaseUrl: '',
      address: null,
    };
  }

  function addressOf({ lock, token, startedAt, apiBaseUrl }: ClaimedHub): PublishedAddress {
    const identity = ownIdentity();
    const { version } = options;
    return createAddress(lockFile, lock, { pid: identity.pid, apiBaseUrl, token, startedAt, version, identity });
  }

  function ownedFiles({ credentials, store, tokens, push, apiBaseUrl }: ClaimedHub): OwnedFile[] {
    const port = {
      file: portFile(statePath),
      save: () => rememberPort(port.file, Number(new URL(apiBaseUrl).port), logger),
    };
    return [credentials, store, tokens, ...push.ownedFiles(), port];
  }

  function status(): HubStatus {
    const { startedAt, apiBaseUrl } = claimed();
    const lost = lostList(home);
    return {
      ...{ hubVersion: options.version, pid: process.pid, startedAt, statePath, apiBaseUrl, capabilities },
      ...(lost && { problems: [lost] }),
    };
  }

  const machine = hubMachine.provide({
    actors: {
      boot: fromPromise(async () => {
        ensurePrivateDirectory(home);
        ensurePrivateDirectory(statePath);
      }),
      claim: fromPromise(async () => {
        const lock = claimHome(join(statePath, 'hub.mutex'));
        if (lock === 'held') return { won: false };
        for (const directory of [home, statePath]) removeStaleTemps(directory);
        claimedHub = claimHub(lock);
        return { won: true };
      }),
      listen: fromPromise(async () => {
        const hub = claimed();
        hub.recoveries = restoreKnown(hub, logger);
        hub.server = await openServer({
          home,
          host: options.config.Hub.Host,
          port: options.config.Hub.Port,
          allowedHosts: options.config.Hub.AllowedHosts,
          token: hub.token,
          credentials: hub.credentials,
          registry: hub.registry,
          events: hub.events,
          inbox: hub.inbox,
          decisions: hub.decisions,
          push: hub.push,
          tokens: hub.tokens,
          inspection: hub.inspection,
          telemetry: hub.telemetry,
          status,
          isStopping: () => ['draining', 'closing', 'stopped'].includes(String(actor.getSnapshot().value)),
          shutdown,
          logger,
          onListening: (apiBaseUrl) => {
            hub.apiBaseUrl = apiBaseUrl;
          },
        });
        hub.address = addressOf(hub);
        await hub.address.publish();
        return { apiBaseUrl: hub.apiBaseUrl };
      }),
      recover: fromPromise(async ({ signal }) => {
        const { recoveries, services } = claimed();
        return { adopted: await resumeWorkspaces(recoveries, services, signal) };
      }),
      watchAddress: watchAddress(
        () => {
          const { address } = claimed();
          if (!address) throw new Error('the Hub has no address yet');
          return address;
        },
        () => ownedFiles(claimed()),
        logger,
      ),
      drain: fromPromise<void, { mode: 'stop' | 'detach' }>(async ({ input }) => {
        if (input.mode === 'stop') await claimed().registry.stopAll();
      }),
      close: fromPromise(async () => close(claimed())),
    },
  });

  const actor: ActorRefFrom<typeof hubMachine> = createActor(machine, {
    id: 'hub',
    input: { drainDeadlineMs: defaults.supervise.drainDeadlineMs + policyOf(options.config, policy).handOverMs },
  });
  actor.on('hub.started', ({ apiBaseUrl }) => {
    claimed().events.publish('hub.started', null, { apiBaseUrl, pid: process.pid });
    logger.info('the Hub is serving', { apiBaseUrl, library: claimed().server?.library });
  });
  actor.on('hub.displaced', () =>
    logger.error('another Hub has taken over this home; this Hub ends and leaves its agent servers running', { home }),
  );
  actor.on('hub.stopping', () => claimed().events.publish('hub.stopping', null, { pid: process.pid }));

  function shutdown(mode: 'stop' | 'detach'): void {
    actor.send({ type: 'SHUTDOWN', mode });
  }

  const { serving, outcome } = follow(actor, () => whoServes(statePath));
  inspection.observeHub(actor);
  telemetry.observe(actor, 'hub');
  actor.start();
  return { serving, outcome, shutdown };
}

/** Opens the channels that the user has configured. */
function openChannels(notices: Notices, { config, environment, logger }: HubOptions): void {
  const { Ntfy, Desktop } = config.Notifications;
  if (Ntfy.Token !== '') logger.protect(Ntfy.Token);
  if (Ntfy.Url !== '') notices.open({ name: 'ntfy', deliver: (notice, signal) => sendToNtfy(Ntfy, notice, signal) });
  if (Desktop)
    notices.open({ name: 'desktop', deliver: (notice, signal) => showOnDesktop(notice, environment, signal) });
}

/** The Hub that holds the lock of this home. The kernel knows its process on Linux, also when its lock file is damaged. */
function whoServes(statePath: string): Omit<Extract<HubOutcome, { kind: 'yielded' }>, 'kind'> {
  const read = readJson(join(statePath, 'hub.lock'), HubLock);
  const holder = lockHolder(join(statePath, 'hub.mutex'));
  const to = read.kind === 'ok' && (holder === null || read.value.pid === holder) ? read.value : null;
  return { to, pid: holder ?? to?.pid ?? null };
}

function follow(actor: ActorRefFrom<typeof hubMachine>, winner: () => ReturnType<typeof whoServes>) {
  const outcome = new Promise<HubOutcome>((resolve) => {
    const decide = () => {
      const snapshot = actor.getSnapshot();
      const { lastError } = snapshot.context;
      if (snapshot.matches('yielded')) resolve({ kind: 'yielded', ...winner() });
      else if (snapshot.matches('failed')) resolve({ kind: 'failed', error: lastError ?? 'unknown' });
      else resolve({ kind: 'stopped', problem: lastError });
    };
    actor.subscribe({ complete: decide, error: (error) => resolve({ kind: 'failed', error: String(error) }) });
  });
  const serving = new Promise<{ apiBaseUrl: string } | HubOutcome>((resolve) => {
    actor.on('hub.started', ({ apiBaseUrl }) => resolve({ apiBaseUrl }));
    void outcome.then(resolve);
  });
  return { serving, outcome };
}

/** Streams end after their last event, the address is withdrawn if it is still ours, and the lock is released last. */
async function close(hub: ClaimedHub): Promise<void> {
  hub.registry.releaseAll();
  hub.events.end();
  hub.notices.closeAll();
  hub.inspection.end();
  await hub.server?.close(defaults.http.closeGraceMs);
  await hub.store.end();
  await hub.decisions.flush();
  await hub.push.flush();
  await hub.telemetry.stop();
  hub.address?.withdraw();
  hub.lock.release();
}
