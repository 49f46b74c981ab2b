import { defaults } from '../protocol/index.ts';
import { chatError } from './errors.ts';

/** One session takes one turn after the other: who comes while another is served waits, in the order of arrival. */
export class Lines {
  /** By session: who waits. An entry without anybody means that somebody is served. */
  readonly #waiting = new Map<string, (() => void)[]>();

  /**
   * Resolves when it is the caller's turn, with what lets the next one in. @throws HttpError 429 when too many wait;
   * rejects with the reason of `signal` when that aborts first
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
