import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { GitError } from './error.ts';
import type { GitRunner } from './runner.ts';

/** Objects that a store can borrow from a checkout. */
export interface Borrowed {
  /** Object directory; null when useless: a shallow clone does not show borrowers where its history ends. */
  readonly objectsPath: string | null;
  /** Some objects are missing and must be fetched one by one. */
  readonly isPartial: boolean;
}

/**
 * Inspects a route's checkout without running git in it, so that its configuration has no effect: one with a working
 * tree, a bare one, or a linked worktree.
 * @throws GitError `baseWorkspaceNotGitRepository`, `objectFormatUnsupported`
 */
export async function inspectCheckout(workspacePath: string, git: GitRunner): Promise<Borrowed> {
  const common = await commonDirectory(workspacePath);
  const objectsPath = join(common, 'objects');
  // A line of `objects/info/alternates` cannot hold these.
  if (/[\n"#]/.test(objectsPath) || !(await isDirectory(objectsPath)) || !(await exists(join(common, 'HEAD')))) {
    throw notRepository(workspacePath);
  }
  await checkObjectFormat(join(common, 'config'), git);
  if (await hasContent(join(common, 'shallow'))) return { objectsPath: null, isPartial: true };
  return { objectsPath, isPartial: await hasPromisedObjects(objectsPath) };
}

/** Directory of the objects and refs: `.git`, the target of a `.git` file, or the workspace itself. */
async function commonDirectory(workspacePath: string): Promise<string> {
  const top = await realpath(workspacePath).catch(() => {
    throw notRepository(workspacePath);
  });
  const gitDirectory = await gitDirectoryOf(top);
  const common = await readFile(join(gitDirectory, 'commondir'), 'utf8').catch(() => '.');
  return resolve(gitDirectory, common.trim());
}

async function gitDirectoryOf(top: string): Promise<string> {
  const inside = join(top, '.git');
  if (await isDirectory(inside)) return inside;
  const pointer = await readFile(inside, 'utf8').catch(() => null);
  if (pointer === null) return top;
  const target = /^gitdir: ([^\n]+)\n?$/.exec(pointer)?.[1];
  if (target === undefined) throw notRepository(top);
  return isAbsolute(target) ? target : resolve(top, target);
}

/** Reads the object format only: with `--file` and no includes, the file configures nothing. */
async function checkObjectFormat(configFile: string, git: GitRunner): Promise<void> {
  const text = await readFile(configFile, 'utf8').catch(() => '');
  if (!/objectformat/i.test(text)) return;
  const args = ['config', '--file', configFile, '--no-includes', '--get', 'extensions.objectformat'];
  const { stdout } = await git.run({ args, answers: [1] });
  const format = stdout.toString('utf8').trim().toLowerCase();
  if (format !== '' && format !== 'sha1') {
    throw new GitError('objectFormatUnsupported', `Repositories with ${format} object names are not supported`);
  }
}

async function hasPromisedObjects(objectsPath: string): Promise<boolean> {
  const packs = await readdir(join(objectsPath, 'pack')).catch(() => []);
  return packs.some((name) => name.endsWith('.promisor'));
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
const hasContent = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.size > 0,
    () => false,
  );

function notRepository(path: string): GitError {
  return new GitError('baseWorkspaceNotGitRepository', `${path} is not a git repository`);
}
