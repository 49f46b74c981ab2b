import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { createContext, Script } from 'node:vm';
import { decodeText, sniff, sniffBytes } from './content.ts';
import { type OpenFile, openFile } from './handles.ts';
import {
  type FoundFiles,
  type GrepQuery,
  type SearchEnd,
  type SearchEngine,
  SearchError,
  type SearchScope,
} from './search.ts';
import { walk } from './walk.ts';

/** Longest time one file may hold up the whole server. */
const maxFileMs = 500;

/**
 * Searches without ripgrep, for platforms it is not made for. Regular expressions are those of JavaScript, a little different
 * from ripgrep's, and can be slow: one that takes too long on a file is an error.
 */
export function createScriptEngine(): SearchEngine {
  return {
    async grepTree(scope, query) {
      const regex = compile(query);
      const isLate = deadline(scope);
      for await (const { path } of walk(scope)) {
        if (isLate()) return 'timedOut';
        if (!query.include(path)) continue;
        // A file that cannot be opened, or was exchanged just now, is left out.
        const file = await openFile(join(scope.directory.path, path)).catch(() => undefined);
        if (!file) continue;
        try {
          const isSmall = Number(file.stats.size) <= scope.maxFileBytes;
          if (isSmall && !(await tellMatches(file, path, regex, query))) return 'stopped';
        } finally {
          await file.close();
        }
      }
      return 'complete';
    },
    async grepFile(file, { signal }, query): Promise<SearchEnd> {
      signal.throwIfAborted();
      return (await tellMatches(file, '', compile(query), query)) ? 'complete' : 'stopped';
    },
    findFiles,
  };
}

async function findFiles(scope: SearchScope, test: (path: string) => boolean, max: number): Promise<FoundFiles> {
  const isLate = deadline(scope);
  const found: { path: string; mtimeMs: number }[] = [];
  let end: SearchEnd = 'complete';
  for await (const { path, directory, name } of walk(scope)) {
    if (isLate()) {
      end = 'timedOut';
      break;
    }
    if (!test(path)) continue;
    const stats = await lstat(directory.at(name)).catch(() => undefined);
    if (stats?.isFile()) found.push({ path, mtimeMs: stats.mtimeMs });
  }
  found.sort((a, b) => b.mtimeMs - a.mtimeMs);
  return { paths: found.slice(0, max).map(({ path }) => path), total: found.length, end };
}

/** @returns whether the time is over; throws when the search was aborted */
function deadline({ signal, timeoutMs }: SearchScope): () => boolean {
  const end = performance.now() + timeoutMs;
  return () => {
    signal.throwIfAborted();
    return performance.now() > end;
  };
}

/** @throws SearchError */
function compile({ pattern, ignoreCase }: GrepQuery): RegExp {
  const [, inline = '', rest = pattern] = /^\(\?([ims]+)\)(.*)$/s.exec(pattern) ?? [];
  const flags = [...new Set((ignoreCase ? 'i' : '') + inline)].join('');
  // With `u` for classes like \p{L}; without it for what only then is allowed.
  const failures: unknown[] = [];
  for (const mode of ['u', '']) {
    try {
      return new RegExp(rest, flags + mode);
    } catch (error) {
      failures.push(error);
    }
  }
  throw new SearchError((failures.at(-1) as SyntaxError).message);
}

/** @returns whether to continue the search */
async function tellMatches(file: OpenFile, path: string, regex: RegExp, query: GrepQuery): Promise<boolean> {
  const bytes = await file.handle.readFile();
  const sniffed = sniff(bytes.subarray(0, sniffBytes));
  if (sniffed.kind !== 'text' || (sniffed.bomBytes !== 2 && bytes.includes(0))) return true;
  for (const match of matchesIn(decodeText(bytes, sniffed), regex, query.maxPerFile, path)) {
    if (!query.onMatch({ path, ...match })) return false;
  }
  return true;
}

interface Match {
  readonly line: number;
  readonly text: string;
  readonly column: number;
}

function matchesIn(text: string, regex: RegExp, max: number, path: string): Match[] {
  const found: Match[] = [];
  const search = () => {
    let line = 0;
    for (let start = 0; start < text.length && found.length < max; ) {
      const feed = text.indexOf('\n', start);
      const end = feed === -1 ? text.length : feed;
      const content = text.slice(start, text[end - 1] === '\r' && end > start ? end - 1 : end);
      line += 1;
      const column = content.search(regex);
      if (column !== -1) found.push({ line, text: content, column });
      start = end + 1;
    }
  };
  if (!endsInTime(search)) {
    throw new SearchError(`the pattern takes too long on ${path || 'this file'}; make it simpler`);
  }
  return found;
}

const script = new Script('work()');

/** Runs `work`, which can be stopped even within a regular expression: that is what the machinery is for. */
function endsInTime(work: () => void): boolean {
  try {
    script.runInContext(createContext({ work }), { timeout: maxFileMs });
    return true;
  } catch (error) {
    // An error of the other context is no `Error` of ours.
    if ((error as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return false;
    throw error;
  }
}
