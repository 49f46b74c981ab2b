/** Interface of a search: by ripgrep, or by our own code where ripgrep is missing. */
import { relative, sep } from 'node:path';
import { directoryName, forksName } from '../../../config/index.ts';
import type { PathTest } from '../../../lib/index.ts';
import { forbiddenPlaces, isWithin, type PathRules } from '../paths.ts';
import type { DirectoryHandle, OpenFile } from './handles.ts';

/** Scope of a search. Paths in results are relative to `directory`, with `/`. */
export interface SearchScope {
  readonly directory: DirectoryHandle;
  /** Names to skip, at any depth and in any case. */
  readonly skippedNames: readonly string[];
  /** Paths below the directory to skip. */
  readonly skippedPaths: readonly string[];
  readonly maxFileBytes: number;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export interface LineMatch {
  /** Empty when one file was searched. */
  readonly path: string;
  /** Number of the line, from 1. */
  readonly line: number;
  /** Text without its line end; undefined: too long to be shown. */
  readonly text: string | undefined;
  /** Position in `text` at which the first match begins. */
  readonly column: number;
  /** Role of a line that does not begin a match: a further line of the match, or a line around it. */
  readonly role?: 'further' | 'around';
}

export interface GrepQuery {
  readonly pattern: string;
  readonly ignoreCase: boolean;
  /** Matches may reach over line ends. */
  readonly multiline: boolean;
  /** Lines before and after each match that are reported too. */
  readonly context: number;
  /** Test for a path below the directory. */
  readonly include: PathTest;
  /** Globs of names for the same test, which may let through more; undefined: everything. */
  readonly nameGlobs: readonly string[] | undefined;
  /** Matches of one file after which it is left. */
  readonly maxPerFile: number;
  /** Called with every line, a file's one after the other; false ends the search. */
  readonly onMatch: (match: LineMatch) => boolean;
}

/** `stopped`: by `onMatch`. */
export type SearchEnd = 'complete' | 'stopped' | 'timedOut';

export interface FoundFiles {
  /** Newest first, `max` at most. */
  readonly paths: readonly string[];
  /** Number of all files that the search found before its end. */
  readonly total: number;
  readonly end: SearchEnd;
}

/** Finds lines and files. Follows no symlinks, respects `.gitignore`, skips binary files. */
export interface SearchEngine {
  /** @throws SearchError */
  grepTree(scope: SearchScope, query: GrepQuery): Promise<SearchEnd>;
  /** @throws SearchError */
  grepFile(file: OpenFile, scope: Pick<SearchScope, 'signal' | 'timeoutMs'>, query: GrepQuery): Promise<SearchEnd>;
  findFiles(scope: SearchScope, test: PathTest, max: number): Promise<FoundFiles>;
}

/** The search is not possible, mostly because the pattern is not a regular expression. The message is for the model. */
export class SearchError extends Error {
  override readonly name = 'SearchError';
}

/** Our own directory, and histories and dependencies. */
export const skippedNames = [directoryName, forksName, '.git', 'node_modules'] as const;

/** Forbidden places below `root`, relative, with `/`. */
export async function forbiddenBelow(root: string, workspacePath: string, rules: PathRules): Promise<string[]> {
  const places = await forbiddenPlaces(workspacePath, rules);
  const below = places.filter(({ path }) => path !== root && isWithin(root, path));
  return [...new Set(below.map(({ path }) => relative(root, path).split(sep).join('/')))];
}
