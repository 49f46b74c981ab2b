import { lstatSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';
import { type FileRefusal, FileRefusedError, readBoundedFile } from '../lib/index.ts';
import { ConfigError } from './error.ts';
import { userConfigFile, workspaceConfigFile } from './home.ts';
import { type JsonObject, parseConfig } from './parse.ts';

/**
 * Reads a workspace's configuration file, which may come from a repository: a regular file of this user, at most 1 MiB, not
 * through a symlink. Never blocks.
 *
 * @returns undefined for a missing file
 * @throws ConfigError
 */
export function readWorkspaceText(workspace: string): string | undefined {
  const file = workspaceConfigFile(workspace);
  if (lstatOf(dirname(file))?.isSymbolicLink() === true) {
    throw new ConfigError({ file: dirname(file), keyPath: '', expected: 'a directory', received: 'a symbolic link' });
  }
  return read(file, false);
}

/** Undefined for a missing or unreadable file: reading it names the fault. */
export function lstatOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Reads the user's own configuration file. @returns undefined for a missing file. @throws ConfigError */
export const readUserText = (home: string): string | undefined => read(userConfigFile(home), true);

/** Reads and parses the user's own configuration file. @returns undefined for a missing file. @throws ConfigError */
export function readUserSettings(home: string): JsonObject | undefined {
  const file = userConfigFile(home);
  const text = read(file, true);
  return text === undefined ? undefined : parseConfig(file, text);
}

/** Reads and parses the workspace settings. Throws like `readWorkspaceText`. */
export function readWorkspaceSettings(workspace: string): JsonObject | undefined {
  const text = readWorkspaceText(workspace);
  return text === undefined ? undefined : parseConfig(workspaceConfigFile(workspace), text);
}

const faults: Readonly<Record<FileRefusal, string>> = {
  symlink: 'a symbolic link',
  notRegular: 'another kind of file',
  foreignOwner: 'of another user',
  tooLarge: 'larger',
  unreadable: 'not readable',
};

/** Small files, read at starts only: blocking for them is simpler than everything that would have to wait. */
function read(file: string, isUsersOwn: boolean): string | undefined {
  try {
    return readBoundedFile(file, isUsersOwn ? { owner: 'any', links: 'follow' } : {});
  } catch (error) {
    if (!(error instanceof FileRefusedError)) throw error;
    const expected = isUsersOwn ? 'a regular file of at most 1 MiB' : 'a regular file of yours of at most 1 MiB';
    const detail = /\([^()]*\)$/.exec(error.message)?.[0];
    const received = detail === undefined ? faults[error.refusal] : `${faults[error.refusal]} ${detail}`;
    throw new ConfigError({ file, keyPath: '', expected, received }, { cause: error });
  }
}
