import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import * as v from 'valibot';
import { type BoundedReadOptions, FileRefusedError, readBoundedFile, withAdvice } from './bounded-file.ts';

/** How `writeFileAtomic` makes the file. */
export interface WriteOptions {
  /** Permissions of the new file; default 0600. */
  readonly mode?: number;
  /** Default true. False for a file that each start writes again: after a power cut it may be empty, after a kill never. */
  readonly isFlushed?: boolean;
}

/** Result of reading a JSON document. */
export type JsonFile<T> = { kind: 'ok'; value: T } | { kind: 'missing' } | { kind: 'invalid'; problem: string };

/**
 * Replaces a file so that a reader finds the old content or the new one, whole, at any moment, a power cut included. Blocks
 * for two flushes to disk. Leaves nothing behind when it throws. A file that is a mount of its own, as in a container, is written in
 * place: a reader may find a part of the new content.
 */
export function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  { mode = 0o600, isFlushed = true }: WriteOptions = {},
): void {
  const temporary = temporaryName(path);
  try {
    writeNew(temporary, data, mode, isFlushed);
    moveInto(temporary, path, data);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  if (isFlushed) flushDirectory(dirname(path));
}

/**
 * Makes a file (0600) unless its name exists, also as a link. A reader finds no file or the whole content, after a kill and a power
 * cut, too; on a file system without hard links a part of it.
 *
 * @returns whether this call made the file
 */
export function createFileAtomic(path: string, data: string): boolean {
  if (lstatSync(path, { throwIfNoEntry: false })) return false;
  const temporary = temporaryName(path);
  try {
    writeNew(temporary, data, 0o600, true);
    linkOrWrite(temporary, path, data);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  flushDirectory(dirname(path));
  return true;
}

/** Codes of a file system without hard links. */
const withoutLinks = new Set<string | undefined>(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

function linkOrWrite(temporary: string, path: string, data: string): void {
  try {
    linkSync(temporary, path);
  } catch (error) {
    if (!withoutLinks.has((error as NodeJS.ErrnoException).code)) throw error;
    writeNew(path, data, 0o600, true);
  }
}

function writeNew(path: string, data: string | Uint8Array, mode: number, isFlushed: boolean): void {
  const fd = openSync(path, 'wx', mode);
  try {
    writeFully(fd, data);
    if (isFlushed) fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Like `writeFileAtomic`, without blocking. Two of them on one path may land in either order: see `AtomicFile`. */
export async function writeFileAtomicAsync(
  path: string,
  data: string | Uint8Array,
  { mode = 0o600, isFlushed = true }: WriteOptions = {},
): Promise<void> {
  const temporary = temporaryName(path);
  try {
    const file = await open(temporary, 'wx', mode);
    try {
      await file.writeFile(data);
      if (isFlushed) await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path).catch((error: unknown) => writeInPlace(error, temporary, path, data));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  if (process.platform === 'win32' || !isFlushed) return;
  const directory = await open(dirname(path), 'r');
  await directory.sync().finally(() => directory.close());
}

/** A file that is written often: writes happen one after the other, and of those that queue up only the last. */
export class AtomicFile {
  readonly path: string;
  readonly #options: WriteOptions;
  #next: string | Uint8Array = '';
  #writing: Promise<void> = Promise.resolve();
  #queued: Promise<void> | undefined;

  constructor(path: string, options: WriteOptions = {}) {
    this.path = path;
    this.#options = options;
  }

  /** Resolves when `data`, or later data, is on disk. Rejects with the error of that write; a later write is not hindered. */
  write(data: string | Uint8Array): Promise<void> {
    this.#next = data;
    this.#queued ??= this.#writing
      .catch(() => {})
      .then(() => {
        this.#queued = undefined;
        this.#writing = writeFileAtomicAsync(this.path, this.#next, this.#options);
        return this.#writing;
      });
    return this.#queued;
  }
}

/** The pid in a name that `temporaryName` has given, and `undefined` for any other name. */
export function writerOfTemporary(name: string): number | undefined {
  const pid = /^\..+\.(\d+)\.[0-9a-f]{12}\.tmp$/.exec(name)?.[1];
  return pid === undefined ? undefined : Number(pid);
}

const documentBytes = 64 * 1_048_576;

/** Reads and validates a JSON document of this user's own state. Never throws for its content, and never blocks on a path that is not a file. */
export function readJson<S extends v.GenericSchema>(path: string, schema: S): JsonFile<v.InferOutput<S>> {
  return readDocument(path, schema, { maxBytes: documentBytes, owner: 'any', links: 'follow' });
}

/** Like `readJson`, for an untrusted file: see `readBoundedFile`. */
export function readUntrustedJson<S extends v.GenericSchema>(path: string, schema: S): JsonFile<v.InferOutput<S>> {
  return readDocument(path, schema, {});
}

function readDocument<S extends v.GenericSchema>(
  path: string,
  schema: S,
  options: BoundedReadOptions,
): JsonFile<v.InferOutput<S>> {
  let document: unknown;
  try {
    const text = readBoundedFile(path, options);
    if (text === undefined) return { kind: 'missing' };
    document = JSON.parse(text);
  } catch (error) {
    // The parser's message quotes the text, which may hold tokens.
    return { kind: 'invalid', problem: error instanceof FileRefusedError ? error.fault : 'is not JSON' };
  }
  const result = v.safeParse(schema, document);
  if (result.success) return { kind: 'ok', value: result.output };
  return { kind: 'invalid', problem: describe(result.issues[0]) };
}

function moveInto(temporary: string, path: string, data: string | Uint8Array): void {
  try {
    renameSync(temporary, path);
  } catch (error) {
    writeInPlace(error, temporary, path, data);
  }
}

/**
 * Writes over a file that cannot be replaced because it is a mount of its own. The complete content is in `temporary` until this
 * returns.
 *
 * @throws FileRefusedError for a directory; else the error of the rename, for another reason
 */
function writeInPlace(error: unknown, temporary: string, path: string, data: string | Uint8Array): void {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'EISDIR')
    withAdvice(() => {
      throw new FileRefusedError(path, 'notRegular', 'is a directory', { cause: error });
    });
  if (!['EBUSY', 'EXDEV'].includes(code)) throw error;
  const fd = openSync(path, 'r+');
  try {
    ftruncateSync(fd);
    writeFully(fd, data);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  rmSync(temporary, { force: true });
}

/** Names the writer, so that the litter of a crash can be distinguished from work under way. */
export function temporaryName(path: string): string {
  return join(dirname(path), `.${basename(path)}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`);
}

function writeFully(fd: number, data: string | Uint8Array): void {
  const bytes = typeof data === 'string' ? Buffer.from(data) : data;
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

/** A rename is durable once its directory is. Windows cannot open a directory and needs no such thing. */
function flushDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The first problem, by key path. Never the value that was found: it may be a secret. */
function describe(issue: v.BaseIssue<unknown>): string {
  const where = v.getDotPath(issue) ?? 'the document';
  return `${where} must be ${issue.expected ?? 'valid'}`;
}
