import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import {
  canonicalPath,
  createFileAtomic,
  FileRefusedError,
  makeDirectory,
  readBoundedFile,
  writeFileAtomic,
} from '../lib/index.ts';
import { TrustError } from './error.ts';
import { directoryName, homeDirectory, workspaceConfigFile } from './home.ts';
import {
  earlierGitignore,
  isValidName,
  openWorkspace,
  WorkspaceError,
  workspaceGitignore,
  writeGitignore,
} from './open-workspace.ts';
import { type TrustPlace, trustWorkspace } from './trust.ts';

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
 * Makes `dir` (created when it does not exist) a workspace: `.oratorio/` for its owner only, an empty configuration and a
 * `.gitignore` that keeps the directory out of version control. Existing files stay unchanged. A directory that was empty or missing is
 * trusted: no other user can have put anything there. Any other is restricted, and an existing `.oratorio/` keeps its trust.
 *
 * @throws InitError when `dir` is a file, cannot be created, has a name that is not UTF-8, holds an `.oratorio` of another
 *   user or a symlink in its place, or it is or lies in a directory with data of Oratorio
 */
export function initWorkspace(
  dir: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): InitialisedWorkspace {
  const workspacePath = resolve(dir);
  const inside = join(workspacePath, directoryName);
  const home = homeDirectory(env);
  if (inside === home) {
    throw new InitError(`${workspacePath} cannot be a workspace: Oratorio saves your own data in ${inside}`);
  }
  const real = canonicalPath(workspacePath);
  // The files of a workspace are the agent's to read: keys, tokens and rights must not be among them.
  if (real === canonicalPath(home) || real.split(sep).includes(directoryName)) {
    throw new InitError(`${workspacePath} cannot be a workspace: it has data of Oratorio. Choose another directory`);
  }
  if (!isValidName(workspacePath)) {
    throw new InitError(`${workspacePath} cannot be a workspace: its name is not valid UTF-8. Rename the directory`);
  }
  const existing = [workspacePath, inside].find((path) => isDirectory(path) === false);
  if (existing !== undefined) throw new InitError(`${existing} is not a directory`);
  const configFile = workspaceConfigFile(workspacePath);
  const isOurs = isEmpty(workspacePath);
  const created = ![configFile, join(inside, '.gitignore')].every(existsSync);
  create(inside);
  open(workspacePath, home);
  createFileAtomic(configFile, '{}\n');
  writeGitignore(inside);
  if (isOurs) trustNew({ home, workspace: workspacePath });
  return { workspacePath, configFile, created };
}

/** Whether a workspace has exactly the `.gitignore` of an earlier version. */
export function hasEarlierGitignore(workspacePath: string): boolean {
  try {
    return readBoundedFile(gitignoreOf(workspacePath)) === earlierGitignore;
  } catch (error) {
    // A link, or a file of another user: none of ours.
    if (error instanceof FileRefusedError) return false;
    throw error;
  }
}

/** Replaces the `.gitignore` of an earlier version. */
export const renewGitignore = (workspacePath: string): void =>
  writeFileAtomic(gitignoreOf(workspacePath), workspaceGitignore);

const gitignoreOf = (workspacePath: string): string => join(workspacePath, directoryName, '.gitignore');

/** Trusts a workspace of which this call has made every file. */
function trustNew(place: TrustPlace): void {
  try {
    trustWorkspace(place);
  } catch (error) {
    // The workspace stays restricted, which every start reports together with the reason.
    if (!(error instanceof TrustError)) throw error;
  }
}

/** True for a missing directory, too; false when it cannot be read. */
function isEmpty(directory: string): boolean {
  try {
    return readdirSync(directory).length === 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

/** Undefined for a missing or unreadable path. */
function isDirectory(path: string): boolean | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return false;
    return undefined;
  }
}

function create(directory: string): void {
  try {
    makeDirectory(directory, 0o700);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new InitError(`${directory} cannot be created (${code}). Choose a directory that you can write to`, {
      cause: error,
    });
  }
}

function open(workspacePath: string, home: string): void {
  try {
    openWorkspace(workspacePath, { home, isNew: true });
  } catch (error) {
    if (error instanceof WorkspaceError) throw new InitError(error.message, { cause: error });
    throw error;
  }
}
