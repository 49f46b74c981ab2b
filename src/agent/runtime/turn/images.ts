import type { Images } from '../../history.ts';
import type { ContentPart } from '../../model.ts';
import type { TurnHost } from './host.ts';

/** Images of a conversation by path, each read once in a turn. */
export class TurnImages {
  readonly #host: Pick<TurnHost, 'readImage' | 'workspacePath'>;
  readonly #images = new Map<string, ContentPart>();
  readonly #tried = new Set<string>();

  constructor(host: Pick<TurnHost, 'readImage' | 'workspacePath'>) {
    this.#host = host;
  }

  /** Images that could be read. */
  async read(paths: readonly string[]): Promise<Images> {
    for (const path of paths) {
      if (this.#tried.has(path)) continue;
      this.#tried.add(path);
      const image = await this.#host.readImage(path, this.#host.workspacePath);
      if (image) this.#images.set(path, image);
    }
    return this.#images;
  }
}
