import { createRipgrepEngine, RipgrepUnavailableError } from './ripgrep.ts';
import { createScriptEngine } from './script-engine.ts';
import type { SearchEngine } from './search.ts';

/** ripgrep, and our own code where it cannot be started. */
export function createSearchEngine(ripgrep: SearchEngine = createRipgrepEngine()): SearchEngine {
  const script = createScriptEngine();
  async function either<T>(search: (engine: SearchEngine) => Promise<T>): Promise<T> {
    try {
      return await search(ripgrep);
    } catch (error) {
      if (!(error instanceof RipgrepUnavailableError)) throw error;
      return search(script);
    }
  }
  return {
    grepTree: (scope, query) => either((engine) => engine.grepTree(scope, query)),
    grepFile: (file, scope, query) => either((engine) => engine.grepFile(file, scope, query)),
    findFiles: (scope, test, max) => either((engine) => engine.findFiles(scope, test, max)),
  };
}
