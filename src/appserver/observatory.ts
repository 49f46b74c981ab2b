import type { AnyActorRef } from 'xstate';
import type { SseSource } from '../http/index.ts';
import type { Logger } from '../log/index.ts';

/** An actor that somebody may want to watch. */
export interface Observable {
  /** Unique while it lives. */
  readonly id: string;
  readonly machine: 'turn' | 'mcp-server';
  readonly title: string;
}

/**
 * The actors of this process for whoever watches them. They are only counted while nobody does: a turn must not pay for an
 * inspector that is not there, and the recorder is not even loaded.
 */
export class Observatory {
  readonly #logger: Logger;
  readonly #living = new Map<AnyActorRef, Observable>();
  #watching: Promise<SseSource> | undefined;
  #observe: ((actor: AnyActorRef, observable: Observable) => void) | undefined;
  #end: (() => void) | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Called with an actor before it starts. Its end is noticed by itself. */
  readonly add = (actor: AnyActorRef, observable: Observable): void => {
    this.#living.set(actor, observable);
    const gone = () => this.#living.delete(actor);
    actor.subscribe({ complete: gone, error: gone });
    this.#observe?.(actor, observable);
  };

  /** The stream for viewers; watching begins with the first who asks. */
  source(): Promise<SseSource> {
    this.#watching ??= this.#watch();
    return this.#watching;
  }

  close(): void {
    this.#end?.();
  }

  async #watch(): Promise<SseSource> {
    const [{ createInspectionSource, createRecorder, projections }, { catalogue }] = await Promise.all([
      import('../inspect/index.ts'),
      import('../../machines/index.ts'),
    ]);
    const recorder = createRecorder({
      machines: catalogue,
      projections,
      onFault: (error) => this.#logger.error('the inspector has failed; the actors go on', { error }),
    });
    this.#observe = (actor, observable) => void recorder.observe(actor, { ...observable, parent: null });
    this.#end = () => recorder.close();
    for (const [actor, observable] of this.#living) this.#observe(actor, observable);
    return createInspectionSource(recorder);
  }
}
