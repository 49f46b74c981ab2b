import { createHash, randomBytes } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { access, type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { Limit } from '../../../lib/index.ts';
import type { ToolContext } from '../../tool.ts';
import { errorCode } from '../text.ts';
import { FileError } from './errors.ts';
import { type DirectoryHandle, kindOf, makeDirectory, statEntry } from './handles.ts';

const { O_RDONLY, O_RDWR, O_WRONLY, O_CREAT, O_EXCL, O_NONBLOCK = 0, O_NOFOLLOW = 0, W_OK } = constants;

/** Mode of a new file, less the umask. */
const newFileMode = 0o666;
const permissionBits = 0o7777;
/** Permission bits without set-uid, set-gid and sticky. */
const plainPermissionBits = 0o777;

const changes = new Limit();

/**
 * Runs the changes of one file in this process one after the other: a second edit reads the result of the first.
 *
 * @param path real
 */
export function withFileLock<T>(path: string, change: () => Promise<T>): Promise<T> {
  return changes.run(path, change);
}

export interface ReplaceOptions {
  /** State of the file when it was read. If the file has changed since, nothing is written. */
  readonly expected?: BigIntStats;
  /** Root of the conversation's files, which is never made. */
  readonly workspacePath: string;
  readonly signal: AbortSignal;
  /** See `ToolContext.onReplace`. */
  readonly onReplace?: ToolContext['onReplace'];
}

/**
 * Replaces the content of a file by `data`: a reader at any moment finds the old content or the new one. Missing
 * directories are made; permissions stay, and the owner where we may. Other hard links of the file retain the old content. A file that is
 * a mount of its own is written in place, so a reader may find a part of the new content.
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
  const { directory, undo } = await makeDirectory(dirname(path), options.workspacePath);
  try {
    return await replaceIn(directory, path, data, options);
  } catch (error) {
    await undo();
    throw error;
  } finally {
    await directory.close();
  }
}

async function replaceIn(
  directory: DirectoryHandle,
  path: string,
  data: Uint8Array,
  { expected, signal, onReplace }: ReplaceOptions,
): Promise<number | undefined> {
  const name = basename(path);
  const target = directory.at(name);
  const existing = await statEntry(target);
  if (existing) await mustBeReplaceable(target, existing);
  if (onReplace) {
    const before = existing ? await hashOfFile(target) : null;
    await onReplace({ path, before, after: hashOf(data) });
  }
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
    await rename(temporary, target).catch(async (error: unknown) => {
      if (!existing || !isOwnMount(error)) throw error;
      await writeInPlace(directory, name, data, existing);
      await unlink(temporary);
    });
  } catch (error) {
    await unlink(temporary).catch(onlyWhenAbsent);
    throw error;
  }
  await directory.sync();
  return existing && Number(existing.size);
}

/** Whether a rename failed because the file is a mount of its own, as Compose and dev containers mount single files. */
const isOwnMount = (error: unknown): boolean => ['EBUSY', 'EXDEV'].includes(errorCode(error) ?? '');

/** Writes over a file. The complete new content is in a file beside it until this returns; an error puts the old content back. */
async function writeInPlace(
  directory: DirectoryHandle,
  name: string,
  data: Uint8Array,
  existing: BigIntStats,
): Promise<void> {
  const file = await open(directory.at(name), O_RDWR | O_NOFOLLOW);
  try {
    await directory.confirm(file, name);
    if (!isSameVersion(existing, await file.stat({ bigint: true }))) {
      throw new FileError('stale', 'another program changed it at the same moment; read it again');
    }
    const before = await file.readFile();
    await overwrite(file, data).catch(async (error: unknown) => {
      await overwrite(file, before);
      throw error;
    });
  } finally {
    await file.close();
  }
}

async function overwrite(file: FileHandle, data: Uint8Array): Promise<void> {
  for (let at = 0; at < data.length; ) at += (await file.write(data, at, data.length - at, at)).bytesWritten;
  await file.truncate(data.length);
  await file.sync();
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

const hashOf = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** SHA-256 of a regular file; null: it is missing. @throws errors of the system */
export async function hashOfFile(path: string): Promise<string | null> {
  let file: FileHandle;
  try {
    file = await open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
  try {
    if (!(await file.stat()).isFile()) return null;
    const hash = createHash('sha256');
    for await (const chunk of file.createReadStream({ autoClose: false })) hash.update(chunk as Uint8Array);
    return hash.digest('hex');
  } finally {
    await file.close();
  }
}
