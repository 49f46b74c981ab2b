import { createHash } from 'node:crypto';

/** A workspace without its path: the same in the Hub and in its agent server, and the name of its directory of logs. */
export function workspaceId(canonicalPath: string): string {
  return createHash('sha256').update(canonicalPath).digest('hex').slice(0, 24);
}
