/** Plans, finds and removes the containers of agent servers for the Hub. */
import { join } from 'node:path';
import * as v from 'valibot';
import { ConfigError, type LoadedConfig, loadConfig, workspaceConfigFile, workspaceKey } from '../config/index.ts';
import { packageRoot } from '../lib/index.ts';
import {
  ContainerPlace,
  type ContainerSettings,
  type ContainerStart,
  containerHandle,
  devcontainerImage,
  engineSocket,
  type PlacedProcess,
  PlaceError,
  type PlaceSettings,
  type PodPlace,
  type PodSettings,
  type ReachListener,
  type RelayedPort,
} from '../places/index.ts';
import {
  type AppServerLock,
  defaults,
  type LaunchDocument,
  type PlaceRequest,
  serviceNames,
} from '../protocol/index.ts';
import { markerVariable, ownIdentity } from '../supervise/index.ts';
import { mountedCompileCache } from './compile-cache.ts';
import type { HubServices, WorkspaceFacts } from './facts.ts';
import { StartError } from './failure.ts';
import { plannedPod, podPlace, podSettings, startPod } from './pod.ts';
import type { StoredContainer, StoredPod } from './store.ts';

export type Services = Pick<HubServices, 'home' | 'environment' | 'credentials'>;

/** Settings that decide the place. */
export type PlaceConfig = Pick<LoadedConfig, 'config' | 'trust' | 'layers'>;

/** Engine or cluster of a start. */
export type PlaceAddress =
  | Pick<ContainerSettings, 'engine'>
  | Pick<PodSettings, 'kind' | 'kubeconfig' | 'context' | 'namespace'>;

/** Whether a place is a pod. */
export const isPod = (place: PlaceSettings | StoredContainer): place is PodSettings | StoredPod =>
  'kind' in place && place.kind === 'pod';

/** Container or pod settings of a start; null: a process of this machine. @param workspacePath absent: only the user's settings count */
export function containerSettings(
  loaded: PlaceConfig,
  request: PlaceRequest | undefined,
  workspacePath?: string,
): PlaceSettings | null {
  const { Default, Container } = loaded.config.Place;
  if ((request?.kind ?? Default) === 'local') return null;
  if (request?.kind === 'pod') return podSettings(loaded.config, request);
  return {
    engine: Container.Engine,
    image: request?.image ?? ownImage(loaded, workspacePath) ?? Container.Image,
    network: request?.network ?? Container.Network,
    memoryMiB: Container.MemoryMiB,
    cpus: Container.Cpus,
    pids: Container.Pids,
    mounts: Container.Mounts,
    allowRoot: Container.AllowRoot,
  };
}

/** Image in the `devcontainer.json` of a trusted workspace. The workspace settings take precedence. */
function ownImage({ trust, layers }: PlaceConfig, workspacePath: string | undefined): string | undefined {
  if (workspacePath === undefined || trust !== 'trusted') return undefined;
  const own = layers.find(({ file }) => file === workspaceConfigFile(workspacePath));
  const { Place } = v.parse(OwnImage, own?.settings ?? {});
  return Place?.Container?.Image === undefined ? devcontainerImage(workspacePath) : undefined;
}

const OwnImage = v.object({
  Place: v.fallback(
    v.optional(v.object({ Container: v.optional(v.object({ Image: v.optional(v.unknown()) })) })),
    undefined,
  ),
});

/** @throws StartError of the same kind as the place's problem */
async function withStartErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof PlaceError) throw new StartError(error.kind, error.message, error.isRetryable);
    throw error;
  }
}

/** Converts a PlaceError. @throws StartError of the same kind */
function orStartError<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof PlaceError) throw new StartError(error.kind, error.message, error.isRetryable);
    throw error;
  }
}

/** Settings with the socket or the cluster that was found. @throws StartError `placeUnavailable`, `placeRefused` */
export function withEngine<T extends PlaceSettings>(settings: T, hub: Services): T {
  if (isPod(settings)) return { ...settings, ...orStartError(() => podPlace(settings, hub).cluster) };
  const { environment } = hub;
  const engine = engineSocket(settings.engine, environment);
  if (engine !== undefined) return { ...settings, engine };
  const message = 'No container engine was found. Start Docker or Podman, or set Place.Container.Engine to its socket.';
  throw new StartError('placeUnavailable', message, false);
}

/** Place on a container engine. */
export const engineAt = (engine: string, { credentials }: Services) =>
  new ContainerPlace(engine, credentials.homeLabel);

/** Engine or cluster of settings or stored facts. */
export const addressOf = (place: PlaceSettings | StoredContainer): PlaceAddress => {
  if (!isPod(place)) return { engine: place.engine };
  const { kind, kubeconfig, context, namespace } = place;
  return { kind, kubeconfig, context, namespace };
};

/** @throws StartError */
const placeAt = (address: PlaceAddress, hub: Services): ContainerPlace | PodPlace =>
  'kind' in address ? orStartError(() => podPlace(address, hub)) : engineAt(address.engine, hub);

/** Checks whether the engine can run the planned container. @throws StartError */
export async function readyContainer(hub: Services, { container, stored }: WorkspaceFacts): Promise<void> {
  if (container) await ready(hub, container, stored.canonicalWorkspacePath);
}

/** Checks whether a place can run an agent server. @throws StartError */
export async function checkPlace(hub: Services, workspace: string, request: PlaceRequest | undefined): Promise<void> {
  const settings = settingsNow(hub, workspace, request);
  if (settings) await ready(hub, withEngine(settings, hub), workspace);
}

/** Container settings of a workspace; null: a process of this machine, or the settings cannot be read. */
export function settingsNow(hub: Services, workspace: string, request: PlaceRequest | undefined): PlaceSettings | null {
  try {
    return containerSettings(loadConfig({ home: hub.home, workspace, env: hub.environment }), request, workspace);
  } catch (error) {
    // The start reports it.
    if (error instanceof ConfigError) return null;
    throw error;
  }
}

async function ready(hub: Services, settings: PlaceSettings, workspacePath: string): Promise<void> {
  const { home } = hub;
  const problem = isPod(settings)
    ? await orStartError(() => podPlace(settings, hub)).check({ settings, home, workspacePath })
    : await engineAt(settings.engine, hub).check({ settings, home });
  if (problem) throw new StartError(problem.kind, problem.message, problem.kind === 'placeUnavailable');
}

/** Why the agent server of a container is silent: the container is paused; null: unknown. */
export async function silenceReason(hub: Services, { stored }: WorkspaceFacts): Promise<string | null> {
  const container = stored.server?.container;
  if (container?.kind !== 'container') return null;
  const command = await engineAt(container.engine, hub).unpauseCommand(container);
  return command && `its container is paused; continue it: ${command}`;
}

/** Removes the containers or pods of a workspace. @throws StartError `placeUnavailable` when they may still run */
export async function endContainers(hub: Services, address: PlaceAddress, workspacePath?: string): Promise<void> {
  await withStartErrors(
    placeAt(address, hub).endLeftovers(workspacePath === undefined ? undefined : workspaceKey(workspacePath)),
  );
}

/** Stored facts of a container before its creation. */
export function plannedContainer(
  settings: PlaceSettings,
  marker: string,
  services: LaunchDocument['services'],
): StoredContainer {
  const ports = Object.entries(services).flatMap(([name, service]) => (service ? [[name, service.port] as const] : []));
  return plannedOn(settings, marker, Object.fromEntries(ports));
}

function plannedOn(settings: PlaceSettings, marker: string, ports: Record<string, number>): StoredContainer {
  if (isPod(settings)) return plannedPod(settings, marker, ports);
  const { engine, image, network } = settings;
  return { ...containerHandle(engine, marker), image, network, pid: null, ports };
}

/** Stored facts of a container that runs: its process id, or the uid of the pod. */
export const startedContainer = (container: StoredContainer, { pid, handle }: PlacedProcess): StoredContainer => {
  if (container.kind === 'container') return { ...container, pid };
  return handle.kind === 'pod' ? { ...container, uid: handle.uid } : container;
};

/** Stored facts of the container that holds a workspace's lock; undefined if a process of this machine holds it. */
export function containerOf(
  hub: Services,
  { stored }: WorkspaceFacts,
  lock: AppServerLock,
): StoredContainer | undefined {
  const { server, canonicalWorkspacePath, place } = stored;
  if (server?.marker === lock.incarnation && server.container) return server.container;
  // After a loss of the workspace list, the name of the container identifies its start.
  if (lock.identity.pidNamespace === ownIdentity().pidNamespace || lock.incarnation === null) return undefined;
  const settings = settingsNow(hub, canonicalWorkspacePath, place);
  if (!settings) return undefined;
  const ports = Object.entries(lock.endpoints).map(([name, url]) => [name, Number(URL.parse(url)?.port)] as const);
  const bound = Object.fromEntries(ports.filter(([, port]) => port > 0));
  return plannedOn(withEngine(settings, hub), lock.incarnation, bound);
}

/**
 * Published addresses of a container, limited to the ports that the Hub listens on. Its commands can write any address, and the Hub
 * would send requests to it, past the network of the container.
 *
 * @returns null without an address of the agent server
 */
export function boundLock({ ports }: StoredContainer, lock: AppServerLock): AppServerLock | null {
  const isBound = ([name, url]: readonly [string, string]) => {
    const parsed = URL.parse(url);
    return parsed?.hostname === '127.0.0.1' && parsed.port !== '' && Number(parsed.port) === ports[name];
  };
  const bound = Object.fromEntries(Object.entries(lock.endpoints).filter(isBound));
  const { appServerWebSocket } = bound;
  return appServerWebSocket === undefined ? null : { ...lock, endpoints: { ...bound, appServerWebSocket } };
}

/** Only this user may connect to services without a key: behind a relay, every client would look like this user. */
const ownersOnly: ReadonlySet<string> = new Set(['api', 'agui']);

const relayed = (ports: Readonly<Record<string, number>>): RelayedPort[] =>
  serviceNames.flatMap((name) => {
    const port = ports[name];
    return port === undefined ? [] : [{ port, isOwnersOnly: ownersOnly.has(name) }];
  });

/** Parts of the launch document for a place without access to the home and environment of the Hub. */
export function carriedParts(
  loaded: object,
  passed: readonly string[],
  { environment }: Services,
  place: PlaceSettings,
): Pick<LaunchDocument, 'settings' | 'environment' | 'listen' | 'tools'> {
  const names = new Set(passed);
  const variables = Object.entries(environment).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && names.has(entry[0]) && !/^oratorio_/i.test(entry[0]),
  );
  return {
    settings: { ...loaded },
    environment: Object.fromEntries(variables),
    // A cluster forwards the ports themselves.
    ...(!isPod(place) && { listen: 'unix' as const }),
    tools: { sandbox: 'container' },
  };
}

/** @throws PlaceError */
export function startContainer(
  hub: HubServices,
  facts: WorkspaceFacts,
  {
    settings,
    container,
    marker,
  }: { readonly settings: PlaceSettings; readonly container: StoredContainer; readonly marker: string },
  onReach: ReachListener,
): Promise<PlacedProcess> {
  const ports = relayed(container.ports);
  if (isPod(settings)) return startPod(hub, facts, { settings, marker, ports }, onReach);
  const workspacePath = facts.stored.canonicalWorkspacePath;
  const root = packageRoot();
  const { command, args } = hub.agentServer;
  const compiled = mountedCompileCache(hub);
  const request: ContainerStart = {
    ...{ home: hub.home, workspacePath, settings, marker },
    workspaceKey: workspaceKey(workspacePath),
    logDirectory: facts.logDirectory,
    skeleton: join(hub.statePath, 'places', workspaceKey(workspacePath)),
    command: [command, ...args, '--managed', '--workspace', workspacePath],
    program: [
      ...programParts.map((name) => join(root, name)),
      ...(command.startsWith(`${root}/`) ? [] : [command]),
      ...(compiled === undefined ? [] : [compiled]),
    ],
    environment: { [markerVariable]: marker, ...(compiled !== undefined && { NODE_COMPILE_CACHE: compiled }) },
    stdin: `${facts.launchDocument ?? ''}\n`,
    ports,
  };
  return engineAt(container.engine, hub).start(request, onReach);
}

/** Parts of the package that an agent server reads. */
const programParts = ['package.json', 'dist', 'node_modules'];

/** Adopts a container or a pod of an earlier Hub. @throws PlaceError */
export async function adoptContainer(
  hub: HubServices,
  { stored, logDirectory }: WorkspaceFacts,
  { marker, container }: { readonly marker: string; readonly container: StoredContainer },
): Promise<PlacedProcess> {
  const workspacePath = stored.canonicalWorkspacePath;
  const common = { marker, logDirectory, workspaceKey: workspaceKey(workspacePath), ports: relayed(container.ports) };
  if (container.kind === 'pod') return podPlace(container, hub).find({ ...common, handle: container });
  const { engine, pid } = container;
  const search = { ...common, home: hub.home, workspacePath, handle: container, pid: pid ?? 1 };
  return engineAt(engine, hub).find(search);
}

/** @throws StartError for a launch document that an agent server would refuse */
export function checkedDocument(document: LaunchDocument): string {
  const text = JSON.stringify(document);
  if (Buffer.byteLength(text) < defaults.supervise.launchDocumentBytes) return text;
  const message = `The settings are too large for a container: the launch document has ${Buffer.byteLength(text)} bytes, and at most ${defaults.supervise.launchDocumentBytes} are allowed. Remove long settings.`;
  throw new StartError('invalidConfig', message, false);
}
