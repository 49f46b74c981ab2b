import { stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import * as v from 'valibot';
import type { PathTest } from '../../../lib/index.ts';
import { count } from '../../../lib/index.ts';
import type { Tool, ToolContext, ToolResult } from '../../tool.ts';
import { defineTool } from '../define.ts';
import { createPathFilter, displayPath, isWithin, listedPath } from '../paths.ts';
import { done, failed } from '../text.ts';
import { createAccess, type PermittedPath } from './access.ts';
import { openDirectory } from './handles.ts';
import { pathAliases, path as pathParameter } from './parameters.ts';
import { type FoundFiles, forbiddenBelow, type SearchEngine, skippedNames } from './search.ts';
import { createSearchEngine } from './search-engine.ts';
import { GlobError, searchTest } from './search-patterns.ts';
import { type FileToolSettings, limits } from './settings.ts';

const parameters = v.object({
  pattern: v.pipe(
    v.string('a glob'),
    v.nonEmpty('a glob'),
    v.maxLength(limits.patternChars, `at most ${limits.patternChars} characters`),
    v.description('As "*.ts" (at any depth) or "src/**/*.{js,ts}"; several with ";".'),
  ),
  path: v.optional(pathParameter('Directory. Default: the workspace.'), '.'),
});
type Args = v.InferOutput<typeof parameters>;

/** Decoded form of bytes of a name that are not UTF-8. */
const notUtf8 = '\ufffd';

/** `FindFiles`: files by their names, newest first. */
export function createFindFiles(settings: FileToolSettings, engine: SearchEngine = createSearchEngine()): Tool {
  const access = createAccess<Args>('find', ({ path }) => path, settings);
  return defineTool({
    name: 'FindFiles',
    description: 'Finds files by glob, last changed first. Skips as GrepFiles does, and symlinks.',
    isReadOnly: true,
    parameters,
    aliases: { pattern: ['glob', 'query', 'name'], path: pathAliases },
    placeOf: ({ path }) => path,
    approvalFor: access.approvalFor,
    run: (args, context) => access.enter(args, context, (place) => find(engine, place, args, settings, context)),
  });
}

async function find(
  engine: SearchEngine,
  place: PermittedPath,
  { pattern }: Args,
  settings: FileToolSettings,
  { workspacePath, signal }: ToolContext,
): Promise<ToolResult> {
  if (!(await stat(place.path)).isDirectory()) return failed(`${place.shown} is a file; path must be a directory.`);
  const test = testOf(pattern, place.path);
  if (typeof test === 'string') return failed(test);
  const skippedPaths = await forbiddenBelow(place.path, workspacePath, settings);
  const directory = await openDirectory(place.path);
  const { maxFileBytes } = settings;
  const scope = { directory, skippedNames, skippedPaths, maxFileBytes, signal, timeoutMs: limits.searchMs };
  const found = await engine.findFiles(scope, test, limits.findFiles).finally(() => directory.close());
  const isVisible = await createPathFilter(workspacePath, settings);
  const visible: string[] = [];
  let unreadable = 0;
  for (const path of found.paths) {
    const absolute = join(place.path, path);
    if (await isVisible(absolute)) visible.push(listedPath(displayPath(workspacePath, absolute)));
    else if (path.includes(notUtf8)) unreadable += 1;
  }
  return done(report(visible, { ...found, unreadable }, pattern, place.shown));
}

/** @returns a sentence for the model when the pattern is invalid */
function testOf(pattern: string, root: string): PathTest | string {
  // Models that know where they are write absolute patterns.
  const patterns = pattern.split(';').map((each) => (isWithin(root, each.trim()) ? relative(root, each.trim()) : each));
  try {
    return searchTest(patterns.join(';'));
  } catch (error) {
    if (error instanceof GlobError) return `pattern ${error.message}.`;
    throw error;
  }
}

function report(
  paths: readonly string[],
  { total, end, paths: listed, unreadable }: FoundFiles & { readonly unreadable: number },
  pattern: string,
  root: string,
): string {
  const late = `The search was ended after ${limits.searchMs / 1000} s; give a narrower path.`;
  const notices = [
    total > listed.length && `Showing the newest ${paths.length} of ${count(total, 'file')}; narrow pattern or path.`,
    end === 'timedOut' && late,
    unreadable > 0 && `${count(unreadable, 'name')} not in UTF-8 left out; use Exec for such a file.`,
  ].filter((notice) => notice !== false);
  const notice = notices.length === 0 ? '' : `\n\n[${notices.join(' ')}]`;
  return paths.length === 0 ? `No files match ${pattern} in ${root}${notice}` : paths.join('\n') + notice;
}
