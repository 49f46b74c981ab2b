import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { DeployError } from '../errors.ts';
import { agentConfig } from '../files/index.ts';
import type { AgentMove } from '../plan/index.ts';
import { type Stack, type StackUser, stackFiles } from '../stack/index.ts';

const mostBytes = 1_048_576;

/** The user that the containers of a stack run as: files that root adds must be given to that user. */
export function userOf({ values }: Stack): StackUser {
  const [uid, gid] = [Number(values.get('ORATORIO_UID')), Number(values.get('ORATORIO_GID'))];
  return { uid, gid, isOther: process.getuid?.() === 0 && uid > 0 };
}

/** Finds the settings to move in a stack whose agent server has them in the workspace; null: nothing to move. @throws DeployError fileFailed */
export function agentMoveOf(stack: Stack): AgentMove | null {
  const { layout } = stack;
  if (existsSync(layout.agentConfig)) return null;
  const user = userOf(stack);
  const old = readOld(layout.oldAgentConfig, user.uid);
  return { config: old ?? agentConfig(), hasOld: old !== undefined, user };
}

/**
 * Reads the old settings; undefined when they are missing. Containers can write into the workspace and will read these settings, so
 * neither the directory nor the file may be a link out of it.
 */
function readOld(file: string, uid: number): string | undefined {
  const directory = openUnlinked(dirname(file), constants.O_DIRECTORY);
  if (directory === undefined) return undefined;
  try {
    // Through the descriptor: the directory cannot be replaced by a link in between.
    const fd = openUnlinked(`/proc/self/fd/${directory}/${basename(file)}`, constants.O_NONBLOCK);
    return fd === undefined ? undefined : readOwn(fd, uid);
  } finally {
    closeSync(directory);
  }
}

function openUnlinked(path: string, flags: number): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | flags);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw refused(code === 'ELOOP' || code === 'ENOTDIR' ? 'is a symbolic link' : `cannot be read (${code})`);
  }
}

function readOwn(fd: number, uid: number): string {
  try {
    const facts = fstatSync(fd);
    if (!facts.isFile()) throw refused('is not a regular file');
    if (facts.uid !== uid && facts.uid !== process.getuid?.()) throw refused(`belongs to user ${facts.uid}`);
    if (facts.size > mostBytes) throw refused(`is larger than ${mostBytes} bytes`);
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

const refused = (fault: string): DeployError =>
  new DeployError(
    'fileFailed',
    `${stackFiles.oldAgentConfig} ${fault}.`,
    `Write the settings of the agent server into ${stackFiles.agentConfig}, and remove that file.`,
  );
