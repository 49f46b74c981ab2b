/** `npm run test:one` and `npm run test:watch`, as processes. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { eventually } from '../hub/harness.ts';
import { copyCheckout, ofScripts, processesIn, startScript } from './checkout.ts';

const one = (t: Test, ...args: readonly string[]) => startScript(t, root, 'test-one.ts', ...args);

t.test('a file that passes exits 0 with its counts', async (t) => {
  const run = one(t, 'test/fixtures/tap/passes.ts');
  t.equal(await run.ended, 0);
  t.match(run.output(), /^✔ test\/fixtures\/tap\/passes\.ts: 2 passed, 0 failed in /m);
});

t.test('a file that fails, or dies, exits 1 with the failure and the sum of all files', async (t) => {
  const run = one(t, 'test/fixtures/tap/fails.ts', 'test/fixtures/tap/dies.ts');
  t.equal(await run.ended, 1);
  t.match(run.output(), 'not ok 2 - this does not');
  t.match(run.output(), /^✖ test\/fixtures\/tap\/fails\.ts: 1 passed, 1 failed in /m);
  t.match(run.output(), /^✖ test\/fixtures\/tap\/dies\.ts: .*\(killed by SIGKILL\)$/m);
  t.match(run.output(), /^1 passed, 1 failed$/m);
});

t.test('a missing file exits 2 and names similar files', async (t) => {
  const run = one(t, 'event-log');
  t.equal(await run.ended, 2);
  t.match(run.output(), 'No test file matches event-log.');
  t.match(run.output(), 'test/events/event-log.test.ts');
});

t.test('no file and an unknown option exit 2; --help exits 0', async (t) => {
  const [none, unknown, help] = [one(t), one(t, '--no-such'), one(t, '--help')];
  t.equal(await none.ended, 2);
  t.match(none.output(), 'A test file is missing.');
  t.equal(await unknown.ended, 2);
  t.equal(await help.ended, 0);
  t.match(help.output(), 'Usage: npm run test:one');
});

/** A copy of the checkout with one source, and a test of it. */
function sampleCheckout(t: Test, test: string): { readonly checkout: string; readonly source: string } {
  const checkout = copyCheckout(t, ofScripts);
  for (const directory of ['src/lib', 'test/sample']) mkdirSync(join(checkout, directory), { recursive: true });
  const source = join(checkout, 'src', 'lib', 'sample.ts');
  writeFileSync(source, 'export const sample = 1;\n');
  writeFileSync(join(checkout, 'test', 'sample', 'sample.test.ts'), test);
  return { checkout, source };
}

const testOfSample = `import t from 'tap';
import { sample } from '../../src/lib/sample.ts';
t.equal(sample, 1, 'the sample is one');
`;

/** Starts a process outside of its own group, then waits for ever. */
const testThatHangs = `import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import t from 'tap';
t.test('hangs', () => new Promise(() => {
  spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore', cwd: process.cwd() });
  writeFileSync(process.cwd() + '/started', '');
  setInterval(() => {}, 1000);
}));
`;

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal} ends the file and every process that it started`, async (t) => {
    const { checkout } = sampleCheckout(t, testThatHangs);
    const run = startScript(t, checkout, 'test-one.ts', 'test/sample/sample.test.ts');
    await eventually(() => existsSync(join(checkout, 'started')) || undefined, 'the test runs');
    t.equal(await run.end(signal), 1);
    t.same(processesIn(checkout), []);
  });
}

t.test('a change of a source runs the tests that import it, and no others', async (t) => {
  const { checkout, source } = sampleCheckout(t, testOfSample);
  const other = join(checkout, 'test', 'sample', 'other.test.ts');
  writeFileSync(other, "import t from 'tap';\nt.pass('other');\n");
  const watch = startScript(t, checkout, 'test-watch.ts');
  await watch.writes(/^Waiting for changes/m);

  let from = watch.output().length;
  writeFileSync(source, 'export const sample = 2;\n');
  await watch.writes(/^✖ test\/sample\/sample\.test\.ts: 0 passed, 1 failed[\s\S]*^Waiting/m, from);
  t.notMatch(watch.output().slice(from), 'other.test.ts');

  from = watch.output().length;
  writeFileSync(source, 'export const sample = 1;\n');
  await watch.writes(/^✔ test\/sample\/sample\.test\.ts: 1 passed, 0 failed/m, from);

  t.equal(await watch.end('SIGTERM'), 0);
  t.same(processesIn(checkout), []);
});

t.test('given files run at once; a change during a run starts them again', async (t) => {
  const { checkout, source } = sampleCheckout(
    t,
    `${testOfSample}if (sample === 1) await new Promise((resolve) => setTimeout(resolve, 3_600_000));\n`,
  );
  const watch = startScript(t, checkout, 'test-watch.ts', 'test/sample/sample.test.ts');
  await watch.writes(/^ok 1 - the sample is one/m);
  writeFileSync(source, 'export const sample = 2;\n');
  await watch.writes(/^✖ test\/sample\/sample\.test\.ts: 0 passed, 1 failed/m);
  t.equal(await watch.end('SIGINT'), 0);
  t.same(processesIn(checkout), []);
});
