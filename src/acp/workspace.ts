import { realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { RequestError } from '@agentclientprotocol/sdk';
import { directoryName } from '../config/index.ts';

/**
 * The workspace that a directory is, or is in. Its real path, as the Hub knows it.
 *
 * @param home of the user: what Oratorio keeps there makes no workspace of the directory around it
 * @throws RequestError -32602, with what to do
 */
export function workspaceOf(cwd: string, home: string): string {
  if (!isAbsolute(cwd)) throw RequestError.invalidParams({ cwd }, 'cwd must be an absolute path');
  const start = realPath(cwd);
  if (start === undefined) throw RequestError.invalidParams({ cwd }, `${cwd} is not a directory`);
  for (let directory = start; ; directory = dirname(directory)) {
    const inside = join(directory, directoryName);
    if (inside !== home && isDirectory(inside)) return directory;
    if (directory === dirname(directory)) break;
  }
  const what = `neither ${cwd} nor a directory around it is an Oratorio workspace. To make it one: oratorio init ${cwd}`;
  throw RequestError.invalidParams({ cwd }, what);
}

function realPath(path: string): string | undefined {
  try {
    return isDirectory(path) ? realpathSync.native(path) : undefined;
  } catch {
    // It went away in between, or may not be looked at: for us there is no such directory.
    return undefined;
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}
