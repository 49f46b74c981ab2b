import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  cloneRepository,
  cloneUrlFor,
  findGit,
  isOfRepository,
  isSameRemote,
  parseRemote,
} from '../../../src/deploy/git/index.ts';

interface Setup {
  readonly directory: string;
  readonly env: Record<string, string>;
  readonly url: string;
  readonly path: string;
}

/** A bare repository `owner/name`, which https://github.com stands for. */
function setUp(t: Test): Setup {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-git-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const bare = join(directory, 'host', 'owner', 'name.git');
  mkdirSync(bare, { recursive: true });
  execFileSync('git', ['init', '--quiet', '--bare', bare]);
  const config = join(directory, 'gitconfig');
  writeFileSync(config, `[url "${join(directory, 'host')}/"]\n\tinsteadOf = https://github.com/\n`);
  const env = { PATH: process.env['PATH'] ?? '', HOME: directory, GIT_CONFIG_GLOBAL: config };
  return {
    directory,
    env,
    url: 'https://github.com/owner/name.git',
    path: join(directory, 'workspace', 'owner__name'),
  };
}

t.test('git is found, and one that is missing or too old is named', async (t) => {
  const { directory, env } = setUp(t);
  t.match((await findGit({ env })).version, /^\d+\.\d+/);
  await t.rejects(findGit({ env: { PATH: directory } }), { code: 'gitMissing', hint: /apt-get install git/ });
  writeFileSync(join(directory, 'git'), '#!/bin/sh\necho git version 2.20.1\n', { mode: 0o755 });
  await t.rejects(findGit({ env: { PATH: directory } }), { code: 'gitMissing', message: /2\.20\.1 is too old/ });
});

t.test('a repository is cloned whole, and an existing checkout stays', async (t) => {
  const { directory, env, url, path } = setUp(t);
  const git = await findGit({ env });
  const request = { url, path, repository: 'Owner/Name' };
  mkdirSync(join(directory, 'workspace', '.owner__name.clone-0123'), { recursive: true });
  t.equal(await cloneRepository(git, request), 'cloned');
  t.strictSame(readdirSync(join(directory, 'workspace')), ['owner__name'], 'what a killed clone left is gone');
  t.equal(await cloneRepository(git, request), 'kept');
  t.equal(await cloneRepository(git, { ...request, url: 'git@github.com:owner/name.git' }), 'kept');
  const other = { ...request, url: 'https://github.com/owner/other.git', repository: 'owner/other' };
  await t.rejects(cloneRepository(git, other), { code: 'foreignDirectory', message: /not of owner\/other/ });
  await t.rejects(cloneRepository(git, { ...request, url: 'https://ghe.example.com/owner/name.git' }), {
    code: 'foreignDirectory',
  });
  execFileSync('git', ['-C', path, 'remote', 'set-url', 'origin', 'https://x:hunter22@github.com/owner/name.git']);
  const error = await cloneRepository(git, request).catch((reason: unknown) => reason);
  t.match(error, { code: 'secretRefused', hint: /remote set-url/ });
  t.notMatch(String(error), 'hunter22');
});

t.test('a failed clone leaves nothing, and its error names the repository', async (t) => {
  const { directory, env } = setUp(t);
  const git = await findGit({ env });
  const path = join(directory, 'workspace', 'owner__absent');
  const request = { url: 'https://github.com/owner/absent.git', path, repository: 'owner/absent' };
  await t.rejects(cloneRepository(git, request), { code: 'cloneFailed', message: /absent/, hint: /Check the name/ });
  t.strictSame(readdirSync(join(directory, 'workspace')), []);
  await t.rejects(cloneRepository(git, request, { signal: AbortSignal.abort() }), { code: 'cancelled' });
  mkdirSync(path);
  writeFileSync(join(path, 'notes.txt'), '');
  await t.rejects(cloneRepository(git, request), { code: 'foreignDirectory', message: /not a git repository/ });
  t.ok(existsSync(join(path, 'notes.txt')));
});

t.test('the address is the one that is wanted, else https where it answers, else ssh', async (t) => {
  const { directory, env, url } = setUp(t);
  const git = await findGit({ env });
  t.equal(await cloneUrlFor(git, 'owner/name'), url);
  t.equal(await cloneUrlFor(git, 'owner/name', 'git@github.com:Owner/Name.git'), 'git@github.com:Owner/Name.git');
  await t.rejects(cloneUrlFor(git, 'owner/name', 'git@github.com:owner/other.git'), { code: 'invalidInput' });
  const bin = join(directory, 'bin');
  mkdirSync(bin);
  writeFileSync(
    join(bin, 'git'),
    `#!/bin/sh
[ "$1" = --version ] && echo git version 2.39.5 && exit
[ "$GIT_TERMINAL_PROMPT" = 0 ] && echo "fatal: could not read Username for 'https://github.com': terminal prompts disabled" >&2
exit 128
`,
    { mode: 0o755 },
  );
  const refused = await findGit({ env: { ...env, PATH: `${bin}:${env['PATH']}` } });
  t.equal(await cloneUrlFor(refused, 'owner/name'), 'git@github.com:owner/name.git');
});

t.test('addresses are read as git reads them, and those with credentials refused without being shown', async (t) => {
  const same = [
    'https://github.com/Owner/Name',
    'git@github.com:owner/name.git',
    'ssh://git@ssh.github.com:443/owner/name.git',
  ];
  for (const each of same) {
    t.ok(isSameRemote(parseRemote(each), parseRemote('https://github.com/owner/name.git')), each);
    t.ok(isOfRepository(parseRemote(each), 'owner/name'), each);
  }
  t.notOk(isOfRepository(parseRemote('https://github.com/evil/owner/name'), 'owner/name'));
  t.ok(isOfRepository(parseRemote('/srv/git/owner/name.git'), 'owner/name'));
  for (const url of [
    'https://user:geheim99@github.com/o/n',
    'https://geheim99@github.com/o/n',
    'ssh://git:geheim99@github.com/o/n',
  ]) {
    t.throws(() => parseRemote(url), { code: 'secretRefused' });
    t.notMatch(problemOf(url), 'geheim99');
  }
  for (const url of [
    '',
    '-u',
    '--upload-pack=x',
    'ext::sh -c x',
    'owner/name',
    'ftp://h/o/n',
    'https://h/o/n?x',
    'https:// h/o/n',
    'https://h/%',
  ]) {
    t.throws(() => parseRemote(url), { code: 'invalidInput' }, url);
  }
});

function problemOf(url: string): string {
  try {
    return JSON.stringify(parseRemote(url));
  } catch (error) {
    return String(error);
  }
}
