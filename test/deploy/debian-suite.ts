/** One suite of Debian for apt, which verifies its packages against Debian's keys and leaves the state of the system alone. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from './must.ts';
import { run } from './run.ts';
import { cacheDirectory } from './tool-cache.ts';

export type Suite = 'bookworm' | 'sid';
/** `apt-get` with one suite. Rejects with an Error when it fails. */
export type AptGet = (args: readonly string[], cwd?: string) => Promise<string>;

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
const defaultMirror = 'http://deb.debian.org/debian';
const aptMs = 300_000;

/** Brings the index of a suite up to date. It stays in the cache: an unchanged one is not read again. Needs the suite's lock. */
export async function aptGetOf(suite: Suite): Promise<AptGet> {
  if (!existsSync(keyring))
    throw new Error('there is no debian-archive-keyring, with whose keys packages are verified');
  const options = await optionsOf(join(cacheDirectory(), `apt-${suite}`), suite);
  const aptGet: AptGet = (args, cwd) =>
    must('apt-get', [...options, '-qq', ...args], { timeoutMs: aptMs, ...(cwd !== undefined && { cwd }) });
  // Without apt's own table of the index: the next command makes it in any case.
  await aptGet(['-o', 'pkgCacheFile::Generate=false', 'update']);
  return aptGet;
}

/** Options with which apt knows nothing but `suite`, and keeps everything below `directory`. */
async function optionsOf(directory: string, suite: Suite): Promise<string[]> {
  for (const path of ['state/lists/partial', 'cache/archives/partial', 'etc'])
    mkdirSync(join(directory, path), { recursive: true });
  const sources = join(directory, 'etc/sources.list');
  writeFileSync(sources, `deb [signed-by=${keyring}] ${await mirror()} ${suite} main\n`);
  const options = {
    'Dir::State': join(directory, 'state'),
    'Dir::State::status': '/dev/null',
    'Dir::Cache': join(directory, 'cache'),
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '-',
    'Acquire::Languages': 'none',
    // The directory is for this user alone, so the user that apt would change to cannot write there.
    'APT::Sandbox::User': process.getuid?.() === 0 ? 'root' : '',
  };
  return Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

/** The mirror that this machine uses, as the sources of apt name it. */
async function mirror(): Promise<string> {
  const format = ['--format', '$(REPO_URI) $(COMPONENT)', 'Identifier: Packages'];
  const { stdout } = await run('apt-get', ['indextargets', ...format], { timeoutMs: aptMs });
  return /^(\S+\/debian)\/? main$/m.exec(stdout)?.[1] ?? defaultMirror;
}
