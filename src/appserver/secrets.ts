import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { type Config, ensureStateDirectory, generatedKeyFile, secretsIn } from '../config/index.ts';
import { createFileAtomic, FileRefusedError, readBoundedFile, writeFileAtomic } from '../lib/index.ts';
import type { LaunchDocument } from '../protocol/index.ts';

/** The key of the HTTP faces of one workspace for which none is configured. */
export interface GeneratedKey {
  readonly key: string;
  readonly file: string;
  /** Made by this call. */
  readonly isNew: boolean;
}

/** 32 random bytes in an alphabet that needs no escaping in a header or a shell. */
const shape = /^[A-Za-z0-9_-]{43}$/;
const makeKey = (): string => randomBytes(32).toString('base64url');

/**
 * Reads the generated key of a workspace, or makes it (0600). Servers that start at the same time get the same one. A file
 * that others can read, or that is not a key, is replaced.
 *
 * @param workspacePath canonical
 * @throws Error when the home cannot be written
 */
export function generatedKey(home: string, workspacePath: string): GeneratedKey {
  const file = generatedKeyFile(home, workspacePath);
  const key = readKey(file);
  if (key !== undefined) return { key, file, isNew: false };
  ensureStateDirectory(home, workspacePath);
  return createKey(file);
}

function readKey(file: string): string | undefined {
  try {
    const key = readBoundedFile(file, { maxBytes: 1_024 })?.trim();
    if (key === undefined || !shape.test(key)) return undefined;
    return process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0 ? undefined : key;
  } catch (error) {
    if (error instanceof FileRefusedError) return undefined;
    throw error;
  }
}

/** The first process that links its file has made the key; the others read it. */
function createKey(file: string): GeneratedKey {
  const key = makeKey();
  if (createFileAtomic(file, `${key}\n`)) return { key, file, isNew: true };
  const theirs = readKey(file);
  if (theirs !== undefined) return { key: theirs, file, isNew: false };
  writeFileAtomic(file, `${key}\n`);
  return { key, file, isNew: true };
}

/**
 * Secrets that must not reach a log, tool, trace or prompt.
 *
 * @param tokens of the WebSocket and the dashboard, and the generated key
 */
export function secretsOf(config: Config, launch: LaunchDocument | undefined, tokens: readonly string[]): string[] {
  return [
    ...tokens,
    ...secretsIn(config),
    launch?.notificationToken ?? '',
    launch?.adoptionProof ?? '',
    launch?.upstream?.apiKey ?? '',
  ].filter((secret) => secret !== '');
}
