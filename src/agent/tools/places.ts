import { realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { findProgram, usualPlaces } from '../../lib/index.ts';
import { searchPathOutside } from '../../supervise/index.ts';
import type { ToolContext } from '../tool.ts';
import { displayPath, isWithin, type PathRules, resolveInWorkspace } from './paths.ts';

/** Judgements about paths and programs for rules; paths are judged as the file tools do. */
export interface PlaceRules {
  /** Whether a path may be read without approval. @param path absolute */
  readonly mayRead: (path: string, workspacePath: string) => Promise<boolean>;
  /** Real path of a file that a model named: relative to the workspace inside of it, else absolute. */
  readonly nameOf: (given: string, workspacePath: string) => Promise<string | undefined>;
  /** Real directory that a command would run in. */
  readonly directoryOf: (given: string, workspacePath: string) => Promise<string>;
  /** `PATH` of commands in a workspace. @param environment tool chains of the user's shell */
  readonly searchPathOf: (workspacePath: string, environment: ToolContext['environment']) => Promise<string>;
  /** Whether this `PATH` finds a program of this name, and only outside of the workspace. */
  readonly isTrustedProgram: (name: string, workspacePath: string, searchPath: string) => boolean;
  readonly hasBlockedPaths: boolean;
}

/**
 * `PATH` with which a command runs that was allowed because it only reads: no directory of the workspace, none that is relative. It
 * finds the programs that were judged, also when another command has made a file of the same name since.
 *
 * @param path of other commands in the workspace
 */
export const readingPath = (workspacePath: string, path: string): string =>
  [searchPathOutside(workspacePath, path), ...usualPlaces].filter(Boolean).join(delimiter);

/** @param searchPathOf `PATH` of commands, the same as for `Exec` */
export function createPlaceRules(rules: PathRules, searchPathOf: PlaceRules['searchPathOf']): PlaceRules {
  const resolved = (given: string, workspacePath: string) =>
    resolveInWorkspace(workspacePath, given, rules).catch(() => undefined);
  return {
    async mayRead(path, workspacePath) {
      const found = await resolved(path, workspacePath);
      return found?.isInside === true && !found.isBlocked;
    },
    async nameOf(given, workspacePath) {
      const found = await resolved(given, workspacePath);
      return found && displayPath(workspacePath, found.path);
    },
    directoryOf: async (given, workspacePath) =>
      given === '.' ? workspacePath : ((await resolved(given, workspacePath))?.path ?? join(workspacePath, given)),
    searchPathOf,
    isTrustedProgram(name, workspacePath, searchPath) {
      // The shell looks into relative directories, too.
      if (searchPath.split(delimiter).some((directory) => !isAbsolute(directory))) return false;
      const program = findProgram(name, searchPath);
      return program !== undefined && ![program, realpathSync(program)].some((path) => isWithin(workspacePath, path));
    },
    hasBlockedPaths: rules.blockedPaths.length > 0,
  };
}
