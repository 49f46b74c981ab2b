import { isAbsolute } from 'node:path';
import { RequestError } from '@agentclientprotocol/sdk';
import { openWorkspace, WorkspaceError } from '../config/index.ts';

/**
 * The workspace that the editor's directory is. Directories above it are never tried: another user may own one of them.
 *
 * @param home of the user
 * @returns its real path, as the Hub knows it
 * @throws RequestError -32602, with what to do
 */
export function workspaceOf(cwd: string, home: string): string {
  if (!isAbsolute(cwd)) throw RequestError.invalidParams({ cwd }, 'cwd must be an absolute path');
  try {
    return openWorkspace(cwd, { home }).path;
  } catch (error) {
    if (error instanceof WorkspaceError) throw RequestError.invalidParams({ cwd }, error.message);
    throw error;
  }
}
