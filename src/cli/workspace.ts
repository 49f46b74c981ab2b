import { realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { directoryName } from '../config/index.ts';
import type { CommandContext } from './command.ts';

/** The workspace a command is about, absolute; the current directory when none is named. The Hub decides whether it is one. */
export const workspacePath = ({ cwd }: Pick<CommandContext, 'cwd'>, named: string | boolean | undefined): string =>
  typeof named === 'string' ? resolve(cwd, named) : cwd;

/** Whether `path` is a directory with `.oratorio/` in it. */
export const isWorkspace = (path: string): boolean =>
  statSync(join(path, directoryName), { throwIfNoEntry: false })?.isDirectory() === true;

/** The one spelling of a path the Hub uses in events; the path itself when it does not exist (any more). */
export function canonical(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
