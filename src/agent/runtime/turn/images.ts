import type { Images } from '../../history.ts';
import type { ContentPart } from '../../model.ts';
import type { TurnContext } from './context.ts';

/** Images of a conversation by path, each read once in a turn. */
export class TurnImages {
  readonly #turn: TurnContext;
  readonly #images = new Map<string, ContentPart>();
  readonly #tried = new Set<string>();

  constructor(turn: TurnContext) {
    this.#turn = turn;
  }

  /** Images that could be read. */
  async read(paths: readonly string[]): Promise<Images> {
    for (const path of paths) {
      if (this.#tried.has(path)) continue;
      this.#tried.add(path);
      const image = await this.#turn.services.readImage(path, this.#turn.thread.workspacePath);
      if (image) this.#images.set(path, image);
    }
    return this.#images;
  }
}
