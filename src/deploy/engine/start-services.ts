import { defaults } from '../defaults.ts';
import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';
import { failureOf, type OperationOptions, passedOn } from './operation.ts';
import type { Engine, RunResult } from './types.ts';

export interface StartOptions extends OperationOptions {
  /** Also those whose settings are the same: a mounted file may have been replaced. */
  readonly recreate: boolean;
}

/**
 * Brings services up with the current settings on the disk. When they are made again, only they are: services that they need
 * run already. Does not wait until they are healthy.
 * @throws DeployError startFailed, portTaken, imageFailed, diskFull, cancelled
 */
export async function startServices(
  engine: Engine,
  stack: StackLayout,
  services: readonly ServiceName[],
  { recreate, ...options }: StartOptions,
): Promise<void> {
  const settings = { ...passedOn(options), timeoutMs: defaults.timeouts.upMs };
  const compose = (...args: string[]): Promise<RunResult> => engine.runCompose(stack, [...args, ...services], settings);
  const what = `Starting ${services.join(', ')}`;
  const flags = recreate ? ['--no-deps', '--force-recreate'] : [];
  const result = await compose('up', '--detach', ...flags);
  if (result.exitCode !== 0) throw failureOf(what, result, 'startFailed');
}
