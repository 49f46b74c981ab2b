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

const goneCodes = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'ENXIO']);

/** Whether an entry is missing, out of reach, or of another kind than expected. */
export const isGone = (error: unknown): boolean => goneCodes.has(codeOf(error) ?? '');
