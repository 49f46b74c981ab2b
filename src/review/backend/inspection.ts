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

/** Inspection of the review runs of this process. */
export interface Inspection {
  readonly source: SseSource;
  /** The stream in the format of Stately's tools. */
  readonly stately: SseSource;
  readonly viewers: () => number;
  /** Observes each new actor. @param title its pull request */
  readonly inspect: (event: InspectionEvent, title: string) => void;
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

/** Records from the start, with or without viewers. */
export function createInspection(logger: Logger): Inspection {
  const onFault = (error: unknown) => logger.error('the inspector failed; reviews continue', { error });
  const recorder = createRecorder({ machines: catalogue, projections, onFault });
  const known = new WeakSet<object>();

  /** Observes an actor at its first event: it has a snapshot then and has not started yet. */
  function inspect(event: InspectionEvent, title: string): void {
    const actor = event.actorRef as AnyActorRef;
    if (event.type !== '@xstate.event' || event.rootId !== actor.sessionId || known.has(actor)) return;
    known.add(actor);
    const { runId } = actor.getSnapshot().context as ReviewRunContext;
    recorder.observe(actor, { id: `${machine}:${runId}`, parent: null, machine, title, project });
  }

  return {
    source: createInspectionSource(recorder),
    stately: createStatelySource(recorder, catalogue),
    viewers: () => recorder.viewers,
    inspect(event, title) {
      try {
        inspect(event, title);
      } catch (error) {
        onFault(error);
      }
    },
    end: () => recorder.close(),
  };
}
