import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { directoryName, homeDirectory, workspaceConfigFile } from './home.ts';

export interface InitialisedWorkspace {
  readonly workspacePath: string;
  readonly configFile: string;
  /** False when everything was there already. */
  readonly created: boolean;
}

/** A directory cannot become a workspace; the message says why and is meant for the user. */
export class InitError extends Error {
  override readonly name = 'InitError';
}

/**
 * Makes `dir` (created when it is not there) a workspace: `.oratorio/` for its owner only, an empty configuration and a
 * `.gitignore` that keeps state and tokens out of version control. What exists is left as it is.
 *
 * @throws InitError when `dir` is a file, or Oratorio's own home would become the workspace's directory
 */
export function initWorkspace(
  dir: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): InitialisedWorkspace {
  const workspacePath = resolve(dir);
  const inside = join(workspacePath, directoryName);
  if (inside === homeDirectory(env)) {
    throw new InitError(
      `${workspacePath} cannot be a workspace: ${inside} is where Oratorio keeps what belongs to you`,
    );
  }
  const existing = [workspacePath, inside].find(
    (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === false,
  );
  if (existing !== undefined) throw new InitError(`${existing} is not a directory`);
  const isNew = !existsSync(inside);
  mkdirSync(inside, { recursive: true, mode: 0o700 });
  const configFile = workspaceConfigFile(workspacePath);
  const wrote = [writeNew(configFile, '{}\n'), writeNew(join(inside, '.gitignore'), '*\n')];
  return { workspacePath, configFile, created: isNew || wrote.includes(true) };
}

/** Writes a file unless it is there; tells whether it did. */
function writeNew(file: string, content: string): boolean {
  try {
    writeFileSync(file, content, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}
