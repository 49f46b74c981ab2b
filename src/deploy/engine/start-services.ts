import { defaults } from '../defaults.ts';
import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';
import { failureOf, must, type OperationOptions, passedOn } from './operation.ts';
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
  const isV1 = engine.compose.kind === 'v1';
  const remove = () => must(what, compose('rm', '--stop', '--force'), 'startFailed');
  // v1 cannot replace a container on an engine of today (KeyError 'ContainerConfig'), but it can create a missing one.
  if (isV1 && recreate) await remove();
  const flags = recreate ? ['--no-deps', ...(isV1 ? [] : ['--force-recreate'])] : [];
  const up = (): Promise<RunResult> => compose('up', '--detach', ...flags);
  const first = await up();
  const isThatBug = isV1 && first.exitCode !== 0 && `${first.stdout}${first.stderr}`.includes('ContainerConfig');
  if (isThatBug) await remove();
  const result = isThatBug ? await up() : first;
  if (result.exitCode !== 0) throw failureOf(what, result, 'startFailed');
}
