import { closeSync, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { openToAppend } from '../lib/index.ts';
import type { Handle, PodHandle } from '../protocol/index.ts';
import { defaults } from '../protocol/index.ts';
import { type Liveness, logFiles, logKeeper } from '../supervise/index.ts';
import { labels } from './container-spec.ts';
import { KubeApi } from './kube-api.ts';
import { type ClusterAccess, type ClusterChoice, type ClusterOptions, clusterAccess } from './kube-config.ts';
import type { Pod } from './kube-types.ts';
import { type Place, type PlacedProcess, PlaceError, type PlaceProblem, type ReachListener } from './place.ts';
import { WorkspaceLease } from './pod-lease.ts';
import { imageMissing, noImage, problemOf, rootRefused, unavailable } from './pod-problems.ts';
import { endOf, hasEnded, isNodeLost, podProcess } from './pod-process.ts';
import {
  checkedVolumes,
  containerInPod,
  type PodRequest,
  type PodSettings,
  podLabels,
  podName,
  podSpec,
} from './pod-spec.ts';
import { openForwardedPorts, type RelayedPort } from './relay.ts';

/** Start of an agent server in a pod. */
export interface PodStart extends Omit<PodRequest, 'homeLabel'> {
  /** Launch document. */
  readonly stdin: string;
  readonly ports: readonly RelayedPort[];
}

/** Pod that an earlier Hub started. */
export interface PodSearch extends Pick<PodStart, 'workspaceKey' | 'marker' | 'logDirectory' | 'ports'> {
  readonly handle: PodHandle;
}

/** Check of a place; without a workspace only the settings are checked. */
export interface PodCheck extends Pick<PodStart, 'home'> {
  readonly settings: Pick<PodSettings, 'allowRoot' | 'image' | 'volumes'>;
  readonly workspacePath?: string | undefined;
}

/** Handle of a pod before its creation. */
export const podHandle = (namespace: string, marker: string): PodHandle => ({
  kind: 'pod',
  namespace,
  name: podName(marker),
  uid: '',
});

/** Longest wait for a pod to run. */
const runMs = 25_000;
const removalMs = 30_000;
const pollMs = 100;
const removalGraceSeconds = 1;

/** Reasons of a container that waits for its image. */
const imageReasons = ['ErrImageNeverPull', 'ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ImageInspectError'];

/** Runs agent servers as bare pods of a Kubernetes cluster. */
export class PodPlace implements Place<PodStart, PodSearch> {
  readonly kind = 'pod';
  readonly #access: ClusterAccess;
  readonly #api: KubeApi;
  readonly #namespace: string;
  readonly #homeLabel: string;
  readonly #removalMs: number;

  /**
   * @param homeLabel identifies the home of this Hub; only this Hub can compute it
   * @throws PlaceError for a kubeconfig file that cannot be used
   */
  constructor(
    cluster: ClusterChoice & { readonly namespace: string },
    homeLabel: string,
    {
      answerMs,
      longestRemovalMs = removalMs,
      ...options
    }: ClusterOptions & { readonly answerMs?: number | undefined; readonly longestRemovalMs?: number } = {},
  ) {
    this.#access = clusterAccess(cluster, options);
    this.#namespace = cluster.namespace || this.#access.namespace;
    this.#api = new KubeApi(this.#access, this.#namespace, answerMs);
    this.#homeLabel = homeLabel;
    this.#removalMs = longestRemovalMs;
  }

  /** Cluster and namespace, resolved by the kubeconfig file. */
  get cluster() {
    const { kubeconfig, context, server } = this.#access;
    return { kubeconfig, context, engine: server, namespace: this.#namespace };
  }

  version(): Promise<string> {
    return this.#api.version();
  }

  async check({ settings, home, workspacePath }: PodCheck): Promise<PlaceProblem | null> {
    try {
      if (process.getuid?.() === 0 && !settings.allowRoot) return rootRefused;
      if (settings.image === '') return noImage;
      checkedVolumes(settings, { home, workspace: workspacePath ?? home });
      await this.#api.list({ [labels.home]: this.#homeLabel });
      return null;
    } catch (error) {
      return problemOf(error);
    }
  }

  /** @throws PlaceError */
  async start(start: PodStart, onReach: ReachListener = () => {}): Promise<PlacedProcess> {
    const request: PodRequest = { ...start, homeLabel: this.#homeLabel };
    const { marker, workspaceKey, logDirectory, ports, stdin } = start;
    const name = podName(marker);
    const lease = this.#lease(workspaceKey);
    let handle = podHandle(this.#namespace, marker);
    const relay = await openForwardedPorts(ports, (port) => this.#forward(request, handle, port)).catch(
      (error: unknown) => {
        throw new PlaceError(problemOf(error), error);
      },
    );
    try {
      for (const file of Object.values(logFiles(logDirectory))) closeSync(openToAppend(file));
      await lease.hold();
      await this.#refuseForeign(workspaceKey);
      const { metadata } = await this.#api.create(podSpec(request));
      handle = { ...handle, uid: metadata.uid };
      await this.#running(request, handle);
      await this.#api.write(name, containerInPod, stdin);
      onReach(false);
      return this.#follow({ ...start, handle }, relay, lease);
    } catch (error) {
      relay.close();
      // Removes the pod of a failed start. If the cluster does not answer, the next start removes it.
      await this.#removeNamed(request, handle).catch(() => undefined);
      await lease.release().catch(() => undefined);
      throw new PlaceError(problemOf(error), error);
    }
  }

  /** Follows the pod even while the cluster does not answer. @throws PlaceError when a port of the Hub is taken */
  async find(search: PodSearch): Promise<PlacedProcess> {
    try {
      const relay = await openForwardedPorts(search.ports, (port) => this.#forward(search, search.handle, port));
      return this.#follow(search, relay, this.#lease(search.workspaceKey));
    } catch (error) {
      throw new PlaceError(problemOf(error), error);
    }
  }

  /**
   * Removes the pods of one workspace, or all pods of this home, and their leases.
   *
   * @returns number of removed pods
   * @throws PlaceError when the cluster does not answer, or does not remove one in time; pods may still run
   */
  async endLeftovers(workspaceKey?: string): Promise<number> {
    const wanted = {
      [labels.home]: this.#homeLabel,
      ...(workspaceKey !== undefined && { [labels.workspace]: workspaceKey }),
    };
    try {
      const found = await this.#api.list(wanted);
      const ours = found.filter(({ metadata }) => {
        const own = metadata.labels ?? {};
        return own[labels.home] === this.#homeLabel && metadata.name === podName(own[labels.incarnation] ?? '');
      });
      for (const { metadata } of ours) await this.#remove(metadata);
      // A Hub that was killed leaves its lease, even without a pod.
      const workspaces = ours.map(({ metadata }) => metadata.labels?.[labels.workspace]);
      for (const key of new Set([workspaceKey, ...workspaces])) if (key !== undefined) await this.#lease(key).release();
      return ours.length;
    } catch (error) {
      throw new PlaceError(problemOf(error), error);
    }
  }

  /** The Hub's own listeners are in front of a pod, so no process lookup is necessary. */
  isAlive(_handle: Handle): Liveness {
    return 'unknown';
  }

  #lease(workspaceKey: string): WorkspaceLease {
    return new WorkspaceLease(this.#api, workspaceKey, this.#homeLabel);
  }

  /** Another Hub may have lost its lease while its pod still runs. @throws PlaceError */
  async #refuseForeign(workspaceKey: string): Promise<void> {
    const found = await this.#api.list({ [labels.workspace]: workspaceKey });
    const other = found.find((pod) => pod.metadata.labels?.[labels.home] !== this.#homeLabel && !hasEnded(pod));
    if (!other) return;
    const message = `The pod ${other.metadata.name} of another Hub runs this workspace. Stop the workspace there, then start again.`;
    throw new PlaceError({ kind: 'placeUnavailable', message });
  }

  /** Resolves when the container runs. @throws PlaceError with the reason of the cluster */
  async #running(request: PodRequest, { name, uid }: PodHandle): Promise<void> {
    const deadline = performance.now() + runMs;
    for (;;) {
      const pod = await this.#api.pod(name);
      if (pod?.metadata.uid !== uid) throw unavailable('The pod was removed during its start. Start again.');
      const state = pod.status.containerStatuses?.[0]?.state;
      if (state?.running) return;
      const { reason = '', message = '' } = state?.waiting ?? {};
      const words = [reason, message].filter(Boolean).join(': ').slice(0, 1_000);
      if (imageReasons.includes(reason)) throw new PlaceError(imageMissing(request.settings.image, words));
      if (/Error$|^CrashLoop/.test(reason))
        throw unavailable(`The cluster cannot start the container: ${words}. Check the cluster, then start again.`);
      if (hasEnded(pod))
        throw unavailable(
          `The pod ended during its start: ${endOf(pod).reason || 'unknown reason'}. Check the cluster, then start again.`,
        );
      const unscheduled = (pod.status.conditions ?? []).find((each) => each.reason === 'Unschedulable');
      if (unscheduled)
        throw unavailable(
          `The cluster has no node for the pod: ${unscheduled.message.slice(0, 1_000)}. Free resources or add a node.`,
        );
      if (performance.now() > deadline || isNodeLost(pod))
        throw unavailable(
          `The pod did not run within ${runMs / 1_000} s${words && `: ${words}`}. Check the cluster, then start again.`,
        );
      await pause(pollMs);
    }
  }

  async #removeNamed(request: PodRequest, { name }: PodHandle): Promise<void> {
    const found = await this.#api.pod(name);
    if (found && this.#isOurs(request, found)) await this.#remove(found.metadata);
  }

  /** @throws PlaceError when the pod still exists after the time limit */
  async #remove({ name, uid }: Pod['metadata']): Promise<void> {
    const deadline = performance.now() + this.#removalMs;
    await this.#api.delete(name, uid, removalGraceSeconds);
    while ((await this.#api.pod(name))?.metadata.uid === uid) {
      if (performance.now() > deadline)
        throw unavailable(
          `The cluster does not remove the pod ${name}; its node may be lost. Remove it, then start again.`,
        );
      await pause(pollMs);
    }
  }

  /** Proves ownership by the labels; only this Hub can compute that of the home. */
  #isOurs(search: Pick<PodSearch, 'workspaceKey' | 'marker'>, { metadata }: Pod, uid = ''): boolean {
    const wanted = podLabels({ ...search, homeLabel: this.#homeLabel });
    const isLabelled = Object.entries(wanted).every(([name, value]) => metadata.labels?.[name] === value);
    return isLabelled && (uid === '' || uid === metadata.uid);
  }

  async #forward(search: Pick<PodSearch, 'workspaceKey' | 'marker'>, { name, uid }: PodHandle, port: number) {
    const pod = await this.#api.pod(name);
    if (!pod || !this.#isOurs(search, pod, uid)) throw new Error('the pod of this start does not exist');
    return this.#api.forward(name, port);
  }

  #follow(
    search: PodSearch,
    relay: Awaited<ReturnType<typeof openForwardedPorts>>,
    lease: WorkspaceLease,
  ): PlacedProcess {
    const { handle, logDirectory } = search;
    const { stderr } = logFiles(logDirectory);
    return podProcess({
      ...{ api: this.#api, handle, relay, lease },
      forget: logKeeper.add(Object.values(logFiles(logDirectory)), defaults.supervise.logBytes),
      isOurs: (pod) => this.#isOurs(search, pod, handle.uid),
      onReason: (reason) => appendLine(stderr, `oratorio: the cluster ended the pod: ${reason}`),
    });
  }
}

function appendLine(file: string, line: string): void {
  const fd = openToAppend(file);
  try {
    writeSync(fd, `${line}\n`);
  } finally {
    closeSync(fd);
  }
}
