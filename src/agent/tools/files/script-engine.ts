import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { createContext, Script } from 'node:vm';
import { decodeText, sniff, sniffBytes } from './content.ts';
import { type OpenFile, openFile } from './handles.ts';
import {
  type FoundFiles,
  type GrepQuery,
  type LineMatch,
  type SearchEnd,
  type SearchEngine,
  SearchError,
  type SearchScope,
} from './search.ts';
import { walk } from './walk.ts';

/** Longest time one file may hold up the whole server. */
const maxFileMs = 500;

/**
 * Searches without ripgrep, for platforms it is not made for. Regular expressions have JavaScript's syntax, a little different
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
          if (isSmall && !(await reportMatches(file, path, regex, query))) return 'stopped';
        } finally {
          await file.close();
        }
      }
      return 'complete';
    },
    async grepFile(file, { signal }, query): Promise<SearchEnd> {
      signal.throwIfAborted();
      return (await reportMatches(file, '', compile(query), query)) ? 'complete' : 'stopped';
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
    // A name that is not UTF-8 cannot be looked up by its decoded form.
    if (stats?.isFile() || path.includes('\ufffd')) found.push({ path, mtimeMs: stats?.mtimeMs ?? 0 });
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
function compile({ pattern, ignoreCase, multiline }: GrepQuery): RegExp {
  const [, inline = '', rest = pattern] = /^\(\?([ims]+)\)(.*)$/s.exec(pattern) ?? [];
  const flags = [...new Set((ignoreCase ? 'i' : '') + (multiline ? 'gm' : '') + inline)].join('');
  // With `u` for classes like \p{L}; without it for syntax that `u` forbids.
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
async function reportMatches(file: OpenFile, path: string, regex: RegExp, query: GrepQuery): Promise<boolean> {
  const bytes = await file.handle.readFile();
  const sniffed = sniff(bytes.subarray(0, sniffBytes));
  if (sniffed.kind !== 'text' || (sniffed.bomBytes !== 2 && bytes.includes(0))) return true;
  for (const match of matchesIn(decodeText(bytes, sniffed), regex, query, path)) {
    if (!query.onMatch({ path, ...match })) return false;
  }
  return true;
}

type Match = Omit<LineMatch, 'path'>;

/** Lines of one match; from 0. */
interface Range {
  readonly from: number;
  to: number;
  readonly column: number;
}

function matchesIn(text: string, regex: RegExp, query: GrepQuery, path: string): Match[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  let ranges: Range[] = [];
  const search = () => {
    ranges = (query.multiline ? rangesOver : rangesWithin)(lines, regex, query.maxPerFile);
  };
  if (!endsInTime(search)) {
    throw new SearchError(`the pattern takes too long on ${path || 'this file'}; make it simpler`);
  }
  return withSurroundings(lines, ranges, query.context);
}

function rangesWithin(lines: readonly string[], regex: RegExp, max: number): Range[] {
  const found: Range[] = [];
  for (const [line, content] of lines.entries()) {
    if (found.length === max) break;
    const column = content.search(regex);
    if (column !== -1) found.push({ from: line, to: line, column });
  }
  return found;
}

/** Matches that may reach over line ends; those that share a line are one. */
function rangesOver(lines: readonly string[], regex: RegExp, max: number): Range[] {
  const found: Range[] = [];
  const text = lines.join('\n');
  let line = 0;
  let start = 0;
  const lineAt = (offset: number): number => {
    for (let feed = text.indexOf('\n', start); feed !== -1 && feed < offset; feed = text.indexOf('\n', start)) {
      start = feed + 1;
      line += 1;
    }
    return line;
  };
  for (const { index, 0: matched } of text.matchAll(regex)) {
    const from = lineAt(index);
    const column = index - start;
    // A line end at the end of a match does not make the next line a part of it.
    const to = lineAt(index + matched.replace(/\n$/, '').length);
    const last = found.at(-1);
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else if (found.length === max) break;
    else found.push({ from, to, column });
  }
  return found;
}

function withSurroundings(lines: readonly string[], ranges: readonly Range[], context: number): Match[] {
  const found: Match[] = [];
  let next = 0;
  const add = (until: number, match: Pick<Match, 'column' | 'role'>) => {
    for (; next <= until && next < lines.length; next += 1)
      found.push({ line: next + 1, text: lines[next] ?? '', ...match });
  };
  for (const [index, { from, to, column }] of ranges.entries()) {
    next = Math.max(next, from - context);
    add(from - 1, { column: 0, role: 'around' });
    add(from, { column });
    add(to, { column: 0, role: 'further' });
    add(Math.min(to + context, (ranges[index + 1]?.from ?? lines.length) - 1), { column: 0, role: 'around' });
  }
  return found;
}

const script = new Script('work()');

/** Runs `work` in a context of its own, which can be stopped even within a regular expression. */
function endsInTime(work: () => void): boolean {
  try {
    script.runInContext(createContext({ work }), { timeout: maxFileMs });
    return true;
  } catch (error) {
    // An error of the other context is not an `Error` of ours.
    if ((error as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return false;
    throw error;
  }
}
