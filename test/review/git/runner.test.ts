import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { reviewEnvironment } from '../../../src/review/git/environment.ts';
import { defaultGitLimits, openReviewGit } from '../../../src/review/git/index.ts';
import { cleanText } from '../../../src/review/git/output.ts';
import { checkBranchName, insideRoot, isKey, makeKey } from '../../../src/review/git/paths.ts';
import { GitRunner } from '../../../src/review/git/runner.ts';
import { Lab, put, temporaryDirectory } from './helpers.ts';

/** A program called git that runs the script of a test. */
function withProgram(t: Test, script: string): { readonly git: GitRunner; readonly directory: string } {
  const directory = temporaryDirectory(t);
  put(join(directory, 'bin', 'git'), `#!/bin/sh\n${script}\n`, 0o755);
  put(join(directory, 'empty', '.keep'), '');
  const path = `${join(directory, 'bin')}:${process.env['PATH']}`;
  const git = new GitRunner({ path, emptyDirectory: join(directory, 'empty'), limits: defaultGitLimits });
  t.teardown(() => git.close());
  return { git, directory };
}

/** True unless the process has ended; an unreaped zombie does not run. */
function isRunning(pid: string): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ');
  } catch {
    return false;
  }
}

t.test('a command sees an environment made from nothing', async (t) => {
  process.env['ORATORIO_TEST_SECRET'] = 'secret';
  t.teardown(() => {
    delete process.env['ORATORIO_TEST_SECRET'];
  });
  const { git, directory } = withProgram(t, 'env -0');
  const ofOthers = /^(PWD|_|SHLVL|OLDPWD|NODE_OPTIONS|_TAPJS_.*|)$/; // of the shell, and of tap, which wraps `spawn`
  const lines = (await git.text({ args: ['x'], gitDir: '/store' }))
    .split('\0')
    .filter((line) => !ofOthers.test(line.split('=', 1)[0] ?? ''));
  const names = lines.map((line) => line.split('=', 1)[0] ?? '');
  const expected = reviewEnvironment({
    path: '',
    emptyDirectory: join(directory, 'empty'),
    limits: defaultGitLimits,
    protocol: 'none',
    marker: { name: 'ORATORIO_INCARNATION', value: git.marker },
  });
  t.strictSame(
    names.filter((name) => !(name in expected)),
    ['GIT_DIR'],
  );
  t.ok(lines.includes('GIT_ALLOW_PROTOCOL='), 'nothing may be fetched unless said');
  t.ok(lines.includes(`HOME=${join(directory, 'empty')}`));
  t.notMatch(lines.join(' '), /secret/);
});

t.test('secrets are given in the environment of one command, at the end of its configuration', async (t) => {
  const { git } = withProgram(t, 'env; echo "$@" | tr " " "\\n" | sed s/^/arg=/');
  const network = {
    protocol: 'https',
    config: [['http.x.extraheader', 'SECRET']],
    secrets: [],
    fileBytes: 1e6,
  } as const;
  const lines = (await git.text({ args: ['fetch', 'x'], network })).split('\n');
  t.strictSame(
    lines.filter((line) => line.startsWith('arg=')),
    ['arg=fetch', 'arg=x'],
  );
  const value = lines.find((line) => line.includes('SECRET'));
  t.match(value, /^GIT_CONFIG_VALUE_\d+=SECRET$/);
  t.ok(lines.includes('GIT_ALLOW_PROTOCOL=https'));
  t.notMatch(await git.text({ args: ['status'] }), /SECRET/);
});

t.test('output is bounded, and a command that prints for ever is ended', async (t) => {
  const { git } = withProgram(t, 'yes');
  const cut = await git.run({ args: ['x'], maxBytes: 10_001, mayCut: true });
  t.equal(cut.isCut, true);
  t.equal(cut.stdout.length, 10_001);
  await t.rejects(git.run({ args: ['x'], maxBytes: 10_000 }), { code: 'gitCommandFailed' });
});

t.test('a command that takes too long is ended with all its children', async (t) => {
  const { git, directory } = withProgram(t, `(sleep 1000 & echo $! > "$GIT_DIR/child"; wait) & wait`);
  // Enough for the program to begin, also on a busy machine.
  const work = git.run({ args: ['x'], gitDir: directory, timeoutMs: 5_000 });
  await t.rejects(work, { code: 'gitTimedOut', isRetryable: true });
  const child = readFileSync(join(directory, 'child'), 'utf8').trim();
  while (isRunning(child)) await sleep(5);
  t.pass('the grandchild has ended');
});

t.test('pipes that a descendant holds open do not delay the end', async (t) => {
  const { git } = withProgram(t, 'setsid sleep 20 & echo done');
  t.equal(await git.text({ args: ['x'] }), 'done\n');
});

t.test('a failure has the message of git, without secrets, noise and control characters', async (t) => {
  const script = [
    'printf "remote: visit http://evil\\n" >&2',
    'printf "hint: try\\n" >&2',
    'printf "fatal: bad \\033[31mSECRET\\033[0m\\n" >&2',
    'exit 128',
  ].join('\n');
  const { git } = withProgram(t, script);
  const network = { protocol: 'https', config: [], secrets: ['SECRET'], fileBytes: 1e6 } as const;
  const message = 'git fetch failed: fatal: bad ?[31m***?[0m';
  await t.rejects(git.run({ args: ['fetch'], network }), { code: 'gitCommandFailed', message });
  t.equal(cleanText(`${'x'.repeat(2_000)}`).length, 501);
});

t.test('an exit code with an error beside it is a failure, not an answer', async (t) => {
  const { git } = withProgram(t, '[ "$1" = sad ] && echo "error: Could not read x" >&2; exit 1');
  t.equal((await git.run({ args: ['happy'], answers: [1] })).exitCode, 1);
  await t.rejects(git.run({ args: ['sad'], answers: [1] }), { code: 'gitCommandFailed' });
  await t.rejects(git.run({ args: ['happy'] }), { code: 'gitCommandFailed' });
});

t.test('a missing git and one that is too old fail at once', async (t) => {
  const directory = temporaryDirectory(t);
  const open = (path: string) =>
    openReviewGit({
      worktreeRoot: join(directory, 'root'),
      gitEndpoint: 'https://github.com',
      retention: { succeededMs: 0, failedMs: 0 },
      path,
    });
  await t.rejects(open(join(directory, 'nothing')), { code: 'gitMissing' });
  put(join(directory, 'old', 'git'), '#!/bin/sh\necho git version 2.30.2\n', 0o755);
  await t.rejects(open(`${join(directory, 'old')}:${process.env['PATH']}`), { code: 'gitMissing' });
});

t.test('after closing nothing starts', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  await reviews.close();
  await t.rejects(reviews.prepare(lab.target(story)), { code: 'gitCommandFailed', isRetryable: true });
});

t.test('names of worktrees', (t) => {
  const key = makeKey(['Acme Inc', '../../etc', '7'], 'run');
  t.match(key, /^acme-inc-etc-7-[0-9a-f]{12}$/);
  t.ok(isKey(makeKey([], '')));
  t.ok(isKey(makeKey(['x'.repeat(500)], 'run')));
  t.equal(insideRoot('/root', key, '.json'), `/root/${key}.json`);
  for (const wrong of ['', '..', '../x-0123456789ab', 'a/x-0123456789ab', 'X-0123456789ab', 'x-0123456789ab\n']) {
    t.throws(() => insideRoot('/root', wrong), { code: 'pathOutside' }, JSON.stringify(wrong));
  }
  t.doesNotThrow(() => checkBranchName('feature/ünï-#1'));
  t.end();
});

t.test('the directory where hooks are looked for stays empty', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  await reviews.prepare(lab.target(story));
  await reviews.release('run-1', 'succeeded');
  await reviews.clean(new Date(Date.now() + 1e12), () => false);
  t.strictSame(readdirSync(join(lab.root, '.empty')), []);
  if (process.getuid?.() !== 0) t.throws(() => writeFileSync(join(lab.root, '.empty', 'post-checkout'), ''));
});
