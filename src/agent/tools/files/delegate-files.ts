import { isAbsolute } from 'node:path';
import { PathError, resolveInWorkspace } from '../paths.ts';
import { errorCode, formatBytes } from '../text.ts';
import { FileError, problemWithFile } from './errors.ts';
import { openFile } from './handles.ts';
import { replaceFile, withFileLock } from './replace-file.ts';
import type { FileToolSettings } from './settings.ts';

/** The whole of an answer: a message holds it, up to six times as long. */
const maxAnswerBytes = 2 * 1_048_576;

/** A file that is not read or written. The message is a sentence. */
export class DelegateFileError extends Error {
  override readonly name = 'DelegateFileError';
  readonly isMissing: boolean;

  constructor(message: string, options: ErrorOptions & { readonly isMissing?: boolean } = {}) {
    super(message, options);
    this.isMissing = options.isMissing === true;
  }
}

/** Lines of a file. */
export interface LineRange {
  /** First one, from 1. Absent: 1. */
  readonly line?: number | undefined;
  /** Absent: all. */
  readonly limit?: number | undefined;
}

/** Files of a workspace for an external agent. All methods throw DelegateFileError. */
export interface DelegateFiles {
  /** Real path of a file in the workspace that may be touched. It need not exist. */
  readonly locate: (workspacePath: string, given: string) => Promise<string>;
  /** Reads the exact text of the file. @param given absolute */
  readonly read: (workspacePath: string, given: string, range: LineRange) => Promise<string>;
  /** Replaces a file whole, or makes it. @param path result of `locate`, which must still be valid */
  readonly write: (workspacePath: string, path: string, content: string, signal: AbortSignal) => Promise<void>;
}

export function createDelegateFiles(settings: FileToolSettings): DelegateFiles {
  const { maxFileBytes } = settings;

  async function locate(workspacePath: string, given: string): Promise<string> {
    if (!isAbsolute(given)) throw new DelegateFileError(`${quoted(given)} is refused: give an absolute path.`);
    const { path, isInside, isBlocked, blockedBecause } = await resolveInWorkspace(workspacePath, given, settings);
    if (isBlocked) throw new DelegateFileError(`${quoted(given)} is refused: it ${blockedBecause ?? 'is blocked'}.`);
    if (!isInside) throw new DelegateFileError(`${quoted(given)} is refused: it is outside the workspace.`);
    return path;
  }

  async function read(workspacePath: string, given: string, range: LineRange): Promise<string> {
    const { handle, stats, close } = await openFile(await locate(workspacePath, given));
    try {
      const size = Number(stats.size);
      if (size > maxFileBytes) throw tooLarge(given, size, maxFileBytes);
      const bytes = Buffer.alloc(size);
      const { bytesRead } = await handle.read(bytes, 0, size, 0);
      const text = linesOf(textOf(given, bytes.subarray(0, bytesRead)), range);
      const length = Buffer.byteLength(text);
      if (length > maxAnswerBytes) throw tooLarge(given, length, maxAnswerBytes, ' Ask for fewer lines.');
      return text;
    } finally {
      await close();
    }
  }

  async function write(workspacePath: string, path: string, content: string, signal: AbortSignal): Promise<void> {
    const data = Buffer.from(content, 'utf8');
    if (data.length > maxFileBytes) throw tooLarge(path, data.length, maxFileBytes);
    if ((await locate(workspacePath, path)) !== path) throw new FileError('moved', 'it leads elsewhere now');
    await withFileLock(path, () => replaceFile(path, data, { workspacePath, signal }));
  }

  return {
    locate: (workspacePath, given) => spoken(given, () => locate(workspacePath, given)),
    read: (workspacePath, given, range) => spoken(given, () => read(workspacePath, given, range)),
    write: (workspacePath, path, content, signal) => spoken(path, () => write(workspacePath, path, content, signal)),
  };
}

/** Converts errors of a file into a `DelegateFileError`; other errors pass. */
async function spoken<T>(given: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PathError) throw new DelegateFileError(error.message, { cause: error });
    const problem = problemWithFile(error);
    if (problem === undefined) throw error;
    const isMissing = errorCode(error) === 'ENOENT';
    throw new DelegateFileError(`${quoted(given)}: ${problem}.`, { cause: error, isMissing });
  }
}

/** Exact text of a file, so that writing it back changes nothing: no replacement characters, and the mark stays. */
function textOf(given: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new DelegateFileError(`${quoted(given)} is not a text in UTF-8.`, { cause });
  }
}

/** The lines with their ends. */
function linesOf(text: string, { line = 1, limit }: LineRange): string {
  const from = startOf(text, Math.max(0, line - 1), 0);
  return limit === undefined ? text.slice(from) : text.slice(from, startOf(text, limit, from));
}

/** Index at which the line begins that is `lines` after the one at `from`; the end of the text when there are fewer. */
function startOf(text: string, lines: number, from: number): number {
  let at = from;
  for (let left = lines; left > 0; left -= 1) {
    const end = text.indexOf('\n', at);
    if (end === -1) return text.length;
    at = end + 1;
  }
  return at;
}

const tooLarge = (given: string, size: number, most: number, advice = ''): DelegateFileError =>
  new DelegateFileError(`${quoted(given)} has ${formatBytes(size)}; the most is ${formatBytes(most)}.${advice}`);

const quoted = (given: string): string => (given.length > 300 ? `${given.slice(0, 300)}…` : given);
