import { errorCode } from '../text.ts';

/** `moved`: a symlink was swapped in. `stale`: another program has changed the file since. */
export type FileErrorName = 'moved' | 'stale' | 'notAFile' | 'readOnly' | 'tooLarge' | 'notText';

/** Something is wrong with a file. The message completes "<path>: …". */
export class FileError extends Error {
  override readonly name = 'FileError';
  readonly code: FileErrorName;

  constructor(code: FileErrorName, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

const systemErrors: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or directory',
  ENOTDIR: 'a part of the path is a file, not a directory',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EPERM: 'the operating system does not permit it',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be too large for the file system',
  ENAMETOOLONG: 'a name in the path is too long',
  ELOOP: 'the path goes through too many symlinks',
  ENXIO: 'it is a device or socket',
  EBUSY: 'it is in use',
  EMFILE: 'too many files are open, try again',
  ENFILE: 'too many files are open, try again',
  EIO: 'the disk reported an error',
};

/**
 * Describes an error of the file system for the model, completing "<path>: …"; undefined for any other error: a bug,
 * or an abort.
 */
export function problemWithFile(error: unknown): string | undefined {
  if (error instanceof FileError) return error.message;
  const code = errorCode(error);
  if (code === undefined || !/^E[A-Z0-9]+$/.test(code)) return undefined;
  return systemErrors[code] ?? `the operating system reported ${code}`;
}
