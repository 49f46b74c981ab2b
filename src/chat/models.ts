import type { Runtime } from '../agent/index.ts';
import { defaults } from '../protocol/index.ts';

/** One entry of `GET /v1/models`. */
export interface ListedModel {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

/** The models that can be asked for. The provider is asked now and then, not for every request. */
export class Models {
  readonly #runtime: Runtime;
  #listed: Promise<readonly ListedModel[]> | undefined;
  #listedAt = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Never empty: a provider that lists none has the configured one. @throws ModelError */
  list(): Promise<readonly ListedModel[]> {
    const now = performance.now();
    if (!this.#listed || now - this.#listedAt > defaults.chat.modelsMs) {
      this.#listedAt = now;
      const listed = this.#ask();
      this.#listed = listed;
      listed.catch(() => {
        if (this.#listed === listed) this.#listed = undefined;
      });
    }
    return this.#listed;
  }

  /**
   * Chooses the model. Generic clients name models that do not exist here: the configured model answers those.
   * `asked`: the one to ask the provider for, when it is not its own. @throws ModelError
   */
  async choose(asked: string | undefined): Promise<{ readonly used: string; readonly asked: string | undefined }> {
    const { model } = await this.#runtime.describe();
    if (asked === undefined || asked === '' || asked === model) return { used: model, asked: undefined };
    const isListed = (await this.list()).some(({ id }) => id === asked);
    return isListed ? { used: asked, asked } : { used: model, asked: undefined };
  }

  async #ask(): Promise<readonly ListedModel[]> {
    const [{ model, provider }, result] = await Promise.all([this.#runtime.describe(), this.#runtime.models()]);
    const models = result.success ? result.models : [];
    const listed = models.map(({ id, ownedBy, createdAt }) => entry(id, ownedBy || provider, createdAt));
    return listed.some(({ id }) => id === model) ? listed : [entry(model, provider, undefined), ...listed];
  }
}

function entry(id: string, ownedBy: string, createdAt: string | undefined): ListedModel {
  const created = createdAt === undefined ? 0 : Math.floor(Date.parse(createdAt) / 1000) || 0;
  return { id, object: 'model', created, owned_by: ownedBy };
}
