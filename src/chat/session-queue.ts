import { defaults } from '../protocol/index.ts';
import { chatError } from './errors.ts';

/** Serves the requests of a session one after the other, in the order of arrival. */
export class SessionQueue {
  /** Waiting requests by session. An empty entry: one request is being served. */
  readonly #waiting = new Map<string, (() => void)[]>();

  /**
   * Waits until the session is free. Resolves with a function that lets the next request in. @throws HttpError 429 when too
   * many wait; rejects with the reason of `signal` when that aborts first
   */
  async enter(sessionId: string, signal: AbortSignal): Promise<() => void> {
    const line = this.#waiting.get(sessionId);
    if (!line) {
      this.#waiting.set(sessionId, []);
      return () => this.#leave(sessionId);
    }
    if (line.length >= defaults.chat.waitingPerSession) {
      throw chatError('sessionBusy', `${line.length} requests wait for session ${sessionId} already.`);
    }
    await new Promise<void>((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = () => {
        line.splice(line.indexOf(enter), 1);
        reject(signal.reason);
      };
      line.push(enter);
      signal.addEventListener('abort', giveUp, { once: true });
    });
    return () => this.#leave(sessionId);
  }

  #leave(sessionId: string): void {
    const next = this.#waiting.get(sessionId)?.shift();
    if (next) next();
    else this.#waiting.delete(sessionId);
  }
}
