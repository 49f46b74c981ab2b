import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { defaultGitLimits, gitEndpointOf, openReviewGit } from '../../../src/review/git/index.ts';
import { GitRunner } from '../../../src/review/git/runner.ts';
import { git, Lab } from './helpers.ts';
import { HttpRemote } from './http-remote.ts';

t.test('variables of our own environment do not reach git', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const remote = await HttpRemote.start(t, join(lab.directory, 'forge'));
  const reviews = await lab.open({ gitEndpoint: remote.endpoint });
  const canary = join(lab.directory, 'canary');
  const planted: Record<string, string> = {
    GIT_DIR: '/nonexistent',
    GIT_WORK_TREE: '/nonexistent',
    GIT_TRACE: join(lab.directory, 'trace'),
    GIT_TRACE_CURL: join(lab.directory, 'trace-curl'),
    GIT_SSH_COMMAND: `touch ${canary}`,
    GIT_EXTERNAL_DIFF: `touch ${canary}`,
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'core.fsmonitor',
    GIT_CONFIG_VALUE_0: `touch ${canary}`,
    GIT_CONFIG_PARAMETERS: `'core.fsmonitor=touch ${canary}'`,
    GIT_EXEC_PATH: lab.directory,
    GIT_TEMPLATE_DIR: lab.directory,
    GIT_ASKPASS: `touch ${canary}`,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: '/nonexistent',
    https_proxy: 'http://127.0.0.1:1',
    http_proxy: 'http://127.0.0.1:1',
  };
  const before = { ...process.env };
  Object.assign(process.env, planted);
  t.teardown(() => {
    for (const name of Object.keys(planted)) delete process.env[name];
    Object.assign(process.env, before);
  });
  const found = await reviews.prepare(lab.target(story));
  t.equal(found.headSha, story.head);
  t.strictSame(readdirSync(lab.directory).sort(), ['forge', 'workspace', 'worktrees']);
});

t.test('endpoints', async (t) => {
  const lab = new Lab(t);
  const open = (gitEndpoint: string, allowFileProtocol = false) =>
    openReviewGit({
      worktreeRoot: lab.root,
      gitEndpoint,
      allowFileProtocol,
      retention: { succeededMs: 0, failedMs: 0 },
    });
  for (const refused of [
    'http://github.com',
    'ssh://git@github.com',
    'git://github.com',
    'ext::sh -c x',
    'file:///srv',
    'https://user:pass@github.com',
    'https://github.com?x',
    'nonsense',
  ]) {
    await t.rejects(open(refused), TypeError, refused);
  }
  await (await open('https://github.com/')).close();
  await (await open('http://localhost:3000')).close();
  t.equal(gitEndpointOf('https://api.github.com'), 'https://github.com');
  t.equal(gitEndpointOf('https://ghe.example.com/api/v3'), 'https://ghe.example.com');
  t.equal(gitEndpointOf('https://api.github.com', 'https://git.example.com'), 'https://git.example.com');
  t.throws(() => git(lab.directory, ['rev-parse']), 'the test itself runs in no repository');
});

t.test('no command reaches further than its protocol', async (t) => {
  const lab = new Lab(t);
  lab.begin();
  const canary = join(lab.directory, 'canary');
  const runner = new GitRunner({
    path: process.env['PATH'] ?? '',
    emptyDirectory: lab.directory,
    limits: defaultGitLimits,
  });
  t.teardown(() => runner.close());
  const local = `file://${lab.upstream.path}`;
  const tricks = [
    `ext::sh -c "touch ${canary}"`,
    `ssh://x/$(touch ${canary})`,
    '-x:y',
    'http://127.0.0.1:1/x',
    'git://x/',
  ];
  const network = (protocol: 'https' | 'file') => ({ protocol, config: [], secrets: [], fileBytes: 1e6 });
  for (const url of [...tricks, local]) {
    for (const access of [undefined, network('https')]) {
      const call = { args: ['ls-remote', '--', url], ...(access && { network: access }) };
      await t.rejects(runner.run(call), { code: 'gitCommandFailed' }, url);
    }
  }
  for (const url of tricks)
    await t.rejects(runner.run({ args: ['ls-remote', '--', url], network: network('file') }), url);
  t.match(await runner.text({ args: ['ls-remote', '--', local], network: network('file') }), /refs\/heads\/main/);
  t.notOk(existsSync(canary));
});
