import type { AnyActorRef } from 'xstate';
import type { Authenticate, SseSource, WebSocketRoute } from '../http/index.ts';
import {
  createInspectionSource,
  createRecorder,
  createStatelySource,
  type InspectionSource,
  type Observation,
  projections,
  type Recorder,
  statelySocket,
} from '../inspect/index.ts';
import type { Logger } from '../log/index.ts';

/** An actor that can be watched. */
export interface Observable {
  /** Unique while it lives. */
  readonly id: string;
  /** Name of its chart. */
  readonly machine: string;
  readonly title: string;
  /** Id of the actor it is shown under; absent: of none. */
  readonly parent?: string;
  /** Transitions of earlier processes. */
  readonly past?: Observation['past'];
}

/**
 * The actors of this process for their viewers. Every turn is recorded from its first step, bounded and at a
 * microsecond or two each, because questions about a state come after it was reached. The charts themselves
 * are loaded for the first viewer.
 */
export class Observatory {
  readonly #logger: Logger;
  readonly recorder: Recorder;
  #source: Promise<InspectionSource> | undefined;
  #stately: Promise<SseSource> | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
    this.recorder = createRecorder({
      projections,
      onFault: (error) => logger.error('the inspector has failed; the actors continue', { error }),
    });
  }

  /** Adds an actor before it starts; notices its end automatically. Never throws: no actor depends on its inspection. */
  readonly add = (actor: AnyActorRef, observable: Observable): void => {
    try {
      this.recorder.observe(actor, { parent: null, ...observable });
    } catch (error) {
      this.#logger.error('an actor cannot be inspected', { actor: observable.id, error });
    }
  };

  /** Latest transitions of an actor, after a position. */
  readonly stepsOf = (id: string, after: number) => this.recorder.history(id, after);

  /** The stream for viewers. */
  source(): Promise<InspectionSource> {
    this.#source ??= Promise.resolve(createInspectionSource(this.recorder));
    return this.#source;
  }

  /** Returns the event source for Stately's tools. */
  stately(): Promise<SseSource> {
    this.#stately ??= this.#createStately();
    return this.#stately;
  }

  /** A WebSocket for them. */
  statelySocket(path: string, auth: Authenticate<unknown>): WebSocketRoute {
    const onFault = (error: unknown) => this.#logger.error('an inspection stream has failed', { error });
    return statelySocket({ path, auth, recorder: async () => this.recorder, machines: loadMachines, onFault });
  }

  close(): void {
    this.recorder.close();
  }

  async #createStately(): Promise<SseSource> {
    return createStatelySource(this.recorder, await loadMachines());
  }
}

/** Every machine by the name of its chart. */
async function loadMachines() {
  const { catalogue } = await import('../../machines/catalogue.ts');
  return catalogue;
}
