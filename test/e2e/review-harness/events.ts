import type { ReviewEvent } from '../../../src/protocol/index.ts';

/** Whether an event may have changed the state that a test waits for. */
export type IsNews = (event: ReviewEvent) => boolean;

/** News of runs and of their drafts. */
export const ofRuns: IsNews = ({ kind }) => kind === 'run.changed' || kind === 'draft.changed';
/** Events of writes to the forge. */
export const ofWrites: IsNews = ({ kind }) => kind === 'write.changed';

/** The backend's event stream, followed through every restart of the backend: each event once and in order. */
export class EventReader {
  readonly events: ReviewEvent[] = [];
  readonly #url: string;
  readonly #token: () => string;
  readonly #listeners = new Set<(event?: ReviewEvent) => void>();
  readonly #stop = new AbortController();
  #last = 0;

  constructor(url: string, token: () => string) {
    this.#url = url;
    this.#token = token;
    void this.#follow();
  }

  /** Calls `listener` with each event, and without one when the stream is open again: the backend can be asked then. */
  on(listener: (event?: ReviewEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#stop.abort();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      // A backend that is down is tried again soon.
      await this.#read(signal).catch(() => new Promise((resolve) => setTimeout(resolve, 50)));
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const headers = { authorization: `Bearer ${this.#token()}`, 'last-event-id': String(this.#last) };
    const response = await fetch(`${this.#url}/api/v1/events`, { headers, signal });
    if (!response.ok) throw new Error(`${response.status}`);
    for (const listener of this.#listeners) listener();
    let text = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (text + chunk).split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) this.#take(block);
    }
    throw new Error('the stream has ended');
  }

  #take(block: string): void {
    const id = Number(/^id: (\d+)$/m.exec(block)?.[1] ?? 0);
    if (id > this.#last) this.#last = id;
    const data = /^data: (.*)$/m.exec(block)?.[1];
    if (data === undefined) return;
    const event = JSON.parse(data) as ReviewEvent;
    this.events.push(event);
    for (const listener of this.#listeners) listener(event);
  }
}
