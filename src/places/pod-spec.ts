import { isAbsolute, relative } from 'node:path';
import {
  type Bind,
  type CommonRequest,
  type ContainerSettings,
  contains,
  labels,
  startScript,
  workspaceBinds,
} from './container-spec.ts';
import type { ClusterChoice } from './kube-config.ts';
import { PlaceError } from './place.ts';

/** Pod settings of the user. */
export interface PodSettings extends ClusterChoice {
  readonly kind: 'pod';
  /** Address of the API server. */
  readonly engine: string;
  readonly namespace: string;
  readonly image: string;
  /** Program and first arguments of an agent server in the image. */
  readonly command: readonly string[];
  /** `<path>=claim:<name>` or `<path>=hostPath:<path on the node>`. */
  readonly volumes: readonly string[];
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly pullImages: boolean;
  readonly allowRoot: boolean;
}

/** Settings of a start outside of this machine's processes. */
export type PlaceSettings = ContainerSettings | PodSettings;

export interface PodRequest extends CommonRequest {
  readonly settings: PodSettings;
  readonly marker: string;
  readonly homeLabel: string;
  readonly workspaceKey: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Name of the container in the pod. */
export const containerInPod = 'agent-server';

/** Unique name for the pod of one start. */
export const podName = (marker: string): string => `oratorio-${marker}`;

/** Labels that identify a pod of a home. */
export const podLabels = ({
  homeLabel,
  workspaceKey,
  marker,
}: Pick<PodRequest, 'homeLabel' | 'workspaceKey' | 'marker'>) => ({
  [labels.home]: homeLabel,
  [labels.workspace]: workspaceKey,
  [labels.incarnation]: marker,
});

/** Volume of the cluster that holds a directory of this machine at the same path. */
interface Volume {
  readonly name: string;
  readonly path: string;
  readonly source: object;
}

const refused = (message: string) => new PlaceError({ kind: 'placeRefused', message });

/** @throws PlaceError for a volume that is not written as the settings require */
function volumeOf(text: string, index: number): Volume {
  const [, path = '', kind, at = ''] = /^([^=]+)=(claim|hostPath):(.+)$/.exec(text) ?? [];
  const isValid = isAbsolute(path) && (kind === 'claim' ? /^[a-z0-9][a-z0-9.-]*$/.test(at) : isAbsolute(at));
  if (!isValid)
    throw refused(`Place.Pod.Volumes: ${text} is not written as <path>=claim:<name> or <path>=hostPath:<path>.`);
  const source =
    kind === 'claim'
      ? { persistentVolumeClaim: { claimName: at } }
      : { hostPath: { path: at, type: 'Directory' as const } };
  return { name: `volume-${index}`, path: path.replace(/(?<=[^/])\/+$/, ''), source };
}

/**
 * Volumes of the settings, for the directories that a pod needs.
 *
 * @throws PlaceError `placeRefused` for a directory that no volume holds: the cluster cannot reach it
 */
export function checkedVolumes(
  settings: Pick<PodSettings, 'volumes'>,
  paths: Readonly<Record<'workspace' | 'home', string>>,
): Volume[] {
  const volumes = settings.volumes.map(volumeOf);
  for (const [what, path] of Object.entries(paths)) {
    if (volumes.some((volume) => contains(volume.path, path))) continue;
    throw refused(
      `A pod cannot reach the ${what} ${path}: no volume of Place.Pod.Volumes holds it. Add a volume of the cluster that this machine has mounted at the same path, e.g. "${path}=claim:<name>".`,
    );
  }
  return volumes;
}

/** Mount of a part of a volume. @throws PlaceError */
function mountOf({ path, source = path, isReadOnly = false }: Bind, volumes: readonly Volume[]) {
  const held = volumes
    .filter((each) => contains(each.path, source))
    .sort((a, b) => b.path.length - a.path.length)
    .at(0);
  if (!held) throw refused(`A pod cannot reach ${source}: no volume of Place.Pod.Volumes holds it.`);
  const subPath = relative(held.path, source);
  return { name: held.name, mountPath: path, readOnly: isReadOnly, ...(subPath !== '' && { subPath }) };
}

/** Writes a text for `args` and `env`, in which a cluster replaces `$(NAME)` by a variable. */
const literal = (text: string): string => text.replaceAll('$', '$$$$');

/**
 * Request body that creates a pod. No controller creates it again, and it contains no secret: the launch document is sent on
 * standard input.
 *
 * @throws PlaceError
 */
export function podSpec(request: PodRequest, [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]) {
  const { home, workspacePath, settings, environment, marker } = request;
  const volumes = checkedVolumes(settings, { workspace: workspacePath, home });
  const mounts = workspaceBinds(request).map((bind) => mountOf(bind, volumes));
  const used = volumes.filter(({ name }) => mounts.some((mount) => mount.name === name));
  const resources = {
    ...(settings.memoryMiB > 0 && { memory: `${settings.memoryMiB}Mi` }),
    ...(settings.cpus > 0 && { cpu: `${Math.round(settings.cpus * 1_000)}m` }),
  };
  const env = { ...environment, HOME: '/tmp/home', ORATORIO_HOME: home };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName(marker), labels: podLabels(request) },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      hostNetwork: false,
      hostPID: false,
      hostIPC: false,
      securityContext: {
        ...{ runAsNonRoot: uid !== 0, runAsUser: uid, runAsGroup: gid },
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: containerInPod,
          image: settings.image,
          imagePullPolicy: settings.pullImages ? 'IfNotPresent' : 'Never',
          command: ['/bin/sh', '-c', startScript, 'oratorio'],
          args: [...settings.command, '--managed', '--workspace', workspacePath].map(literal),
          workingDir: workspacePath,
          env: Object.entries(env).map(([name, value]) => ({ name, value: literal(value) })),
          stdin: true,
          stdinOnce: true,
          tty: false,
          resources: { limits: resources, requests: resources },
          securityContext: {
            ...{ allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true },
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }, ...mounts],
        },
      ],
      volumes: [
        { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '1Gi' } },
        ...used.map(({ name, source }) => ({ name, ...source })),
      ],
    },
  };
}
