import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { StepEffects } from '../apply/index.ts';
import {
  awaitHealthy,
  checkComposition,
  checkGateway,
  checkPorts,
  type Engine,
  pullImages,
  removeServices,
  restoreState,
  saveState,
  serviceStates,
  startServices,
} from '../engine/index.ts';
import { cloneRepository, findGit } from '../git/index.ts';
import { giveTo, type StackLayout } from '../stack/index.ts';
import type { Session } from './session.ts';

const stateFile = (directory: string): string => join(directory, 'state.tar');

/** Step effects on a container engine, git and the file system. */
export function effectsOf(layout: StackLayout, engine: () => Promise<Engine>, session: Session): StepEffects {
  const { hasTerminal } = session;
  const at = (path: string): string => join(layout.directory, path);
  return {
    async running(options) {
      const states = await serviceStates(await engine(), layout, options);
      return states.filter(({ state }) => state === 'running').map(({ service }) => service);
    },
    async clone({ repository, url, path }, options) {
      const git = await findGit(session);
      const state = await cloneRepository(git, { repository, url, path: at(path) }, { ...options, hasTerminal });
      return state === 'cloned' ? 'done' : 'kept';
    },
    undoClone: ({ path }) => rm(at(path), { recursive: true, force: true }),
    giveTo: ({ path, uid, gid }, { signal }) => giveTo(at(path), uid, gid, signal),
    checkPorts: async (step, options) => checkPorts(await engine(), layout, step, options),
    async pullImages({ services }, options) {
      await pullImages(await engine(), layout, services, options);
    },
    checkComposition: async (options) => checkComposition(await engine(), layout, options),
    checkGateway: async (options) => checkGateway(await engine(), layout, options),
    async saveState(into, options) {
      await saveState(await engine(), layout, stateFile(into), options);
    },
    restoreState: async (from, options) => restoreState(await engine(), layout, stateFile(from), options),
    start: async ({ services, recreate }, options) =>
      startServices(await engine(), layout, services, { recreate, ...options }),
    async removeServices({ services }, options) {
      await removeServices(await engine(), layout, services, options);
    },
    async awaitHealthy({ services }, options) {
      await awaitHealthy(await engine(), layout, services, options);
    },
  };
}
