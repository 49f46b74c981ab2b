import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gitEnvironment } from '../../git/index.ts';
import { type Files, onChange, onMain, pull } from './bookshop.ts';

const execute = promisify(execFile);

const environment = {
  ...gitEnvironment(process.env, { transports: ['file'] }),
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@bookshop.example',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@bookshop.example',
};

/** The bundled repository on disk. */
export interface DemoRepository {
  /** Base of `owner/name.git`. */
  readonly gitEndpoint: string;
  /** Checkout of `main`. */
  readonly checkout: string;
  readonly baseSha: string;
  readonly headSha: string;
}

/** Makes the checkout and the repository it was cloned from, with the head of the pull request, below `directory`. */
export async function makeRepository(directory: string, owner: string, name: string): Promise<DemoRepository> {
  const checkout = join(directory, name);
  const bare = join(directory, 'source', owner, `${name}.git`);
  await mkdir(checkout, { mode: 0o700 });
  await mkdir(dirname(bare), { recursive: true, mode: 0o700 });
  await git(checkout, 'init', '--quiet', '--initial-branch=main', '--template=');
  const baseSha = await commit(checkout, onMain, 'Open the shop');
  await git(checkout, 'checkout', '--quiet', '-b', pull.headRef);
  const headSha = await commit(checkout, onChange, pull.title);
  await git(checkout, 'clone', '--quiet', '--bare', '--template=', checkout, bare);
  await git(checkout, `--git-dir=${bare}`, 'update-ref', `refs/pull/${pull.number}/head`, headSha);
  for (const key of ['uploadpack.allowFilter', 'uploadpack.allowAnySHA1InWant'])
    await git(checkout, `--git-dir=${bare}`, 'config', key, 'true');
  await git(checkout, 'checkout', '--quiet', 'main');
  await git(checkout, 'branch', '--quiet', '-D', pull.headRef);
  return { gitEndpoint: new URL(`file://${join(directory, 'source')}`).href, checkout, baseSha, headSha };
}

async function commit(checkout: string, files: Files, message: string): Promise<string> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(checkout, path)), { recursive: true });
    await writeFile(join(checkout, path), text);
  }
  await git(checkout, 'add', '--all');
  await git(checkout, 'commit', '--quiet', '--message', message);
  return git(checkout, 'rev-parse', 'HEAD');
}

async function git(directory: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await execute('git', ['-C', directory, ...args], { env: environment });
  return stdout.trim();
}
