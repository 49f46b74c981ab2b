import type { AnyActorRef } from 'xstate';
import { catalogue } from '../../machines/index.ts';
import type { SseSource } from '../http/index.ts';
import { createInspectionSource, createRecorder, projections } from '../inspect/index.ts';
import type { Logger } from '../log/index.ts';

/** The Hub's actors as a viewer sees them: the Hub on top, every workspace below it (DESIGN §3). */
export interface Inspection {
  readonly source: SseSource;
  readonly viewers: () => number;
  observeHub(actor: AnyActorRef): void;
  /** Called before the actor starts. Its end is noticed by itself. */
  observeWorkspace(actor: AnyActorRef, path: string): void;
  end(): void;
}

const hubId = 'hub';

export function createInspection(logger: Logger): Inspection {
  const recorder = createRecorder({
    machines: catalogue,
    projections,
    onFault: (error) => logger.error('the inspector has failed; the actors go on', { error }),
  });
  return {
    source: createInspectionSource(recorder),
    viewers: () => recorder.viewers,
    observeHub: (actor) => recorder.observe(actor, { id: hubId, parent: null, machine: 'hub', title: 'Hub' }),
    observeWorkspace: (actor, path) =>
      recorder.observe(actor, { id: path, parent: hubId, machine: 'agent-server', title: path }),
    end: () => recorder.close(),
  };
}
