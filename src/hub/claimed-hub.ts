import { randomBytes } from 'node:crypto';
import { basename, join } from 'node:path';
import type { Config } from '../config/index.ts';
import { Fleet, type HostSettings } from '../hosts/index.ts';
import type { HttpServer } from '../http/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, type HubEventData } from '../protocol/index.ts';
import { ownIdentity, PortAllocator } from '../supervise/index.ts';
import type { HubTelemetry } from '../telemetry/index.ts';
import { createAddress, type PublishedAddress } from './address.ts';
import type { Claim } from './claim.ts';
import { type Credentials, createToken, loadCredentials, type OwnedFile } from './credentials.ts';
import { createEvents, type HubEvents } from './events.ts';
import type { HubServices } from './facts.ts';
import { DecisionLog, Inbox, inboxFollower } from './inbox/index.ts';
import type { Inspection } from './inspection.ts';
import { Moves } from './moves/index.ts';
import { Notices, sendToNtfy, showOnDesktop, WebPush } from './notices/index.ts';
import { normaliseNotification } from './notifications.ts';
import { supervisionPolicyOf } from './policy.ts';
import { portFile, rememberPort } from './port.ts';
import type { Recovered } from './recovery.ts';
import { Registry } from './registry.ts';
import { ScopedTokens } from './scoped-tokens.ts';
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

/** Everything the Hub has once it has won the claim. */
export interface ClaimedHub {
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
  readonly fleet: Fleet;
  readonly moves: Moves;
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
 * Makes the parts of a Hub that has claimed its home.
 *
 * @param process parts that live as long as the process
 */
export function createClaimedHub(
  lock: Claim,
  options: HubOptions,
  { inspection, telemetry }: Pick<ClaimedHub, 'inspection' | 'telemetry'>,
): ClaimedHub {
  const { home, logger, policy = {} } = options;
  const statePath = join(home, 'hub');
  const events = createEvents(logger, (id, event) => void fleet.log.append('', id, event));
  const store: WorkspaceStore = createStore(statePath, () =>
    [...registry.workspaces.values()].map(({ facts }) => facts.stored),
  );
  const credentials = loadCredentials(statePath);
  const { environment, agentServer } = options;
  const services: HubServices = {
    ...{ home, statePath, environment, agentServer, policy, credentials, logger },
    ports: new PortAllocator(),
    publish: events.publish,
    save: store.save,
  };
  const seed = () => randomBytes(4).readInt32LE();
  const fleet = new Fleet({
    ...{ home, env: environment, logger, seed },
    observe: inspection.observeHost,
    onState(host, { type, ...more }) {
      events.publish(type, null, { host, ...more } as HubEventData<typeof type>);
    },
  });
  const decisions = new DecisionLog(statePath, logger);
  const notices = new Notices({
    pageUrl: () => options.config.Notifications.PageUrl || hub.apiBaseUrl,
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
      // Only an added request has an `actionUrl`; a resolved one does not.
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
  const registry = new Registry({
    hub: services,
    resolvePath: createPathResolver(home),
    defaultPolicy: supervisionPolicyOf(options.config, policy),
    seed,
    observe(actor, path) {
      inspection.observeWorkspace(actor, path);
      followInbox(actor, path);
      telemetry.observe(actor, 'agent-server', path);
    },
  });
  const moves = new Moves({ statePath, registry, fleet, logger, seed, observe: inspection.observeMove });
  const hub: ClaimedHub = {
    ...{
      lock,
      credentials,
      events,
      fleet,
      moves,
      inbox,
      decisions,
      notices,
      push,
      inspection,
      telemetry,
      registry,
      services,
      store,
    },
    token: createToken(),
    startedAt: new Date().toISOString(),
    tokens: new ScopedTokens(statePath, credentials, logger),
    recoveries: [],
    server: null,
    apiBaseUrl: '',
    address: null,
  };
  return hub;
}

/** Opens the channels that the user has configured. */
function openChannels(notices: Notices, { config, environment, logger }: HubOptions): void {
  const { Ntfy, Desktop } = config.Notifications;
  if (Ntfy.Token !== '') logger.protect(Ntfy.Token);
  if (Ntfy.Url !== '') notices.open({ name: 'ntfy', deliver: (notice, signal) => sendToNtfy(Ntfy, notice, signal) });
  if (Desktop)
    notices.open({ name: 'desktop', deliver: (notice, signal) => showOnDesktop(notice, environment, signal) });
}

/** The user's hosts. */
export const hostsOf = ({ Hosts }: Config): HostSettings[] =>
  Object.entries(Hosts).map(([name, { Ssh: ssh, Program: program, Enabled: isEnabled }]) => ({
    ...{ name, ssh, program, isEnabled },
  }));

/** Address to publish in `hub.lock`. */
export function addressOf(
  { lock, token, startedAt, apiBaseUrl, services }: ClaimedHub,
  version: string,
): PublishedAddress {
  const lockFile = join(services.statePath, 'hub.lock');
  const identity = ownIdentity();
  return createAddress(lockFile, lock, { pid: identity.pid, apiBaseUrl, token, startedAt, version, identity });
}

/** Files that the Hub writes again when they are missing. */
export function ownedFiles({ credentials, store, tokens, push, apiBaseUrl, services }: ClaimedHub): OwnedFile[] {
  const { statePath, logger } = services;
  const port = {
    file: portFile(statePath),
    save: () => rememberPort(port.file, Number(new URL(apiBaseUrl).port), logger),
  };
  return [credentials, store, tokens, ...push.ownedFiles(), port];
}

/** Ends streams after their last event, withdraws the address if it is still ours, and releases the lock last. */
export async function closeHub(hub: ClaimedHub): Promise<void> {
  const moves = hub.moves.close();
  hub.registry.releaseAll();
  const hosts = hub.fleet.close();
  hub.events.end();
  hub.notices.closeAll();
  hub.inspection.end();
  await hub.server?.close(defaults.http.closeGraceMs);
  await hosts;
  await moves;
  await hub.store.end();
  await hub.registry.flush();
  await hub.decisions.flush();
  await hub.push.flush();
  await hub.telemetry.stop();
  hub.address?.withdraw();
  hub.lock.release();
}
