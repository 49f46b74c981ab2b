import { join } from 'node:path';
import * as v from 'valibot';
import { AtomicFile, readJson } from '../../../lib/index.ts';
import type { Logger } from '../../../log/index.ts';
import { maxPushSubscriptions, PushSubscribeInput } from '../../../protocol/index.ts';
import type { OwnedFile } from '../../credentials.ts';

const StoredSubscriptions = v.object({
  version: v.literal(1),
  subscriptions: v.pipe(v.array(PushSubscribeInput), v.maxLength(maxPushSubscriptions)),
});

/** Browsers that are subscribed, by the id of the subscription, in `push.json` (0600, atomic). */
export class PushSubscriptions implements OwnedFile {
  readonly #known = new Map<string, PushSubscribeInput>();
  readonly #file: AtomicFile;
  #writing: Promise<void> = Promise.resolve();

  constructor(statePath: string, idOf: (endpoint: string) => string, logger: Logger) {
    this.#file = new AtomicFile(join(statePath, 'push.json'));
    const read = readJson(this.#file.path, StoredSubscriptions);
    if (read.kind === 'ok') for (const each of read.value.subscriptions) this.#known.set(idOf(each.endpoint), each);
    if (read.kind === 'invalid')
      logger.warn('the list of subscribed browsers cannot be used and starts empty; open the inbox in each of them', {
        problem: read.problem,
      });
  }

  get file(): string {
    return this.#file.path;
  }

  get size(): number {
    return this.#known.size;
  }

  get ids(): readonly string[] {
    return [...this.#known.keys()];
  }

  get(id: string): PushSubscribeInput | undefined {
    return this.#known.get(id);
  }

  /** Resolves when the subscription is on disk; one that could not be written does not count. */
  set(id: string, subscription: PushSubscribeInput): Promise<void> {
    return this.#change(id, subscription);
  }

  /** Resolves when it is gone from the disk. False: it was missing. */
  async delete(id: string): Promise<boolean> {
    if (!this.#known.has(id)) return false;
    await this.#change(id, undefined);
    return true;
  }

  /** Resolves when no write is under way, also after a failed one. */
  flush(): Promise<void> {
    return this.#writing;
  }

  async #change(id: string, subscription: PushSubscribeInput | undefined): Promise<void> {
    const before = this.#known.get(id);
    this.#put(id, subscription);
    try {
      await this.save();
    } catch (error) {
      this.#put(id, before);
      throw error;
    }
  }

  #put(id: string, subscription: PushSubscribeInput | undefined): void {
    if (subscription) this.#known.set(id, subscription);
    else this.#known.delete(id);
  }

  /** Resolves when the list is on disk. */
  save(): Promise<void> {
    const content: v.InferOutput<typeof StoredSubscriptions> = {
      version: 1,
      subscriptions: [...this.#known.values()],
    };
    const written = this.#file.write(`${JSON.stringify(content, null, 2)}\n`);
    this.#writing = written.catch(() => {});
    return written;
  }
}
