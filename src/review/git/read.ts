import { GitError } from './error.ts';
import { checkRepositoryPath } from './paths.ts';
import { parseTree, type TreeContext } from './tree.ts';

/** Files named in one command: the system bounds a list of arguments. */
const batchFiles = 64;

/** A file of a commit, by name. */
interface Blob {
  readonly path: string;
  readonly sha: string;
  readonly bytes: number;
}

interface Question {
  readonly path: string;
  readonly resolve: (text: string | null) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads single files of a commit from the object database, never from a working tree. Null when a file is missing, or
 * is a link, a submodule or a directory. Bytes that are not UTF-8 become U+FFFD. The same two processes serve all requests of
 * one turn of the event loop.
 * @returns a function that rejects with GitError `fileTooLarge`, `pathOutside`
 */
export function committedReader(context: TreeContext, sha: string): (path: string) => Promise<string | null> {
  let asked: Question[] = [];
  const answer = async (questions: readonly Question[]) => {
    const { readBytes } = context.limits;
    const blobs = await findBlobs(context, sha, [...new Set(questions.map(({ path }) => path))]);
    const texts = await readBlobs(
      context,
      blobs.filter(({ bytes }) => bytes <= readBytes),
    );
    const large = new Set(blobs.filter(({ bytes }) => bytes > readBytes).map(({ path }) => path));
    for (const { path, resolve, reject } of questions) {
      if (!large.has(path)) resolve(texts.get(path)?.toString('utf8') ?? null);
      else reject(new GitError('fileTooLarge', `The file has more than ${readBytes} bytes`));
    }
  };
  const flush = () => {
    const questions = asked;
    asked = [];
    answer(questions).catch((error: unknown) => {
      for (const { reject } of questions) reject(error);
    });
  };
  return async (path) => {
    checkRepositoryPath(path);
    return await new Promise((resolve, reject) => {
      asked.push({ path, resolve, reject });
      if (asked.length === 1) setImmediate(() => asked.length > 0 && flush());
      if (asked.length === batchFiles) flush();
    });
  };
}

/**
 * Bytes of many files of a commit; files that are too large, alone or with those before them, are null. Every path has an
 * answer.
 */
export async function readManyCommitted(
  context: TreeContext,
  sha: string,
  paths: readonly string[],
): Promise<ReadonlyMap<string, Buffer | null>> {
  const texts = new Map<string, Buffer | null>(paths.map((path) => [path, null]));
  const { readBytes, readAllBytes } = context.limits;
  let room = readAllBytes;
  for (let at = 0; at < paths.length; at += batchFiles) {
    const blobs = await findBlobs(context, sha, paths.slice(at, at + batchFiles));
    const readable = blobs.filter(({ bytes }) => {
      const fits = bytes <= Math.min(readBytes, room);
      if (fits) room -= bytes;
      return fits;
    });
    for (const [path, text] of await readBlobs(context, readable)) texts.set(path, text);
  }
  return texts;
}

async function findBlobs({ git, gitDir, signal }: TreeContext, sha: string, paths: readonly string[]): Promise<Blob[]> {
  for (const path of paths) checkRepositoryPath(path);
  const { stdout } = await git.run({
    gitDir,
    args: ['ls-tree', '-l', '-z', '--full-tree', sha, '--', ...paths],
    signal,
  });
  // A directory named beside one of its files is listed whole.
  const named = new Set(paths);
  return parseTree(stdout).flatMap(({ mode, type, sha: name, bytes, path }) => {
    const text = path.toString('utf8');
    return type === 'blob' && mode !== '120000' && named.has(text) ? [{ path: text, sha: name, bytes }] : [];
  });
}

async function readBlobs({ git, gitDir, signal }: TreeContext, blobs: readonly Blob[]): Promise<Map<string, Buffer>> {
  const texts = new Map<string, Buffer>();
  if (blobs.length === 0) return texts;
  const headerBytes = 128;
  const { stdout } = await git.run({
    gitDir,
    args: ['cat-file', '--batch'],
    stdin: blobs.map(({ sha }) => `${sha}\n`).join(''),
    maxBytes: blobs.reduce((sum, { bytes }) => sum + bytes + headerBytes, 0),
    signal,
  });
  let at = 0;
  for (const { path, sha, bytes } of blobs) {
    const start = stdout.indexOf(0x0a, at) + 1;
    if (stdout.toString('latin1', at, start) !== `${sha} blob ${bytes}\n`) {
      throw new GitError('gitCommandFailed', 'git cat-file gave another object than was asked for');
    }
    texts.set(path, stdout.subarray(start, start + bytes));
    at = start + bytes + 1;
  }
  return texts;
}
