import { GitError } from './error.ts';
import { checkRepositoryPath } from './paths.ts';
import { parseTree, type TreeContext } from './tree.ts';

/** Named at once: a list of arguments is bounded by the system. */
const batchFiles = 64;

/** A file of a commit, by name. */
interface Blob {
  readonly path: string;
  readonly sha: string;
  readonly bytes: number;
}

/**
 * The text of one file as a commit has it: from the object database, never from a working tree. Null when there is none, or
 * it is a link, a submodule or a directory. Bytes that are no UTF-8 become U+FFFD.
 * @throws GitError `fileTooLarge`, `pathOutside`
 */
export async function readCommitted(context: TreeContext, sha: string, path: string): Promise<string | null> {
  const [blob] = await findBlobs(context, sha, [path]);
  if (blob === undefined) return null;
  if (blob.bytes > context.limits.readBytes) {
    throw new GitError('fileTooLarge', `The file has more than ${context.limits.readBytes} bytes`);
  }
  return (await readBlobs(context, [blob])).get(path) ?? null;
}

/** Many files of a commit; those that are too large, alone or with those before them, are null. Every path has an answer. */
export async function readManyCommitted(
  context: TreeContext,
  sha: string,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  const texts = new Map<string, string | null>(paths.map((path) => [path, null]));
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
  return parseTree(stdout).flatMap(({ mode, type, sha: name, bytes, path }) =>
    type === 'blob' && mode !== '120000' ? [{ path: path.toString('utf8'), sha: name, bytes }] : [],
  );
}

async function readBlobs({ git, gitDir, signal }: TreeContext, blobs: readonly Blob[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
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
    texts.set(path, stdout.toString('utf8', start, start + bytes));
    at = start + bytes + 1;
  }
  return texts;
}
