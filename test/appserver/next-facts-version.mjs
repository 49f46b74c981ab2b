/** Preloaded module: gives the program the next version of the facts of turns. */
import { registerHooks } from 'node:module';

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith('/src/agent/runtime/turn/facts.ts')) return loaded;
    const source = String(loaded.source).replace('factsVersion = 1;', 'factsVersion = 2;');
    if (source === String(loaded.source)) throw new Error(`${url} has no version 1`);
    return { ...loaded, source };
  },
});
