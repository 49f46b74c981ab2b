import { defaults } from '../defaults.ts';
import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';
import { must, type OperationOptions, quietly } from './operation.ts';
import { containersOf, serviceOf } from './service-states.ts';
import type { Engine } from './types.ts';

/**
 * Stops and removes the containers of services; their volumes stay. By the engine, not by the composition tool, because the
 * composition that knew them may be gone already.
 * @returns how many there were
 * @throws DeployError engineFailed, cancelled
 */
export async function removeServices(
  engine: Engine,
  stack: StackLayout,
  services: readonly ServiceName[],
  options: OperationOptions = {},
): Promise<number> {
  const isMeant = (service: ServiceName | null): boolean => service !== null && services.includes(service);
  const all = await containersOf(engine, stack, options);
  const ids = all.filter((container) => isMeant(serviceOf(container))).map(({ Id }) => Id);
  if (ids.length === 0) return 0;
  const settings = { ...quietly(options), timeoutMs: defaults.timeouts.stopMs };
  const what = `Removing ${services.join(', ')}`;
  await must(what, engine.run(['stop', ...ids], settings), 'engineFailed');
  await must(what, engine.run(['rm', '--force', ...ids], settings), 'engineFailed');
  return ids.length;
}
