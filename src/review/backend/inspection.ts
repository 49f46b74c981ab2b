import type { AnyActorRef, InspectionEvent } from 'xstate';
import { catalogue, type ReviewRunContext } from '../../../machines/index.ts';
import type { SseSource } from '../../http/index.ts';
import {
  createInspectionSource,
  createRecorder,
  createStatelySource,
  type Projection,
  projections,
  withoutCredentials,
} from '../../inspect/index.ts';
import type { Logger } from '../../log/index.ts';

/** The reviews that this process works on, as a viewer sees them. */
export interface Inspection {
  readonly source: SseSource;
  /** The same for Stately's tools. */
  readonly stately: SseSource;
  readonly viewers: () => number;
  /** Handed to `createActor`: finds out about the actors by itself. */
  readonly inspect: (event: InspectionEvent) => void;
  end(): void;
}

const machine = 'review-run';

const project = (context: ReviewRunContext): Projection => ({
  runId: context.runId,
  resumeAt: context.resumeAt,
  attempt: context.attempt,
  maxAttempts: context.maxAttempts,
  lastError: withoutCredentials(context.failure && `${context.failure.code}: ${context.failure.message}`),
});

/** Records from the start, whether somebody watches or not. */
export function createInspection(logger: Logger): Inspection {
  const onFault = (error: unknown) => logger.error('the inspector has failed; the reviews go on', { error });
  const recorder = createRecorder({ machines: catalogue, projections, onFault });
  const known = new WeakSet<object>();

  /** An actor has its state when its first event comes, which is before it starts. */
  function inspect(event: InspectionEvent): void {
    const actor = event.actorRef as AnyActorRef;
    if (event.type !== '@xstate.event' || event.rootId !== actor.sessionId || known.has(actor)) return;
    known.add(actor);
    const { runId } = actor.getSnapshot().context as ReviewRunContext;
    recorder.observe(actor, { id: `${machine}:${runId}`, parent: null, machine, title: `Review ${runId}`, project });
  }

  return {
    source: createInspectionSource(recorder),
    stately: createStatelySource(recorder, catalogue),
    viewers: () => recorder.viewers,
    inspect(event) {
      try {
        inspect(event);
      } catch (error) {
        onFault(error);
      }
    },
    end: () => recorder.close(),
  };
}
