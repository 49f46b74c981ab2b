import { readdir } from 'node:fs/promises';
import type { ToolResult } from '../../tool.ts';
import { listedPath } from '../paths.ts';
import { done, failed } from '../text.ts';
import type { PermittedPath } from './access.ts';
import { openDirectory } from './handles.ts';
import { limits } from './settings.ts';

/** Names in a directory in alphabetical order, directories with `/`, symlinks with `@`. `offset` is from 1. */
export async function listDirectory(
  { path, shown }: PermittedPath,
  offset: number,
  limit: number,
): Promise<ToolResult> {
  const directory = await openDirectory(path);
  const entries = await readdir(directory.at(), { withFileTypes: true }).finally(() => directory.close());
  if (entries.length === 0) return done(`[${shown} is an empty directory.]`);
  if (offset > entries.length) {
    return failed(`${shown} has ${entries.length} entries; offset ${offset} is beyond the last.`);
  }
  const names = entries.map(
    (entry) => listedPath(entry.name) + (entry.isDirectory() ? '/' : entry.isSymbolicLink() ? '@' : ''),
  );
  names.sort();
  const from = offset - 1;
  const page = names.slice(from, from + Math.min(limit, limits.directoryEntries));
  const last = from + page.length;
  const isPart = page.length < names.length;
  const next = last < names.length ? ` Use offset=${last + 1} to continue.` : '';
  const notice = isPart ? `\n\n[Showing entries ${offset}-${last} of ${names.length}.${next}]` : '';
  return done(`${shown}:\n${page.join('\n')}${notice}`);
}
