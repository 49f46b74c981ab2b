import type { Images } from '../../history.ts';
import type { ContentPart } from '../../model.ts';
import type { TurnContext } from './context.ts';

/** Images of a conversation by path, each read once in a turn. */
export class TurnImages {
  readonly #turn: TurnContext;
  readonly #images = new Map<string, ContentPart>();
  readonly #tried = new Set<string>();
  #ofResults: ReadonlyMap<string, readonly ContentPart[]> | undefined;

  constructor(turn: TurnContext) {
    this.#turn = turn;
  }

  /** Images of the stored results of a resumed turn, by item id. */
  ofResults(): ReadonlyMap<string, readonly ContentPart[]> {
    this.#ofResults ??= this.#readResults();
    return this.#ofResults;
  }

  #readResults(): ReadonlyMap<string, readonly ContentPart[]> {
    const { resumed, thread, place, record } = this.#turn;
    const found = new Map<string, readonly ContentPart[]>();
    if (!resumed) return found;
    for (const [callId, { itemId, images }] of thread.store.turnActors.calls(place.threadId, place.turnId)) {
      const result = images && record.items.last('toolResult', (item) => item.callId === callId);
      const made = result && record.items.last('toolCall', (item) => item.callId === callId);
      if (result && made?.id === itemId) found.set(result.id, images);
    }
    return found;
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
