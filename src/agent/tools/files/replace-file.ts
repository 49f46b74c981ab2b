import { randomBytes } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { access, type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { errorCode } from '../text.ts';
import { FileError } from './errors.ts';
import { type DirectoryHandle, kindOf, makeDirectory, statEntry } from './handles.ts';

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0, W_OK } = constants;

/** Of a new file; the umask takes away from it. */
const newFileMode = 0o644;
const permissionBits = 0o7777;
/** Without set-uid, set-gid and sticky. */
const plainPermissionBits = 0o777;

export interface ReplaceOptions {
  /** The file as it was read. When it is no longer that, nothing is written. */
  readonly expected?: BigIntStats;
  readonly signal: AbortSignal;
}

/**
 * Replaces the content of a file by `data`: a reader at any moment finds the old content or the new one. Missing
 * directories are made; permissions stay, and the owner where we may. Other hard links of the file retain the old content.
 *
 * @param path as `resolveInWorkspace` gave it
 * @returns how many bytes the file had before; undefined: it was missing
 * @throws FileError moved, stale, notAFile, readOnly; errors of the system. Then nothing has changed.
 */
export async function replaceFile(
  path: string,
  data: Uint8Array,
  options: ReplaceOptions,
): Promise<number | undefined> {
  const { directory, undo } = await makeDirectory(dirname(path));
  try {
    return await replaceIn(directory, basename(path), data, options);
  } catch (error) {
    await undo();
    throw error;
  } finally {
    await directory.close();
  }
}

async function replaceIn(
  directory: DirectoryHandle,
  name: string,
  data: Uint8Array,
  { expected, signal }: ReplaceOptions,
): Promise<number | undefined> {
  const target = directory.at(name);
  const existing = await statEntry(target);
  if (existing) await mustBeReplaceable(target, existing);
  const temporaryName = `.oratorio-${randomBytes(8).toString('hex')}.tmp`;
  const temporary = directory.at(temporaryName);
  try {
    const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, newFileMode);
    try {
      await directory.confirm(file, temporaryName);
      if (existing) await takeOwnership(file, existing);
      await file.writeFile(data);
      await file.sync();
      await directory.confirm(file, temporaryName);
    } finally {
      await file.close();
    }
    signal.throwIfAborted();
    if (expected && !isSameVersion(expected, await statEntry(target))) {
      throw new FileError('stale', 'another program changed it at the same moment; read it again');
    }
    await rename(temporary, target);
  } catch (error) {
    await unlink(temporary).catch(onlyWhenAbsent);
    throw error;
  }
  await directory.sync();
  return existing && Number(existing.size);
}

async function mustBeReplaceable(target: string, existing: BigIntStats): Promise<void> {
  if (existing.isSymbolicLink()) {
    throw new FileError('moved', 'a symlink was put in its place just now; nothing was written');
  }
  if (!existing.isFile()) throw new FileError('notAFile', `it is ${kindOf(existing)}, not a regular file`);
  try {
    await access(target, W_OK);
  } catch (error) {
    // A rename would not mind.
    if (errorCode(error) !== 'EACCES' && errorCode(error) !== 'EPERM') throw error;
    throw new FileError('readOnly', 'it is read-only', { cause: error });
  }
}

/** Owner and permissions of the file that will be replaced. */
async function takeOwnership(file: FileHandle, like: BigIntStats): Promise<void> {
  const own = await file.stat({ bigint: true });
  const mode = Number(like.mode);
  if (own.uid === like.uid && own.gid === like.gid) return file.chmod(mode & permissionBits);
  const isOwner = await file.chown(Number(like.uid), Number(like.gid)).then(
    () => true,
    // Only root may change the owner. The file becomes ours, and must not run as another user.
    () => false,
  );
  await file.chmod(mode & (isOwner ? permissionBits : plainPermissionBits));
}

function isSameVersion(a: BigIntStats, b: BigIntStats | undefined): boolean {
  return (
    b !== undefined &&
    a.dev === b.dev &&
    a.ino === b.ino &&
    a.size === b.size &&
    a.mtimeNs === b.mtimeNs &&
    a.ctimeNs === b.ctimeNs
  );
}

function onlyWhenAbsent(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error;
}
