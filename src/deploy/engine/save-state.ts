import { open, rename, rm } from 'node:fs/promises';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import { onFile } from '../file-error.ts';
import { containerPaths } from '../files/index.ts';
import type { StackLayout } from '../layout.ts';
import { readProject } from './compose-project.ts';
import { must, type OperationOptions, quietly } from './operation.ts';
import { type ContainerFacts, containersOf, serviceOf } from './service-states.ts';
import type { Engine } from './types.ts';

/**
 * Copies everything the backend keeps (database, tokens) into a new file, a tar, 0600. The backend is stopped for it and stays
 * stopped: this makes the copy complete, and the backend accepts nothing that a later `restoreState` would lose. A
 * file that exists is a whole one.
 * @returns the size of the file in bytes; null when there is no backend yet, and so nothing to keep
 * @throws DeployError fileFailed, diskFull, engineFailed, cancelled. Then there is no file, and a backend that ran runs again
 */
export async function saveState(
  engine: Engine,
  stack: StackLayout,
  file: string,
  options: OperationOptions = {},
): Promise<number | null> {
  const backend = await backendOf(engine, stack, options);
  if (backend === undefined) return null;
  const settings = { ...quietly(options, readProject(stack).secrets), timeoutMs: defaults.timeouts.stopMs };
  try {
    await must('Stopping the backend', engine.run(['stop', backend.Id], settings), 'engineFailed');
    return await copyOut(engine, backend, file, options);
  } catch (error) {
    await rm(`${file}.part`, { force: true });
    if (backend.State.Status === 'running') {
      // Also after a cancellation: the backend must not stay stopped.
      const { signal: _signal, ...always } = settings;
      await must('Starting the backend again', engine.run(['start', backend.Id], always), 'engineFailed');
    }
    throw error;
  }
}

/**
 * Puts back the copy of `saveState` and removes all else: a newer write-ahead log would destroy an older database.
 * The backend's container is made again, from the current composition and image, and is not started. Can be done again when it was
 * interrupted.
 * @throws DeployError fileFailed, engineFailed, imageFailed, cancelled
 */
export async function restoreState(
  engine: Engine,
  stack: StackLayout,
  file: string,
  options: OperationOptions = {},
): Promise<void> {
  const tar = await open(file, 'r').catch(onFile(file));
  try {
    const settings = { ...quietly(options), timeoutMs: defaults.timeouts.upMs };
    const what = 'Putting the state of the backend back';
    const remove = () =>
      must(what, engine.runCompose(stack, ['rm', '--stop', '--force', 'backend'], settings), 'engineFailed');
    const create = async (): Promise<ContainerFacts> => {
      await must(
        what,
        engine.runCompose(stack, ['up', '--no-start', '--no-deps', 'backend'], settings),
        'engineFailed',
      );
      const made = await backendOf(engine, stack, options);
      if (made === undefined) throw new DeployError('engineFailed', `${what} failed: there is no container of it.`);
      return made;
    };
    await remove();
    const volume = volumeOf(await create());
    await remove();
    await must(what, engine.run(['volume', 'rm', '--force', volume], settings), 'engineFailed');
    const backend = await create();
    const copy = { ...settings, inputFile: tar.fd };
    await must(what, engine.run(['cp', '-', `${backend.Id}:${containerPaths.data}`], copy), 'engineFailed');
  } finally {
    await tar.close();
  }
}

/** The engine copies: it may read everything, keeps owners and modes, and needs no program in the image. */
async function copyOut(
  engine: Engine,
  { Id }: ContainerFacts,
  file: string,
  options: OperationOptions,
): Promise<number> {
  const part = `${file}.part`;
  await rm(part, { force: true });
  const tar = await open(part, 'wx', 0o600).catch(onFile(part));
  try {
    const settings = { ...quietly(options), timeoutMs: defaults.timeouts.upMs, outputFile: tar.fd };
    const copied = engine.run(['cp', `${Id}:${containerPaths.data}/.`, '-'], settings);
    await must('Copying the state of the backend', copied, 'engineFailed');
    await tar.sync();
    const { size } = await tar.stat();
    await rename(part, file).catch(onFile(file));
    return size;
  } finally {
    await tar.close();
  }
}

async function backendOf(
  engine: Engine,
  stack: StackLayout,
  options: OperationOptions,
): Promise<ContainerFacts | undefined> {
  return (await containersOf(engine, stack, options)).find((container) => serviceOf(container) === 'backend');
}

function volumeOf({ Mounts }: ContainerFacts): string {
  const name = Mounts.find(({ Type, Destination }) => Type === 'volume' && Destination === containerPaths.data)?.Name;
  if (name !== undefined) return name;
  throw new DeployError(
    'engineFailed',
    `The backend has no volume at ${containerPaths.data}.`,
    'Run: oratorio server doctor',
  );
}
