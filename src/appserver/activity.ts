import type { AnyActorRef } from 'xstate';
import type { ThreadEvent } from '../agent/index.ts';
import type { Observable } from './observatory.ts';

/** Time since the last use of this server, for the idle stop. Probes do not count. */
export class Activity {
  readonly #isBusy: () => boolean;
  #lastAt = performance.now();

  /** @param isBusy whether something runs now that was asked for earlier */
  constructor(isBusy: () => boolean) {
    this.#isBusy = isBusy;
  }

  readonly note = (): void => {
    this.#lastAt = performance.now();
  };

  /** Milliseconds since the last use, also while a turn runs. */
  get sinceUseMs(): number {
    return performance.now() - this.#lastAt;
  }

  /** Milliseconds since the last use; 0 while something runs. */
  get idleMs(): number {
    return this.#isBusy() ? 0 : performance.now() - this.#lastAt;
  }
}

/**
 * The sessions whose turn runs now. The feed reports stored threads, from the moment in which the turn is begun;
 * the turn's actor reports those in memory, which the feed omits.
 */
export class ActiveSessions {
  readonly #running = new Set<string>();
  readonly #acting = new Map<AnyActorRef, string>();

  /** Called with the actor of every turn before it starts. */
  readonly observe = (actor: AnyActorRef, { id, machine }: Observable): void => {
    if (machine !== 'turn') return;
    this.#acting.set(actor, id.slice(0, id.lastIndexOf('/')));
    const gone = () => this.#acting.delete(actor);
    actor.subscribe({ complete: gone, error: gone });
  };

  /** Called with every broadcast of the feed. */
  readonly hear = ({ method, params }: ThreadEvent): void => {
    if (method !== 'thread/runtimeChanged') return;
    if (params.runtime.running) this.#running.add(params.threadId);
    else this.#running.delete(params.threadId);
  };

  has(sessionKey: string): boolean {
    return this.#running.has(sessionKey) || [...this.#acting.values()].includes(sessionKey);
  }

  all(): ReadonlySet<string> {
    return new Set([...this.#running, ...this.#acting.values()]);
  }
}
