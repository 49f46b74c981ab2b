import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ModelSettings, preloadProviders } from './providers/index.ts';
import { loadTurnMachine } from './runtime/index.ts';
import { toolParts } from './tools/index.ts';

const parts: readonly (() => Promise<unknown>)[] = [loadTurnMachine, () => import('web-tree-sitter'), ...toolParts];

/**
 * Loads the parts that turns otherwise load on first use, one in each turn of the event loop, so that an upgrade in place does not
 * take them away from a running server. The next use reports a part that cannot be loaded.
 *
 * @param settings of the providers that turns use; undefined: an external agent does the turns
 */
export async function preloadTurnParts(settings: ModelSettings | undefined): Promise<void> {
  for (const load of [...parts, ...(settings ? preloadProviders(settings) : [])]) {
    await nextTurn();
    await load().catch(() => undefined);
  }
}
