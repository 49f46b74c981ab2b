import type { SupervisionPolicy } from '../../../machines/index.ts';
import { type Config, ConfigError, loadConfig } from '../../config/index.ts';
import { hostAndPort, httpBase } from '../../lib/index.ts';
import { dashboardPaths, type LaunchDocument, type ServiceName, type ServiceStatus } from '../../protocol/index.ts';
import { PortUnavailableError } from '../../supervise/index.ts';
import {
  addressOf,
  carriedParts,
  checkedDocument,
  containerSettings,
  endContainers,
  plannedContainer,
  withEngine,
} from '../container.ts';
import type { HubServices, WorkspaceFacts } from '../facts.ts';
import { StartError } from '../failure.ts';
import { supervisionPolicyOf } from '../policy.ts';
import { canSharePorts, type ServicePorts } from '../sleeping-ports.ts';
import type { StoredContainer } from '../store.ts';
import { configHash } from '../workspace-settings.ts';

const host = '127.0.0.1';

/** Decisions for one start. */
export interface LaunchPlan {
  readonly ports: readonly { readonly service: ServiceName; readonly port: number }[];
  readonly policy: SupervisionPolicy;
  /** Absent: the agent server is a process of this machine. */
  readonly container?: StoredContainer;
}

type OptionalService = 'dashboard' | 'api' | 'agui';

/** The services that the configuration can enable, with the reason that is shown when it does not. */
function wantedServices(config: Config): Record<OptionalService, { enabled: boolean; off: string; path: string }> {
  return {
    dashboard: { enabled: config.DashBoard.Enabled, off: 'DashBoard is disabled.', path: dashboardPaths.page },
    api: { enabled: config.Api.Enabled, off: 'Api is disabled.', path: '' },
    agui: { enabled: config.AgUi.Enabled, off: 'AgUi is disabled.', path: config.AgUi.Path },
  };
}

/**
 * Settings of a workspace, and the names of the variables that its agent server inherits: those that the user's own file
 * lists in `Supervision.PassEnvironment` or refers to. The agent server hides the latter from the workspace's file again.
 *
 * @throws StartError `invalidConfig`
 */
function readConfig(hub: HubServices, workspacePath: string) {
  try {
    const { config: own, referencedVariables } = loadConfig({ home: hub.home, env: hub.environment });
    const loaded = loadConfig({ home: hub.home, workspace: workspacePath, env: hub.environment });
    for (const warning of loaded.warnings) hub.logger.warn(warning, { workspacePath });
    return { loaded, passed: [...own.Supervision.PassEnvironment, ...referencedVariables] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new StartError('invalidConfig', error.message, false);
  }
}

async function allocatePort(hub: HubServices): Promise<number> {
  try {
    return await hub.ports.allocate();
  } catch (error) {
    if (error instanceof PortUnavailableError) throw new StartError('portUnavailable', error.message, true);
    throw error;
  }
}

/** Failures that the last start has met are expected again while no setting has changed. */
function rememberedHealth({ stored, sidecar }: WorkspaceFacts, hash: string): Pick<LaunchDocument, 'health'> {
  const { report, configHash: lastHash } = stored;
  if (report?.health !== 'failing' || lastHash !== hash || sidecar !== null) return {};
  const { lastTurn, failure, failuresInARow } = report;
  return { health: { lastTurn, failure, failuresInARow } };
}

/**
 * A server that wakes gets the ports at which the Hub listens for it. The dashboard always gets the port it had: a page that is open
 * finds the server again after a restart. Another program may have the port by now; the server then takes another, as with every port.
 */
function keptPort(service: OptionalService, { endpoints }: WorkspaceFacts, kept: ServicePorts): number | undefined {
  const last = service === 'dashboard' ? endpoints[service] : undefined;
  return kept[service] ?? (last === undefined ? undefined : Number(new URL(last).port) || undefined);
}

/**
 * Plans one start: ports for every enabled service, the WebSocket token, and the launch document. Writes the
 * secrets into `facts` and returns the rest.
 *
 * @throws StartError `invalidConfig`, `portUnavailable`, `placeUnavailable`
 */
export async function planLaunch(hub: HubServices, facts: WorkspaceFacts, marker: string): Promise<LaunchPlan> {
  const workspacePath = facts.stored.canonicalWorkspacePath;
  const { loaded, passed } = readConfig(hub, workspacePath);
  const { config } = loaded;
  const settings = containerSettings(loaded, facts.stored.place, workspacePath);
  const container = settings && withEngine(settings, hub);
  // A Hub that ended during a start may have left a container that was created but never started.
  if (container) await endContainers(hub, addressOf(container), workspacePath);
  const hash = configHash(config);
  const kept: ServicePorts = facts.sleepingPorts && !container ? await facts.sleepingPorts.ports() : {};
  // A server that wakes at its address has the token of that address, also under the next Hub.
  const seed = kept.appServerWebSocket === undefined ? marker : (facts.stored.tokenSeed ?? marker);
  const token = hub.credentials.socketToken(workspacePath, seed);
  const port = kept.appServerWebSocket ?? (await allocatePort(hub));
  const ports: { service: ServiceName; port: number }[] = [{ service: 'appServerWebSocket', port }];
  const endpoints: Record<string, string> = {
    appServerWebSocket: `ws://${hostAndPort({ host, port })}/ws?token=${token}`,
  };
  const services: Partial<Record<ServiceName, ServiceStatus>> = {
    appServerWebSocket: { state: 'allocated', url: endpoints['appServerWebSocket'] ?? null, reason: null },
  };
  const document: LaunchDocument = {
    version: 1,
    workspacePath,
    incarnation: marker,
    adoptionProof: hub.credentials.adoptionProof(workspacePath),
    hubStatePath: hub.statePath,
    notificationToken: hub.credentials.notificationToken(workspacePath),
    services: { appServerWebSocket: { host, port, token } },
    ...(facts.sidecar && { upstream: { endpoint: facts.sidecar.endpoint, apiKey: facts.sidecar.apiKey } }),
    ...rememberedHealth(facts, hash),
    ...(canSharePorts && !container && { sharesPorts: Object.keys(kept).length > 0 || ('later' as const) }),
    ...(container && carriedParts(loaded, passed, hub, container)),
  };
  for (const [service, { enabled, off, path }] of Object.entries(wantedServices(config))) {
    const name = service as OptionalService;
    if (!enabled) {
      services[name] = { state: 'disabled', url: null, reason: off };
      continue;
    }
    const servicePort = keptPort(name, facts, kept) ?? (await allocatePort(hub));
    const url = `${httpBase({ host, port: servicePort })}${path}`;
    ports.push({ service: name, port: servicePort });
    endpoints[name] = url;
    services[name] = { state: 'allocated', url, reason: null };
    if (name === 'agui') document.services.agui = { host, port: servicePort, path };
    else document.services[name] = { host, port: servicePort };
  }
  facts.stored.configHash = hash;
  facts.stored.tokenSeed = seed;
  facts.endpoints = endpoints;
  facts.secrets.add(token);
  facts.services = services;
  facts.marker = marker;
  facts.launchDocument = container ? checkedDocument(document) : JSON.stringify(document);
  facts.container = container;
  facts.probe = {
    intervalMs: config.Supervision.ProbeIntervalMs,
    timeoutMs: config.Supervision.ProbeTimeoutMs,
  };
  facts.passEnvironment = passed;
  return {
    ports,
    policy: supervisionPolicyOf(config, hub.policy),
    ...(container && { container: plannedContainer(container, marker, document.services) }),
  };
}
