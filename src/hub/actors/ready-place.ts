import { fromPromise } from 'xstate';
import type { OfWorkspace } from '../../../machines/index.ts';
import { readyContainer } from '../container.ts';
import type { FactsOf, HubServices } from '../facts.ts';

/** The `readyPlace` actor: asks the engine of a planned container before anything of it is made. */
export function readyPlace(hub: HubServices, factsOf: FactsOf) {
  return fromPromise<void, OfWorkspace>(({ input }) => readyContainer(hub, factsOf(input.workspacePath)));
}
