/** Output of `oratorio backend`: at a terminal, in a log, with --print-url and with --json. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { OptionValues } from '../../src/cli/command.ts';
import { run } from '../../src/cli/commands/backend.ts';
import { Output } from '../../src/cli/output.ts';
import { runCommandLine } from '../../src/cli/run.ts';
import { findingOf, type ReviewBackend, reviewToken, startReviewBackend } from '../ui/review-backend.ts';

/** Serves until `isAll` accepts the written text. @returns the text and the service token */
async function said(
  t: Test,
  { options = {}, isTTY = false }: { readonly options?: OptionValues; readonly isTTY?: boolean },
  isAll: (text: string) => boolean,
) {
  const home = mkdtempSync(join(tmpdir(), 'oratorio-backend-'));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const stop = new AbortController();
  let text = '';
  const stream = () =>
    Object.assign(
      new Writable({
        write(chunk, _encoding, done) {
          text += String(chunk);
          if (isAll(text)) stop.abort();
          done();
        },
      }),
      { isTTY },
    );
  const json = options['json'] === true;
  const code = await run({
    argument: undefined,
    options: { port: '0', ...options },
    lists: {},
    output: new Output({ stdout: stream(), stderr: stream(), env: { NO_COLOR: '1' }, json }),
    env: {},
    cwd: home,
    absolute: (path) => resolve(home, path),
    home,
    signal: stop.signal,
  });
  t.equal(code, 0);
  return { text, token: readFileSync(join(home, 'backend', 'service.token'), 'utf8').trim() };
}

t.test('a terminal gets the address of the page with the token', async (t) => {
  const { text, token } = await said(t, { isTTY: true }, (text) => text.includes('Ctrl-C'));
  const [first, second, third] = text.split('\n');
  const url = /^Review backend on (http:\/\/127\.0\.0\.1:\d+)$/.exec(first ?? '')?.[1];
  t.ok(url, text);
  t.equal(second, `${url}/review#token=${token}`);
  t.equal(third, 'Ctrl-C stops it.');
});

t.test('a log gets one line without the token', async (t) => {
  const { text, token } = await said(t, {}, (text) => text.includes('\n'));
  t.match(text, /^Review backend on http:\/\/127\.0\.0\.1:\d+\n$/);
  t.notMatch(text, token);
});

t.test('--json prints no token, also at a terminal', async (t) => {
  const options = { json: true };
  const { text, token } = await said(t, { options, isTTY: true }, (text) => text.includes('\n'));
  t.match(JSON.parse(text), { url: String, pid: process.pid });
  t.notMatch(text, token);
});

t.test('--print-url prints the address with the token without a terminal', async (t) => {
  const options = { 'print-url': true };
  const { text, token } = await said(t, { options }, (text) => text.includes('#token='));
  t.match(text, `/review#token=${token}\n`);
});

t.test('a worker without the API prints no address of the page', async (t) => {
  const options = { role: 'worker', 'print-url': true };
  const { text } = await said(t, { options, isTTY: true }, (text) => text.includes('\n'));
  t.match(text, /^Review backend on \S+\n$/);
});

/** Command line that talks to a backend prepared by the test. */
async function asked(t: Test, prepare: (backend: ReviewBackend) => Promise<unknown> = async () => undefined) {
  const backend = await startReviewBackend(t.testdir());
  t.teardown(() => backend.close());
  await prepare(backend);
  return async (argv: readonly string[], env: Record<string, string> = { ORATORIO_SERVICE_TOKEN: reviewToken }) => {
    let [stdout, stderr] = ['', ''];
    const sink = (take: (text: string) => void) =>
      new Writable({
        write(chunk, _encoding, done) {
          take(String(chunk));
          done();
        },
      });
    const code = await runCommandLine(argv.includes('--url') ? argv : [...argv, '--url', backend.origin], {
      stdout: sink((text) => {
        stdout += text;
      }),
      stderr: sink((text) => {
        stderr += text;
      }),
      env: { ...env, HOME: t.testdirName, ORATORIO_HOME: t.testdirName },
      cwd: t.testdirName,
      interruption: () => ({ signal: new AbortController().signal, exit: () => 'interrupted' }),
    });
    return { code, stdout, stderr };
  };
}

t.test('backend status prints text or JSON, with the token of the environment or of the file', async (t) => {
  const cli = await asked(t);
  const shown = await cli(['backend', 'status']);
  t.equal(shown.code, 0, shown.stderr);
  t.match(shown.stdout, /Review backend 1\.2\.3 one[\s\S]*storage +sqlite[\s\S]*webhook +yes[\s\S]*writes +yes/);
  t.match(JSON.parse((await cli(['backend', 'status', '--json'])).stdout), { storage: 'sqlite', repositories: 1 });
  mkdirSync(join(t.testdirName, 'state'));
  writeFileSync(join(t.testdirName, 'state', 'service.token'), `${reviewToken}\n`);
  t.match(await cli(['backend', 'status', '--state', 'state'], {}), { code: 0 });
  t.match(await cli(['backend', 'status', '--json'], {}), { code: 1, stderr: /service token cannot be read/ });
  const wrong = await cli(['backend', 'status', '--json'], { ORATORIO_SERVICE_TOKEN: 'a-wrong-service-token' });
  t.match(wrong, { code: 1, stderr: /ORATORIO_SERVICE_TOKEN/ });
  t.match(JSON.parse(wrong.stdout), { error: { code: 'unauthorized' } });
  t.notMatch(JSON.stringify(wrong), 'a-wrong-service-token');
});

t.test('an unreachable backend and an invalid pull request are errors with the next step', async (t) => {
  const cli = await asked(t);
  const nobody = await cli(['backend', 'status', '--url', 'http://127.0.0.1:1']);
  t.match(nobody, { code: 1, stderr: /No review backend answers[\s\S]*oratorio backend/ });
  t.match(await cli(['backend', 'status', '--url', 'file:///etc/passwd']), { code: 2, stderr: /http address/ });
  t.match(await cli(['review', 'nonsense']), { code: 2, stderr: /owner\/name#number/ });
  t.match(await cli(['review', 'a/b#1']), { code: 1, stderr: /GitHub\.Repositories/ });
  t.match(await cli(['review', 'octo/bookshop#9']), { code: 1, stderr: /is not known/ });
});

t.test('review queues a pull request by its name or its address', async (t) => {
  const cli = await asked(t, async (backend) => {
    await backend.pull(12);
    await backend.pull(1);
  });
  const queued = await cli(['review', 'Octo/Bookshop#1', '--full', '--focus', 'races']);
  t.match(queued, { code: 0, stdout: /^Review \S+ of octo\/bookshop#1: queued\n$/ }, queued.stderr);
  const again = await cli([
    'review',
    'https://github.com/octo/bookshop/pull/1',
    '--full',
    '--focus',
    'races',
    '--json',
  ]);
  t.match(JSON.parse(again.stdout), { isNew: false, run: { number: 1, focus: 'races', scope: 'full' } });
});

t.test('review --wait prints the findings and sets the exit code', async (t) => {
  const backends: ReviewBackend[] = [];
  const cli = await asked(t, async (backend) => {
    backends.push(backend);
    await backend.pull(1);
  });
  const [backend] = backends;
  if (!backend) throw new Error('there is no backend');
  const waiting = cli(['review', 'octo/bookshop#1', '--wait']);
  const item = await backend.store.itemByNumber('github:github.com/octo/bookshop', 1);
  if (!item) throw new Error('there is no item');
  const isQueued = async () => (await backend.store.runs({ itemId: item.itemId, limit: 1 })).rows.length > 0;
  while (!(await isQueued())) await pause(10);
  await backend.draft(item, { findings: [findingOf({ path: 'src/\u001b[31ma.ts' })] });
  const ended = await waiting;
  t.equal(ended.code, 0, ended.stderr);
  t.match(
    ended.stdout,
    /^done\n.*mostly right\.\n {2}major {4}src\/␛\[31ma\.ts:42 {2}The voucher is applied twice\n1 find/,
  );

  const failing = cli(['review', 'octo/bookshop#1', '--full', '--wait', '--json']);
  while ((await backend.store.backlog()).runs.waiting === 0) await pause(10);
  await backend.run(item, 'failed', { error: { code: 'turnFailed', message: 'It broke.' } });
  const { code, stdout } = await failing;
  t.equal(code, 1);
  t.match(JSON.parse(stdout), { run: { state: 'failed', error: { code: 'turnFailed' } } });
});
