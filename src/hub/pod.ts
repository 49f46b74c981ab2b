/** Settings and requests of agent servers in pods. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type LoadedConfig, workspaceKey } from '../config/index.ts';
import {
  kubeconfigFile,
  type PlacedProcess,
  PodPlace,
  type PodSettings,
  podHandle,
  type ReachListener,
} from '../places/index.ts';
import type { PlaceRequest, PlaceStatus } from '../protocol/index.ts';
import { markerVariable } from '../supervise/index.ts';
import type { HubServices, WorkspaceFacts } from './facts.ts';
import type { StoredPod } from './store.ts';

type Services = Pick<HubServices, 'environment' | 'credentials'>;

/** Pod settings of a start. They come only from the user's own file. */
export function podSettings(
  { Place: { Pod } }: LoadedConfig['config'],
  request: PlaceRequest | undefined,
): PodSettings {
  return {
    kind: 'pod',
    ...{ kubeconfig: Pod.Kubeconfig, context: Pod.Context, namespace: Pod.Namespace, engine: '' },
    ...{ image: request?.image ?? Pod.Image, command: Pod.Command, volumes: Pod.Volumes },
    ...{ memoryMiB: Pod.MemoryMiB, cpus: Pod.Cpus, pullImages: Pod.PullImages, allowRoot: Pod.AllowRoot },
  };
}

/** Clusters in use, by home and context, with the version of their kubeconfig file. */
const known = new Map<string, { readonly version: string; readonly place: PodPlace }>();

/**
 * One place for all requests to a cluster, so that its credential program runs once. A changed kubeconfig file is read again.
 *
 * @throws PlaceError for a kubeconfig file that cannot be used
 */
export function podPlace(
  cluster: Pick<PodSettings, 'kubeconfig' | 'context' | 'namespace'>,
  { environment, credentials: { homeLabel } }: Services,
): PodPlace {
  const { kubeconfig, context, namespace } = cluster;
  const { ino, size, ctimeMs } = statSync(kubeconfigFile(cluster, environment), { throwIfNoEntry: false }) ?? {};
  const [key, version] = [JSON.stringify([homeLabel, kubeconfig, context, namespace]), `${ino} ${size} ${ctimeMs}`];
  const last = known.get(key);
  if (last?.version === version) return last.place;
  const place = new PodPlace(cluster, homeLabel, { env: environment });
  known.set(key, { version, place });
  return place;
}

/** Stored facts of a pod before its creation. */
export const plannedPod = (settings: PodSettings, marker: string, ports: StoredPod['ports']): StoredPod => {
  const { namespace, engine, kubeconfig, context, image } = settings;
  return { ...podHandle(namespace, marker), engine, kubeconfig, context, image, pid: null, ports };
};

/** @throws PlaceError */
export function startPod(
  hub: HubServices,
  { stored, logDirectory, launchDocument }: WorkspaceFacts,
  start: Pick<Parameters<PodPlace['start']>[0], 'settings' | 'marker' | 'ports'>,
  onReach: ReachListener,
): Promise<PlacedProcess> {
  const workspacePath = stored.canonicalWorkspacePath;
  const key = workspaceKey(workspacePath);
  return podPlace(start.settings, hub).start(
    {
      ...start,
      ...{ home: hub.home, workspacePath, workspaceKey: key, logDirectory },
      skeleton: join(hub.statePath, 'places', key),
      environment: { [markerVariable]: start.marker },
      stdin: `${launchDocument ?? ''}\n`,
    },
    onReach,
  );
}

/** Row of `GET /v1/places`. */
export async function podStatus(
  settings: PodSettings,
  hub: Services & { home: string },
): Promise<Partial<PlaceStatus>> {
  const place = podPlace(settings, hub);
  const [version, problem] = await Promise.all([
    place.version().catch(() => null),
    place.check({ settings, home: hub.home }),
  ]);
  return {
    ...{ engine: settings.engine, image: settings.image, problem: problem?.message ?? null },
    version: version && `kubernetes ${version.slice(0, 100)}`,
  };
}
