import { join } from 'node:path';
import { agentSecretsIn, type Config, generatedKeyFile, secretsIn, workspaceStateDirectory } from '../config/index.ts';
import { readBoundedFile } from '../lib/index.ts';
import { Secrets } from '../log/index.ts';
import type { FileDiff } from '../protocol/index.ts';
import type { ReaderFacts } from './conversations.ts';

export interface StoredChangesOptions {
  readonly home: string;
  readonly workspacePath: string;
  readonly config: Config;
  /** Further secrets that are removed from all texts. */
  readonly secrets: readonly string[];
}

/** Reads changes of turns from the checkpoints of a workspace. Requests run one after the other, because each uses a worker thread. */
export function readChanges({ home, workspacePath, config, secrets }: StoredChangesOptions): ReaderFacts['diff'] {
  const directory = join(workspaceStateDirectory(home, workspacePath), 'checkpoints');
  const cleaner = new Secrets();
  const key = keyOf(home, workspacePath);
  const all = [...secretsIn(config), ...agentSecretsIn(config), ...secrets, key];
  for (const secret of all) if (secret !== '') cleaner.protect(secret);
  let last: Promise<unknown> = Promise.resolve();
  return (thread, { threadId, turnId, format }) => {
    const root = thread.config?.workspaceOverride ?? workspacePath;
    const reading = last.then(async (): Promise<FileDiff> => {
      const { storedChanges } = await import('../checkpoints/index.ts');
      const request = { threadId, turnId, isUnified: format === 'unified' };
      const { diff, files, putBack, notCovered, ...rest } = await storedChanges(directory, root, request);
      const lists = { files: [...files], putBack: [...putBack], notCovered: [...notCovered] };
      return { format, ...rest, ...lists, ...(diff !== undefined && { diff: cleaner.clean(diff) }) };
    });
    last = reading.catch(() => undefined);
    return reading;
  };
}

/** Generated key of the workspace's HTTP interfaces; empty without one. */
function keyOf(home: string, workspacePath: string): string {
  try {
    return readBoundedFile(generatedKeyFile(home, workspacePath), { maxBytes: 1_024 })?.trim() ?? '';
  } catch {
    // The agent server replaces such a file.
    return '';
  }
}
