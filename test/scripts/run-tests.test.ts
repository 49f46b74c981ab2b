import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import { countsOf } from '../../scripts/tap-output.mjs';
import { root } from '../../scripts/toolchain.mjs';

function run(pattern: string) {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'scripts', 'run-tests.ts'), pattern];
  // The variables of the surrounding run would make this one a part of it, without a summary.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^_?TAP/.test(name)));
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', env });
  return { status, stdout };
}

t.test(
  'each process is reported by the name of its file or folder, and one that fails or dies fails the run',
  async (t) => {
    const { status, stdout } = run('test/fixtures/tap/*.ts');
    t.equal(status, 1);
    const verdicts = stdout.match(/^(not )?ok \d+ - \S+/gm)?.map((line) => line.replace(/ \d+ - /, ' '));
    t.same(verdicts?.toSorted(), ['not ok test/fixtures/tap', 'not ok test/fixtures/tap/dies.ts']);
    const within = stdout.match(/^ {4}(not )?ok \d+ - test\S+/gm)?.map((line) => line.trim().replace(/ \d+ - /, ' '));
    t.same(within?.toSorted(), [
      'not ok test/fixtures/tap/fails.ts',
      'not ok test/fixtures/tap/throws.ts',
      'ok test/fixtures/tap/passes.ts',
    ]);
    t.match(stdout, /signal: SIGKILL/);
    t.match(countsOf(stdout), { failed: 4 }, 'a file that broke off counts as a failed assertion');
    t.match(stdout, /stack: [\s\S]*\btest\/fixtures\/tap\/fails\.ts:4:3/, 'stacks name the source');
    t.match(stdout, /fileName: test\/fixtures\/tap\/fails\.ts\s+lineNumber: 4\s+columnNumber: 3/, 'so do places');
    t.notMatch(stdout, /\.js:\d/, 'and nothing names the bundle');
    t.match(stdout, /^# slow: +\d+\.\d s {2}test\/fixtures\/tap(?:\/\w+\.ts| \(together\))$/m);
    if (process.platform === 'linux')
      t.match(stdout, /^# costly: +\d+\.\d s of CPU {2}test\/fixtures\/tap(?:\/\w+\.ts| \(together\))$/m);
  },
);

t.test('an error that nothing catches fails the test that caused it', async (t) => {
  const { status, stdout } = run('test/fixtures/tap/throws.ts');
  t.equal(status, 1);
  const said = (name: string) =>
    stdout
      .split(`# Subtest: ${name}\n`)[1]
      ?.split('# Subtest: ')[0]
      ?.match(/^ {8}(?:not )?ok \d+ - .*$/gm)
      ?.map((line) => line.trim());
  t.same(said('throws in a callback'), ['not ok 1 - thrown by the first']);
  t.same(said('rejects in the background'), ['not ok 1 - rejected by the second']);
  t.same(said('is innocent'), ['ok 1 - untouched']);
});

t.test('regression: a file that writes more than a pipe holds in its last moment is reported whole', async (t) => {
  const { status, stdout } = run('test/fixtures/tap/alone/long.ts');
  t.equal(status, 0);
  t.match(countsOf(stdout), { passed: 5_000, failed: 0 });
});

t.test('regression: a file whose reader is late ends after its last line is read', async (t) => {
  const program = `
    await import(${JSON.stringify(new URL('../../scripts/gathered-output.mjs', import.meta.url).href)});
    const write = (lines) => { while (lines-- > 0) process.stdout.write('x'.repeat(99) + '\\n'); };
    write(1_200);
    process.once('beforeExit', () => {
      write(2_000);
      process.stderr.write('ending');
    });`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await once(child.stderr, 'data');
  let length = 0;
  child.stdout.on('data', (bytes: Buffer) => {
    length += bytes.length;
  });
  t.same(await once(child, 'close'), [0, null]);
  t.equal(length, 320_000);
});

t.test('a pattern without a matching file fails the run', async (t) => {
  const { status, stdout } = run('test/no-such-*.test.ts');
  t.equal(status, 1);
  t.match(stdout, 'no test file matches test/no-such-*.test.ts');
});
