import type { CallArguments, CallName, CallResult, Engines, TreePlace } from './calls.ts';
import { Engine } from './engine.ts';
import type { EngineOptions } from './engine-options.ts';
import { runGitIn } from './git.ts';

/** Engines in this thread, which they block. */
export class LocalEngines implements Engines {
  readonly #engines = new Map<string, Engine>();
  readonly #onStep: EngineOptions['onStep'];

  /** @param onStep for tests */
  constructor(onStep?: EngineOptions['onStep']) {
    this.#onStep = onStep;
  }

  async call<N extends CallName>(place: TreePlace, name: N, args: CallArguments<N>): Promise<CallResult<N>> {
    const engine = this.#engineOf(place);
    const method = engine[name] as (...args: CallArguments<N>) => CallResult<N> | Promise<CallResult<N>>;
    return await Reflect.apply(method, engine, args);
  }

  async release(treeId: string): Promise<void> {
    this.#engines.get(treeId)?.close();
    this.#engines.delete(treeId);
  }

  #engineOf({ treeId, root, directory, limits, ownDirectories, gitEnvironment }: TreePlace): Engine {
    const known = this.#engines.get(treeId);
    if (known) return known;
    const engine = new Engine({
      ...{ root, directory, limits, ownDirectories, mergeEnvironment: gitEnvironment, onStep: this.#onStep },
      git: gitEnvironment && runGitIn(root, gitEnvironment),
    });
    this.#engines.set(treeId, engine);
    return engine;
  }
}
