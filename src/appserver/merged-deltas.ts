import type { ThreadEvent } from '../agent/index.ts';

/** An event that only appends to the text of an item. */
export type Delta = Extract<
  ThreadEvent,
  { readonly method: 'item/agentMessage/delta' | 'item/reasoning/delta' | 'item/commandExecution/outputDelta' }
>;

const methods: ReadonlySet<string> = new Set<Delta['method']>([
  'item/agentMessage/delta',
  'item/reasoning/delta',
  'item/commandExecution/outputDelta',
]);

export const isDelta = (event: ThreadEvent): event is Delta => methods.has(event.method);

/**
 * Merges the deltas of one item that follow each other within `windowMs` into one event. The first after a pause is sent at once.
 * The order of events is preserved as long as `flush` is called before anything else is sent.
 */
export class MergedDeltas {
  readonly #send: (event: Delta) => void;
  readonly #windowMs: number;
  #window: NodeJS.Timeout | undefined;
  #first: Delta | undefined;
  #pieces: string[] = [];

  constructor(send: (event: Delta) => void, windowMs: number) {
    this.#send = send;
    this.#windowMs = windowMs;
  }

  add(event: Delta): void {
    if (this.#window === undefined) {
      this.#send(event);
      this.#open();
      return;
    }
    const first = this.#first;
    if (first && (first.method !== event.method || first.params.itemId !== event.params.itemId)) this.flush();
    this.#first ??= event;
    this.#pieces.push(event.params.delta);
  }

  /** Sends the held deltas. */
  flush(): void {
    const first = this.#first;
    if (!first) return;
    const delta = this.#pieces.join('');
    this.#first = undefined;
    this.#pieces = [];
    this.#send({ ...first, params: { ...first.params, delta } });
  }

  /** Drops the held deltas. */
  close(): void {
    clearTimeout(this.#window);
    this.#window = undefined;
    this.#first = undefined;
    this.#pieces = [];
  }

  #open(): void {
    this.#window = setTimeout(() => {
      this.#window = undefined;
      if (!this.#first) return;
      this.flush();
      this.#open();
    }, this.#windowMs);
  }
}
