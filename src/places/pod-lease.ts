import { EngineRefusal } from './engine-api.ts';
import type { KubeApi } from './kube-api.ts';
import { PlaceError } from './place.ts';

const durationSeconds = 60;
export const renewalMs = 15_000;

/** Name of the lease of a workspace. */
export const leaseName = (workspaceKey: string): string => `oratorio-${workspaceKey}`;

/** A lease of `coordination.k8s.io/v1` proves that one Hub runs a workspace. */
export class WorkspaceLease {
  readonly #api: KubeApi;
  readonly #name: string;
  readonly #holder: string;

  constructor(api: KubeApi, workspaceKey: string, holder: string) {
    this.#api = api;
    this.#name = leaseName(workspaceKey);
    this.#holder = holder;
  }

  /**
   * Takes or renews the lease. A stale writer is refused by the version of the object.
   *
   * @throws PlaceError `placeUnavailable` while another Hub holds it
   */
  async hold(): Promise<void> {
    const found = await this.#api.lease(this.#name);
    const { holderIdentity, renewTime, leaseDurationSeconds } = found?.spec ?? {};
    const end = Date.parse(renewTime ?? '') + (leaseDurationSeconds ?? durationSeconds) * 1_000;
    if (found && holderIdentity && holderIdentity !== this.#holder && !(end < Date.now())) throw this.#taken();
    const now = new Date().toISOString().replace('Z', '000Z');
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: this.#name, ...(found && { resourceVersion: found.metadata.resourceVersion }) },
      spec: { holderIdentity: this.#holder, leaseDurationSeconds: durationSeconds, renewTime: now },
    };
    try {
      await (found ? this.#api.replaceLease(this.#name, lease) : this.#api.createLease(lease));
    } catch (error) {
      if (error instanceof EngineRefusal && error.status === 409) throw this.#taken();
      throw error;
    }
  }

  /** Gives the lease up, if this Hub still holds it. */
  async release(): Promise<void> {
    const found = await this.#api.lease(this.#name);
    if (found?.spec.holderIdentity !== this.#holder) return;
    const { uid, resourceVersion } = found.metadata;
    await this.#api.deleteLease(this.#name, { uid, resourceVersion });
  }

  #taken(): PlaceError {
    return new PlaceError({
      kind: 'placeUnavailable',
      message: `Another Hub runs this workspace in the cluster: it holds the lease ${this.#name}. Stop the workspace there, then start again.`,
    });
  }
}
