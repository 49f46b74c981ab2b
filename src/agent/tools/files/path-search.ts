import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fit, visible } from '../../../lib/index.ts';
import { createPathFilter, type PathRules } from '../paths.ts';
import { openDirectory } from './handles.ts';
import { type FoundFiles, forbiddenBelow, type SearchEngine, skippedNames } from './search.ts';
import { createSearchEngine } from './search-engine.ts';
import { limits } from './settings.ts';

/** Paths that are looked through, the last changed ones. */
const maxPaths = 50_000;
/** Time in milliseconds that one reading of the tree serves: typing causes several searches a second. */
const servesMs = 5_000;
/** Paths that are scored before other work gets its turn: a millisecond or two. */
const pathsPerSlice = 1_000;

export interface FittingPaths {
  /** Relative to the workspace, with `/`; the best first. */
  readonly paths: readonly string[];
  /** False when files were left out: there are too many, or the time was over. */
  readonly isComplete: boolean;
}

/** Finds files of one workspace by the typed parts of their paths. */
export interface PathSearch {
  /** @throws SearchError; errors of the system */
  find(query: string, limit: number): Promise<FittingPaths>;
  /** Ends the readings that run; they reject. */
  close(): void;
}

export interface PathSearchOptions {
  /** Real path. */
  readonly workspacePath: string;
  readonly rules: PathRules;
  readonly engine?: SearchEngine;
}

/** Skips the same paths as `FindFiles`: `.gitignore`, histories, dependencies, blocked and protected paths, links. */
export function createPathSearch({
  workspacePath,
  rules,
  engine = createSearchEngine(),
}: PathSearchOptions): PathSearch {
  const closing = new AbortController();
  let tree: Promise<FoundFiles> | undefined;

  async function read(): Promise<FoundFiles> {
    const skippedPaths = await forbiddenBelow(workspacePath, workspacePath, rules);
    const directory = await openDirectory(workspacePath);
    const bounds = { maxFileBytes: Number.MAX_SAFE_INTEGER, signal: closing.signal, timeoutMs: limits.searchMs };
    const scope = { directory, skippedNames, skippedPaths, ...bounds };
    return engine.findFiles(scope, isTypable, maxPaths).finally(() => directory.close());
  }

  function shared(): Promise<FoundFiles> {
    if (tree) return tree;
    const reading = read();
    const forget = () => {
      if (tree === reading) tree = undefined;
    };
    tree = reading;
    reading.then(() => setTimeout(forget, servesMs).unref(), forget);
    return reading;
  }

  return {
    async find(query, limit) {
      const found = await shared();
      const isVisible = await createPathFilter(workspacePath, rules);
      const shown: string[] = [];
      // Twice as many: some may be gone or hidden since the tree was read.
      for (const path of await bestOf(found.paths, query, 2 * limit)) {
        if (shown.length < limit && (await isVisible(join(workspacePath, path)))) shown.push(path);
      }
      return { paths: shown, isComplete: found.end === 'complete' && found.total === found.paths.length };
    },
    close: () => closing.abort(),
  };
}

/** Names with quotes or invisible characters cannot be written in a mention, and could pass for another one. */
const isTypable = (path: string): boolean => !path.includes('"') && visible(path) === path && !path.includes('\n');

interface Scored {
  readonly path: string;
  readonly score: number;
}

/** The best `limit` of them; without a query, or at the same score, the first ones. */
async function bestOf(all: readonly string[], query: string, limit: number): Promise<readonly string[]> {
  if (query === '') return all.slice(0, limit);
  const best: Scored[] = [];
  for (let from = 0; from < all.length; from += pathsPerSlice) {
    if (from > 0) await setImmediate();
    for (const path of all.slice(from, from + pathsPerSlice)) {
      const score = fit(query, path);
      if (score !== null) insert(best, { path, score }, limit);
    }
  }
  return best.map(({ path }) => path);
}

function insert(best: Scored[], scored: Scored, limit: number): void {
  const last = best.at(-1);
  if (best.length === limit && last && last.score >= scored.score) return;
  const at = best.findIndex(({ score }) => score < scored.score);
  best.splice(at < 0 ? best.length : at, 0, scored);
  if (best.length > limit) best.pop();
}
