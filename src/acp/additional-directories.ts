/** Directories that an editor opens beside the workspace of a session. */
import { RequestError } from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import type { AppServerClient } from '../client/index.ts';
import { furtherDirectory } from '../config/index.ts';
import { userHome } from '../lib/index.ts';
import type { SeenThread } from './thread-events.ts';

export const Directories = v.array(v.string());
const maxDirectories = 32;

/** @returns canonical paths @throws RequestError -32602 for one that a conversation must not read as a whole */
export function directoriesOf(named: readonly string[] | null | undefined): string[] {
  const list = named ?? [];
  if (list.length > maxDirectories) {
    throw RequestError.invalidParams(undefined, `at most ${maxDirectories} additional directories`);
  }
  const home = userHome();
  return list.map((path) => {
    const real = furtherDirectory(path, home);
    if (real !== undefined) return real;
    const reason =
      'an additional directory must be absolute and exist; not the home, a hidden directory in it, or one of the system';
    throw RequestError.invalidParams({ additionalDirectories: path.slice(0, 200) }, reason);
  });
}

/** Makes these the directories of a thread, in place of those of an earlier session. */
export async function setDirectories(
  client: AppServerClient,
  thread: SeenThread,
  wanted: readonly string[],
): Promise<void> {
  const present = v.is(Directories, thread.config['additionalDirectories'])
    ? thread.config['additionalDirectories']
    : [];
  if (JSON.stringify(present) === JSON.stringify(wanted)) return;
  await client.request('thread/config/update', { threadId: thread.id, config: { additionalDirectories: wanted } });
}
