import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { count } from '../../../lib/index.ts';
import type { Tool, ToolContext, ToolResult } from '../../tool.ts';
import { defineTool } from '../define.ts';
import { createPathFilter, displayPath } from '../paths.ts';
import { cutLine, done, failed } from '../text.ts';
import { createAccess, type PermittedPath } from './access.ts';
import { openDirectory, openFile } from './handles.ts';
import { pathAliases, path as pathParameter, positive } from './parameters.ts';
import {
  forbiddenBelow,
  type GrepQuery,
  type LineMatch,
  type SearchEnd,
  type SearchEngine,
  SearchError,
  skippedNames,
} from './search.ts';
import { createSearchEngine } from './search-engine.ts';
import { GlobError, searchTest } from './search-patterns.ts';
import { type FileToolSettings, limits } from './settings.ts';

const shortText = (what: string) =>
  v.pipe(
    v.string(what),
    v.nonEmpty(what),
    v.maxLength(limits.patternChars, `at most ${limits.patternChars} characters`),
  );

const parameters = v.object({
  pattern: shortText('a regular expression'),
  path: v.optional(pathParameter('Directory or file. Default: the workspace.'), '.'),
  include: v.optional(v.pipe(shortText('a glob'), v.description('Glob of files, e.g. "*.ts".'))),
  ignoreCase: v.optional(v.boolean('true or false'), false),
  context: v.pipe(
    v.optional(v.pipe(v.number('a number'), v.minValue(0, 'at least 0')), 0),
    v.description('Lines around each match.'),
    v.transform((lines) => Math.min(Math.floor(lines), limits.grepContext)),
  ),
  multiline: v.pipe(v.optional(v.boolean('true or false'), false), v.description('Matches may reach over line ends.')),
  maxResults: v.optional(positive(limits.grepMatchesMost, `Default: ${limits.grepMatches}.`), limits.grepMatches),
});
type Args = v.InferOutput<typeof parameters>;

/** `GrepFiles`: lines that match a regular expression, by file. */
export function createGrepFiles(settings: FileToolSettings, engine: SearchEngine = createSearchEngine()): Tool {
  const access = createAccess<Args>('grep', ({ path }) => path, settings);
  return defineTool({
    name: 'GrepFiles',
    description:
      'Searches files for a regular expression. Skips binary files, .git, node_modules and files that .gitignore excludes.',
    isReadOnly: true,
    parameters,
    aliases: {
      pattern: ['regex', 'query', 'search'],
      path: pathAliases,
      include: ['glob', 'file_pattern', 'includes'],
      ignoreCase: ['case_insensitive', 'i'],
      context: ['lines_around', 'C'],
      multiline: ['multi_line', 'dotall'],
      maxResults: ['limit', 'max_count', 'head_limit'],
    },
    placeOf: ({ path }) => path,
    approvalFor: access.approvalFor,
    run: (args, context) =>
      access.enter(args, context, (place) => explained(() => grep(engine, place, args, settings, context))),
  });
}

async function explained(search: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await search();
  } catch (error) {
    if (error instanceof SearchError) return failed(error.message);
    if (error instanceof GlobError) return failed(`include ${error.message}.`);
    throw error;
  }
}

interface FoundLines {
  readonly matches: readonly LineMatch[];
  readonly end: SearchEnd;
}

async function grep(
  engine: SearchEngine,
  place: PermittedPath,
  args: Args,
  settings: FileToolSettings,
  { workspacePath, signal }: ToolContext,
): Promise<ToolResult> {
  const isDirectory = (await stat(place.path)).isDirectory();
  const search = isDirectory ? grepDirectory : grepOneFile;
  const { matches, end } = await search(engine, place.path, args, { settings, workspacePath, signal });
  const shown = await onlyVisible(matches, place.path, workspacePath, settings);
  return done(report(shown, end, args, (path) => displayPath(workspacePath, join(place.path, path))));
}

interface Surroundings {
  readonly settings: FileToolSettings;
  readonly workspacePath: string;
  readonly signal: AbortSignal;
}

async function grepDirectory(
  engine: SearchEngine,
  root: string,
  args: Args,
  { settings, workspacePath, signal }: Surroundings,
): Promise<FoundLines> {
  const { query, matches } = collector(args);
  const skippedPaths = await forbiddenBelow(root, workspacePath, settings);
  const directory = await openDirectory(root);
  const { maxFileBytes } = settings;
  const scope = { directory, skippedNames, skippedPaths, maxFileBytes, signal, timeoutMs: limits.searchMs };
  try {
    return { end: await engine.grepTree(scope, query), matches };
  } finally {
    await directory.close();
  }
}

async function grepOneFile(
  engine: SearchEngine,
  path: string,
  args: Args,
  { signal }: Surroundings,
): Promise<FoundLines> {
  const { query, matches } = collector(args);
  const file = await openFile(path);
  try {
    return { end: await engine.grepFile(file, { signal, timeoutMs: limits.searchMs }, query), matches };
  } finally {
    await file.close();
  }
}

/** Makes a query that collects its matches: one more than requested, to know whether there are more. */
function collector({ pattern, ignoreCase, multiline, context, include, maxResults }: Args): {
  query: GrepQuery;
  matches: LineMatch[];
} {
  const matches: LineMatch[] = [];
  let count = 0;
  const query: GrepQuery = {
    ...{ pattern, ignoreCase, multiline, context },
    include: include === undefined ? () => true : searchTest(include),
    nameGlobs: include === undefined ? undefined : nameGlobs(include),
    maxPerFile: maxResults + 1,
    onMatch: (match) => {
      matches.push(match);
      if (match.role === undefined) count += 1;
      return count <= maxResults;
    },
  };
  return { query, matches };
}

/** Part of `include` about names alone; undefined when there is no simple form. */
function nameGlobs(include: string): string[] | undefined {
  const names = include.split(';').map((glob) => glob.trim().split('/').at(-1) ?? '');
  return names.every((name) => /^[\w.*?{},-]+$/.test(name) && isBalanced(name)) ? names : undefined;
}

const isBalanced = (glob: string): boolean =>
  /^[^{}]*(\{[^{}]*\}[^{}]*)*$/.test(glob) && !glob.includes('**') && glob !== '';

async function onlyVisible(
  matches: readonly LineMatch[],
  root: string,
  workspacePath: string,
  settings: FileToolSettings,
): Promise<LineMatch[]> {
  const isVisible = await createPathFilter(workspacePath, settings);
  const paths = [...new Set(matches.map(({ path }) => path))];
  const visible = new Set<string>();
  for (const path of paths) if (path === '' || (await isVisible(join(root, path)))) visible.add(path);
  return matches.filter(({ path }) => visible.has(path));
}

function report(
  all: readonly LineMatch[],
  end: SearchEnd,
  { pattern, maxResults }: Args,
  shownPath: (path: string) => string,
): string {
  const late = `The search was ended after ${limits.searchMs / 1000} s; give a narrower path or include.`;
  if (all.length === 0) {
    return end === 'timedOut' ? `[${late} Nothing was found until then.]` : `No matches for ${pattern}`;
  }
  const { text, lines, files } = grouped(firstMatches(all, maxResults), shownPath);
  const isCut = all.filter(isMatch).length > lines;
  const notices = [
    isCut && `Showing ${count(lines, 'matching line')}, there are more: narrow pattern, path or include.`,
    end === 'timedOut' && late,
  ].filter((notice) => notice !== false);
  const summary = `${count(lines, 'matching line')} in ${count(files, 'file')}.`;
  return `${text}\n\n[${notices.length > 0 ? notices.join(' ') : summary}]`;
}

const isMatch = ({ role }: LineMatch): boolean => role === undefined;

/** Returns the first `max` matches, with the lines that belong to them. */
function firstMatches(all: readonly LineMatch[], max: number): readonly LineMatch[] {
  const next = all.filter(isMatch)[max];
  return next === undefined ? all : all.slice(0, all.indexOf(next));
}

/** Matches under the names of their files, as many as there is room for. */
function grouped(matches: readonly LineMatch[], shownPath: (path: string) => string) {
  const byFile = Map.groupBy(matches, ({ path }) => path);
  const blocks: string[] = [];
  const hasContext = matches.some(({ role }) => role === 'around');
  let bytes = 0;
  let lines = 0;
  for (const [path, found] of [...byFile].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const block = [shownPath(path)];
    let before: number | undefined;
    for (const match of found) {
      const isApart = before !== undefined && match.line > before + 1 && hasContext;
      before = match.line;
      const line = `${isApart ? '  --\n' : ''}  ${matchLine(match)}`;
      bytes += Buffer.byteLength(line) + 1;
      if (bytes > limits.grepBytes) break;
      block.push(line);
      if (isMatch(match)) lines += 1;
    }
    if (block.length > 1) blocks.push(block.join('\n'));
    if (bytes > limits.grepBytes) break;
  }
  return { text: blocks.join('\n\n'), lines, files: blocks.length };
}

/** Characters shown before a match far to the right in its line. */
const leadChars = 100;

function matchLine({ line, text, column, role }: LineMatch): string {
  if (text === undefined) return '[a line too long to be shown]';
  const isFar = column > limits.grepLineChars - leadChars;
  const from = isFar ? column - leadChars : 0;
  const shown = text.slice(from).replace(/^[\uDC00-\uDFFF]/, '');
  return `${line}${role === 'around' ? '-' : ':'} ${isFar ? `[${from} characters] …` : ''}${cutLine(shown, limits.grepLineChars)}`;
}
