import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';

/** Why a file was not read. */
export type FileRefusal = 'symlink' | 'notRegular' | 'foreignOwner' | 'tooLarge' | 'unreadable';

/** A file exists but must not be read. The message names the file, the fault and, for `foreignOwner`, the owner's uid. */
export class FileRefusedError extends Error {
  override readonly name = 'FileRefusedError';
  readonly file: string;
  readonly refusal: FileRefusal;
  /** The message without the name of the file. */
  readonly fault: string;

  constructor(file: string, refusal: FileRefusal, fault: string, options?: ErrorOptions) {
    super(`${file} ${fault}`, options);
    this.file = file;
    this.refusal = refusal;
    this.fault = fault;
  }
}

export interface BoundedReadOptions {
  /** Bytes; a larger file is refused. Default 1 MiB. */
  readonly maxBytes?: number;
  /** Owner of the files that are read. Default `self`: this user only. */
  readonly owner?: 'self' | 'any';
  /** Whether a symlink in the last component is followed. Default `refuse`. */
  readonly links?: 'refuse' | 'follow';
  /** This user; for tests. */
  readonly uid?: number | undefined;
}

const defaultMaxBytes = 1_048_576;

/** Windows has none of these flags, and no file there blocks at open. */
const nonBlocking = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
const appending = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NONBLOCK ?? 0);
const noFollow = constants.O_NOFOLLOW ?? 0;

/**
 * Reads an untrusted text file: one of a workspace. Never blocks on a FIFO or a device, never
 * follows a symlink in the last component, reads at most `maxBytes`, and only a regular file of this user.
 *
 * @param file absolute path
 * @returns the text; undefined when there is no such file
 * @throws FileRefusedError
 */
export function readBoundedFile(
  file: string,
  { maxBytes = defaultMaxBytes, owner = 'self', links = 'refuse', uid = process.getuid?.() }: BoundedReadOptions = {},
): string | undefined {
  const fd = open(file, links === 'follow' ? nonBlocking : nonBlocking | noFollow);
  if (fd === undefined) return undefined;
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new FileRefusedError(file, 'notRegular', 'is not a regular file');
    if (owner === 'self' && uid !== undefined && stats.uid !== uid) {
      throw new FileRefusedError(file, 'foreignOwner', `belongs to another user (uid ${stats.uid})`);
    }
    return readAtMost(fd, file, maxBytes);
  } finally {
    closeSync(fd);
  }
}

/**
 * Opens a file of this user's own state for appending, and creates it (0600) if it is missing. Never blocks on a FIFO.
 *
 * @returns the descriptor
 * @throws FileRefusedError
 */
export function openToAppend(file: string): number {
  const fd = withAdvice(() => open(file, appending));
  if (fd === undefined) {
    const cause = Object.assign(new Error(`ENOENT: no such directory, ${dirname(file)}`), { code: 'ENOENT' });
    throw new FileRefusedError(file, 'unreadable', 'cannot be made: its directory is missing', { cause });
  }
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return withAdvice(() => {
    throw new FileRefusedError(file, 'notRegular', 'is not a regular file');
  });
}

/** Uses a file of this user's own state that every start can make; an error of `use` about its kind names the next step. */
export function withAdvice<T>(use: () => T): T {
  try {
    return use();
  } catch (error) {
    if (!(error instanceof FileRefusedError) || error.refusal === 'unreadable') throw error;
    const fault = `${error.fault}. Move it aside: the next start makes a new one`;
    throw new FileRefusedError(error.file, error.refusal, fault, { cause: error });
  }
}

/**
 * Finds a reason against using `file` as this user's own: a symlink, another kind of file, another owner. Does not open it.
 *
 * @returns the fault; undefined for a regular file of this user, and for one that does not exist
 */
export function fileFault(
  file: string,
  { owner = 'self', uid = process.getuid?.() }: Pick<BoundedReadOptions, 'owner' | 'uid'> = {},
): FileRefusedError | undefined {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (stats.isSymbolicLink()) return new FileRefusedError(file, 'symlink', 'is a symbolic link');
  if (!stats.isFile()) return new FileRefusedError(file, 'notRegular', 'is not a regular file');
  if (owner === 'any' || uid === undefined || stats.uid === uid) return undefined;
  return new FileRefusedError(file, 'foreignOwner', `belongs to another user (uid ${stats.uid})`);
}

function open(file: string, flags: number): number | undefined {
  try {
    return openSync(file, flags, 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    if (code === 'ELOOP' || code === 'EMLINK')
      throw new FileRefusedError(file, 'symlink', 'is a symbolic link', { cause: error });
    // A directory, a socket, or a FIFO opened in a way that its other end does not allow.
    if (code === 'ENXIO' || code === 'EISDIR')
      throw new FileRefusedError(file, 'notRegular', 'is not a regular file', { cause: error });
    throw new FileRefusedError(file, 'unreadable', `cannot be read (${code})`, { cause: error });
  }
}

/** Bytes of the read under way: each is synchronous. */
const chunk = Buffer.allocUnsafe(65_536);

/** The size that `fstat` reports may be wrong by the time of the read: the bytes that arrive are counted. */
function readAtMost(fd: number, file: string, maxBytes: number): string {
  const chunks: Buffer[] = [];
  let size = 0;
  for (;;) {
    const read = readSync(fd, chunk, 0, Math.min(chunk.length, maxBytes + 1 - size), null);
    if (read === 0) return Buffer.concat(chunks).toString('utf8');
    size += read;
    if (size > maxBytes) throw new FileRefusedError(file, 'tooLarge', `is larger than ${maxBytes} bytes`);
    chunks.push(Buffer.from(chunk.subarray(0, read)));
  }
}
