import { fromPromise } from 'xstate';
import type { OfWorkspace } from '../../../machines/index.ts';
import { readyContainer } from '../container.ts';
import type { FactsOf, HubServices } from '../facts.ts';

/** The `readyPlace` actor: checks the engine before anything of a planned container is created. */
export function readyPlace(hub: HubServices, factsOf: FactsOf) {
  return fromPromise<void, OfWorkspace>(({ input }) => readyContainer(hub, factsOf(input.workspacePath)));
}
