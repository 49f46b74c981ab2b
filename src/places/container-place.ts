import { closeSync, statSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { describeUser, openToAppend } from '../lib/index.ts';
import type { ContainerHandle, Handle } from '../protocol/index.ts';
import { defaults } from '../protocol/index.ts';
import { type Liveness, logFiles, logKeeper } from '../supervise/index.ts';
import { containerProcess } from './container-process.ts';
import { type ContainerRequest, checkedMount, containerSpec, labels, MountRefusal } from './container-spec.ts';
import {
  type ContainerDetails,
  type ContainerLabels,
  EngineApi,
  type EngineFacts,
  EngineRefusal,
  EngineUnreachableError,
} from './engine-api.ts';
import { watchReach } from './engine-reach.ts';
import { type Place, type PlacedProcess, PlaceError, type PlaceProblem, type ReachListener } from './place.ts';
import { openRelayPorts, type Relay, type RelayedPort, relayDirectory } from './relay.ts';

/** Start of an agent server in a container. */
export interface ContainerStart extends Omit<ContainerRequest, 'labels' | 'isRootless'> {
  readonly marker: string;
  readonly workspaceKey: string;
  /** Launch document. */
  readonly stdin: string;
  readonly ports: readonly RelayedPort[];
}

/** Container that an earlier Hub started. */
export interface ContainerSearch
  extends Pick<ContainerStart, 'home' | 'workspacePath' | 'workspaceKey' | 'marker' | 'logDirectory' | 'ports'> {
  readonly handle: ContainerHandle;
  readonly pid: number;
}

/** Unique name for the container of one start. */
export const containerName = (marker: string): string => `oratorio-${marker}`;

export const containerHandle = (engine: string, marker: string): ContainerHandle => ({
  kind: 'container',
  engine,
  id: containerName(marker),
});

/** Time limit for the removal of one container. A busy engine needs seconds. */
const removalMs = 30_000;
const pollMs = 50;

export class ContainerPlace implements Place<ContainerStart, ContainerSearch> {
  readonly kind = 'container';
  readonly #engine: EngineApi;
  readonly #homeLabel: string;
  readonly #removalMs: number;

  /**
   * @param engine its socket, or a client of it
   * @param homeLabel identifies the home of this Hub; only this Hub can compute it
   */
  constructor(engine: string | EngineApi, homeLabel: string, longestRemovalMs: number = removalMs) {
    this.#engine = typeof engine === 'string' ? new EngineApi(engine) : engine;
    this.#homeLabel = homeLabel;
    this.#removalMs = longestRemovalMs;
  }

  async check({ settings, home }: Pick<ContainerStart, 'settings' | 'home'>): Promise<PlaceProblem | null> {
    try {
      for (const mount of settings.mounts) checkedMount(mount, home);
      const { name, isRootless } = await this.#engine.knownFacts();
      if (isRootless) {
        const { uid } = statSync(this.#engine.socket);
        if (uid !== process.getuid?.()) return foreignEngine(this.#engine.socket, uid);
      } else if (process.getuid?.() === 0 && !settings.allowRoot) return rootRefused;
      if (settings.image === '') return noImage;
      return (await this.#engine.hasImage(settings.image)) ? null : imageMissing(settings.image, name);
    } catch (error) {
      return problemOf(error);
    }
  }

  /** @throws PlaceError */
  async start(request: ContainerStart, onReach: ReachListener = () => {}): Promise<PlacedProcess> {
    const { marker, home, workspacePath, workspaceKey, logDirectory } = request;
    const name = containerName(marker);
    let relay: Relay | undefined;
    const reach = watchReach(this.#engine);
    reach.listen(onReach);
    try {
      const { isRootless } = await this.#engine.knownFacts();
      for (const file of Object.values(logFiles(logDirectory))) closeSync(openToAppend(file));
      relay = await openRelayPorts(relayDirectory(home, workspacePath), request.ports, marker);
      const own = { [labels.home]: this.#homeLabel, [labels.workspace]: workspaceKey, [labels.incarnation]: marker };
      await this.#engine.create(name, containerSpec({ ...request, labels: own, isRootless }));
      await this.#engine.start(name);
      await this.#engine.write(name, request.stdin);
      const found = await this.#engine.inspect(name);
      reach.report(false);
      const handle = containerHandle(this.#engine.socket, marker);
      return this.#follow({ ...request, handle, pid: found?.State.Pid ?? 0 }, relay);
    } catch (error) {
      relay?.close();
      // Removes the container of a failed start. If the engine is unreachable, the next start removes it.
      await this.#engine.remove(name).catch(() => undefined);
      throw new PlaceError(problemOf(error), error);
    } finally {
      reach.end();
    }
  }

  /** Follows the process even while the engine is unreachable. @throws PlaceError when a port of the Hub is taken */
  async find(search: ContainerSearch): Promise<PlacedProcess> {
    const { home, workspacePath, ports, marker } = search;
    try {
      return this.#follow(search, await openRelayPorts(relayDirectory(home, workspacePath), ports, marker));
    } catch (error) {
      throw new PlaceError(problemOf(error), error);
    }
  }

  /**
   * Removes the containers of one workspace, or all containers of this home.
   *
   * @returns number of removed containers
   * @throws PlaceError when the engine does not answer, or does not remove one in time; containers may still run
   */
  async endLeftovers(workspaceKey?: string): Promise<number> {
    const wanted = {
      [labels.home]: this.#homeLabel,
      ...(workspaceKey !== undefined && { [labels.workspace]: workspaceKey }),
    };
    try {
      const found = await this.#engine.list(wanted);
      const ours = found.filter(({ Labels, Names }) => Names.some((name) => this.#isOurs(name, Labels)));
      for (const { Id } of ours) await this.#remove(Id);
      return ours.length;
    } catch (error) {
      throw new PlaceError(problemOf(error), error);
    }
  }

  /** @throws PlaceError when the container still exists after the time limit */
  async #remove(id: string): Promise<void> {
    const deadline = performance.now() + this.#removalMs;
    await this.#engine.remove(id);
    while ((await this.#engine.inspect(id)) !== undefined) {
      if (performance.now() > deadline) throw new PlaceError(notRemoved(id));
      await pause(pollMs);
    }
  }

  /** Command that continues a paused container; null if it is not paused, or the engine does not answer. */
  async unpauseCommand({ id }: ContainerHandle): Promise<string | null> {
    const found = await this.#engine.inspect(id).catch(() => undefined);
    if (found?.State.Status !== 'paused') return null;
    return `${(await this.#engine.knownFacts()).name} unpause ${id}`;
  }

  /** The Hub's own listeners are in front of a container, so no process lookup is necessary. */
  isAlive(_handle: Handle): Liveness {
    return 'unknown';
  }

  /** Proves ownership. The name counts, too: an image that was made from a container of ours passes its labels on. */
  #isOurs(name: string, own: ContainerLabels): boolean {
    return (
      own?.[labels.home] === this.#homeLabel && name.replace(/^\//, '') === containerName(own[labels.incarnation] ?? '')
    );
  }

  #follow({ handle, pid, marker, workspaceKey, logDirectory }: ContainerSearch, relay: Relay): PlacedProcess {
    const forget = logKeeper.add(Object.values(logFiles(logDirectory)), defaults.supervise.logBytes);
    const isOurs = ({ Name, Config: { Labels: own } }: ContainerDetails) =>
      this.#isOurs(Name, own) && own?.[labels.workspace] === workspaceKey && own[labels.incarnation] === marker;
    return containerProcess({ engine: this.#engine, handle, pid: Math.max(pid, 1), relay, forget, isOurs });
  }
}

const rootRefused: PlaceProblem = {
  kind: 'placeRefused',
  message:
    'A Hub that runs as root does not start containers on a rootful engine. Use a rootless engine, or set Place.Container.AllowRoot.',
};

const foreignEngine = (socket: string, uid: number): PlaceProblem => ({
  kind: 'placeRefused',
  message: `The rootless container engine at ${socket} belongs to ${describeUser(uid)}, so its containers cannot open the files of this user. Start an engine of this user, e.g. systemctl --user start podman.socket.`,
});

const notRemoved = (id: string): PlaceProblem => ({
  kind: 'placeUnavailable',
  message: `The container engine does not remove the container ${id.slice(0, 12)}. Remove it, e.g. docker rm --force ${id.slice(0, 12)}, then start again.`,
});

const noImage: PlaceProblem = {
  kind: 'imageMissing',
  message: 'No image is set. Name an image with --image or in Place.Container.Image.',
};

const imageMissing = (image: string, engine: EngineFacts['name']): PlaceProblem => ({
  kind: 'imageMissing',
  message: `The container engine does not have the image ${image}, and Oratorio never pulls images. Pull it, e.g. ${engine} pull ${engine === 'docker' ? image : withRegistry(image)}, then start again.`,
});

/** Name of an image with its registry, which Podman asks for. */
function withRegistry(image: string): string {
  const [first = '', ...rest] = image.split('/');
  if (rest.length === 0) return `docker.io/library/${image}`;
  return /[.:]|^localhost$/.test(first) ? image : `docker.io/${image}`;
}

/** Converts an error to the problem of a place, with reason and next step. */
function problemOf(error: unknown): PlaceProblem {
  if (error instanceof PlaceError) return error;
  if (error instanceof MountRefusal) return { kind: 'placeRefused', message: error.message };
  if (error instanceof EngineUnreachableError && error.isForbidden)
    return {
      kind: 'placeRefused',
      message: `${error.message}. Join the group of the socket and log in again, or use a rootless engine.`,
    };
  if (error instanceof EngineUnreachableError)
    return { kind: 'placeUnavailable', message: `${error.message}. Start the engine, then try again.` };
  if (error instanceof EngineRefusal && error.status === 404 && /image/i.test(error.message))
    return {
      kind: 'imageMissing',
      message: `The container engine cannot find the image: ${error.message}. Pull it, then start again.`,
    };
  if (error instanceof EngineRefusal && /no space left/i.test(error.message))
    return {
      kind: 'placeUnavailable',
      message: `The disk of the container engine is full: ${error.message}. Free space, then start again.`,
    };
  if (error instanceof EngineRefusal)
    return { kind: 'placeUnavailable', message: `The container engine refuses the request: ${error.message}` };
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE')
    return {
      kind: 'placeUnavailable',
      message: 'Another program uses a port of the agent server. Start again: the next start chooses other ports.',
    };
  return { kind: 'placeUnavailable', message: `The container could not be started: ${message}` };
}
