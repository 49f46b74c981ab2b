/** Tests the fake forge with real git and GitHub's own program for signatures, because other tests depend on it. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { verify } from '@octokit/webhooks-methods';
import t, { type Test } from 'tap';
import { issueToken } from './auth.ts';
import { commitFiles, Forge, type ForgeRepository } from './index.ts';
import { receiveHooks } from './receiver.ts';

const run = promisify(execFile);
const contents = { contents: 'read', metadata: 'read' };

async function world(t: Test) {
  const forge = await new Forge().start();
  t.teardown(() => forge.stop());
  const repo = await forge.addGitRepository('acme', 'shop', { 'a.ts': 'one\ntwo\nthree\n' });
  const { gitDirectory = '' } = repo;
  await commitFiles(gitDirectory, 'change', { 'a.ts': 'one\nTWO\nthree\n', 'b.ts': 'new\n' }, { from: 'main' });
  const pull = await forge.openPull(repo, { number: 7 });
  return { forge, repo, gitDirectory, pull, home: t.testdir() };
}

/** Git as the backend runs it: the token in the environment only. */
async function git(home: string, token: string | null, args: readonly string[]): Promise<string> {
  const header = token === null ? '' : `AUTHORIZATION: basic ${btoa(`x-access-token:${token}`)}`;
  const { stdout } = await run('git', args, {
    cwd: home,
    timeout: 60_000,
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_TERMINAL_PROMPT: '0',
      GIT_ASKPASS: '/bin/false',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'http.extraheader',
      GIT_CONFIG_VALUE_0: header,
    },
  });
  return stdout.trim();
}

const tokenFor = (forge: Forge, repo: ForgeRepository, own: object = {}) =>
  issueToken(forge, {
    installationId: repo.installationId,
    repositories: [repo.id],
    permissions: contents,
    ...own,
  }).value;

t.test('git reads branches and pull request heads with a token, and nothing without one', async (t) => {
  const { forge, repo, pull, home } = await world(t);
  const url = `${forge.url}/acme/shop.git`;
  const listed = await git(home, tokenFor(forge, repo), ['ls-remote', url]);
  t.match(listed, new RegExp(`^${pull.headSha}\\trefs/heads/change$`, 'm'));
  t.match(listed, new RegExp(`^${pull.headSha}\\trefs/pull/7/head$`, 'm'));
  const other = await forge.addGitRepository('acme', 'other', { 'a.ts': 'x\n' });
  const refused: Record<string, string | null> = {
    none: null,
    unknown: 'ghs_unknown',
    'of another repository': tokenFor(forge, other),
    'without contents': tokenFor(forge, repo, { permissions: { metadata: 'read' } }),
  };
  forge.tokenLifeMs = -1;
  refused['expired'] = tokenFor(forge, repo);
  for (const [what, token] of Object.entries(refused)) {
    await t.rejects(git(home, token, ['ls-remote', url]), { message: /Authentication failed|could not read/ }, what);
  }
});

t.test('git can fetch any commit by its hash, also with a long token', async (t) => {
  const { forge, repo, gitDirectory, pull, home } = await world(t);
  forge.tokenFormat = 'stateless';
  const before = pull.headSha;
  await commitFiles(gitDirectory, 'change', { 'b.ts': 'newer\n' });
  t.not((await forge.push(repo, 7)).headSha, before);
  const directory = join(home, 'mirror');
  await git(home, null, ['init', '--quiet', '--bare', directory]);
  const args = ['--git-dir', directory];
  await git(home, tokenFor(forge, repo), [...args, 'fetch', '--quiet', `${forge.url}/acme/shop.git`, before]);
  t.equal(await git(home, null, [...args, 'show', `${before}:b.ts`]), 'new');
});

t.test('a large repository is fetched completely', async (t) => {
  const { forge, repo, gitDirectory, home } = await world(t);
  const large = Array.from({ length: 20_000 }, (_, at) => `line ${at} ${Math.sin(at)}\n`).join('');
  await commitFiles(gitDirectory, 'main', { 'large.txt': large });
  const clone = join(home, 'clone');
  await git(home, tokenFor(forge, repo), ['clone', '--quiet', `${forge.url}/acme/shop.git`, clone]);
  t.equal(readFileSync(join(clone, 'large.txt'), 'utf8'), large);
  t.notOk(existsSync(join(clone, 'b.ts')));
});

t.test('events are sent as signed webhooks to a subscribed App', async (t) => {
  const { forge, repo, gitDirectory } = await world(t);
  const { seen } = await receiveHooks(t, forge);
  await commitFiles(gitDirectory, 'change', { 'b.ts': 'newer\n' });
  const before = forge.pull(repo, 7).headSha;
  const { headSha } = await forge.push(repo, 7);
  await forge.settled();
  forge.comment(repo, 7, 'ada', '@oratorio review');
  await forge.settled();
  forge.uninstall('acme');
  await forge.settled();
  forge.install('acme');
  await forge.settled();
  forge.act(repo, 7, 'closed', { state: 'closed', isMerged: true });
  await forge.settled();
  for (const { body, signature } of seen) t.ok(await verify('hush', body, signature));
  t.match(
    seen.map(({ event, body }) => [event, JSON.parse(body)]),
    [
      ['pull_request', { action: 'synchronize', before, after: headSha, pull_request: { head: { sha: headSha } } }],
      [
        'issue_comment',
        {
          action: 'created',
          issue: { number: 7, pull_request: {} },
          comment: { body: '@oratorio review', user: { login: 'ada', type: 'User' }, author_association: 'MEMBER' },
          repository: { full_name: 'acme/shop', html_url: `${forge.url}/acme/shop` },
        },
      ],
      ['installation', { action: 'deleted', installation: { account: { login: 'acme' } } }],
      ['installation', { action: 'created', installation: { id: repo.installationId } }],
      ['pull_request', { action: 'closed', number: 7, pull_request: { merged: true } }],
    ],
  );
  t.match(
    forge.deliveries.map(({ statusCode }) => statusCode),
    [202, 202, 202, 202, 202],
  );
  forge.app.events = [];
  forge.comment(repo, 7, 'ada', 'Nobody is told');
  await forge.settled();
  t.equal(seen.length, 5);
});

t.test('a request can be held before and after its execution', async (t) => {
  const { forge } = await world(t);
  const ask = async (path = '/nothing') => (await fetch(forge.apiUrl + path)).status;
  const before = forge.faults.hold((_, path) => path === '/nothing');
  const asked = ask();
  await before.reached;
  t.equal(forge.count('GET', /nothing/), 0);
  t.equal(await ask('/other'), 404);
  before.release();
  t.equal(await asked, 404);
  const after = forge.faults.hold((_, path) => path === '/nothing', 'after');
  const again = ask();
  await after.reached;
  t.equal(forge.count('GET', /nothing/), 2);
  after.release();
  t.equal(await again, 404);
  const gone = forge.faults.hold(() => true);
  const aborter = new AbortController();
  const aborted = fetch(forge.apiUrl, { signal: aborter.signal });
  await gone.reached;
  aborter.abort();
  await t.rejects(aborted);
});
