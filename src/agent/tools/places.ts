import { realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { findProgram } from '../../lib/index.ts';
import { displayPath, isWithin, type PathRules, resolveInWorkspace } from './paths.ts';

/** Judgements about paths and programs for rules; paths are judged as the file tools do. */
export interface PlaceRules {
  /** Whether a path may be read without approval. @param path absolute */
  readonly mayRead: (path: string, workspacePath: string) => Promise<boolean>;
  /** Real path of what a model named: relative to the workspace inside of it, else absolute. */
  readonly nameOf: (given: string, workspacePath: string) => Promise<string | undefined>;
  /** Real directory that a command would run in. */
  readonly directoryOf: (given: string, workspacePath: string) => Promise<string>;
  /** Whether a program of this name is found, outside of the workspace. */
  readonly isTrustedProgram: (name: string, workspacePath: string) => boolean;
  readonly hasBlockedPaths: boolean;
}

/** @param searchPath `PATH` of commands */
export function createPlaceRules(rules: PathRules, searchPath: string | undefined): PlaceRules {
  const hasRelativeEntry = searchPath?.split(delimiter).some((directory) => !isAbsolute(directory)) === true;
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
    isTrustedProgram(name, workspacePath) {
      // The shell looks into relative directories, too.
      if (hasRelativeEntry) return false;
      const program = findProgram(name, searchPath);
      return program !== undefined && ![program, realpathSync(program)].some((path) => isWithin(workspacePath, path));
    },
    hasBlockedPaths: rules.blockedPaths.length > 0,
  };
}
