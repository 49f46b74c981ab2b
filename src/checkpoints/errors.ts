import { dirname } from 'node:path';

/** A checkpoint or a restore that cannot be made. The message is for people and quotes no content. */
export class CheckpointError extends Error {
  override readonly name = 'CheckpointError';
}

export const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code;

const fullCodes = new Set(['ENOSPC', 'EDQUOT']);
/** SQLITE_FULL */
const sqliteFull = 13;

/** Whether a disk, or the user's share of it, is full. */
export const isFull = (error: unknown): boolean =>
  fullCodes.has(codeOf(error) ?? '') || (error as { readonly errcode?: unknown } | undefined)?.errcode === sqliteFull;

/** SQLITE_CORRUPT and SQLITE_NOTADB */
const damageCodes: ReadonlySet<unknown> = new Set([11, 26]);

/** The error, or the damage of a database in words with the remedy. */
export function explained(error: unknown, file: string): unknown {
  const { errcode, message } = error as { readonly errcode?: number; readonly message?: string };
  if (errcode === undefined || !damageCodes.has(errcode & 0xff)) return error;
  const words = `${file} is damaged (${message}). Stop the agent server and move ${dirname(file)} aside: the next start saves files again, and earlier turns cannot be taken back with their files`;
  return new CheckpointError(words, { cause: error });
}

const goneCodes = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'ENXIO']);

/** Whether an entry is missing, out of reach, or of another kind than expected. */
export const isGone = (error: unknown): boolean => goneCodes.has(codeOf(error) ?? '');
