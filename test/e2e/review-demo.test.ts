/** README's "A review in a minute", as a newcomer pastes it: an empty home, no terminal, the built product, a real browser. */
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { launchBrowser } from '../browser.ts';
import { blocksOf } from '../docs/tutorial-page.ts';
import { addressIn, startDemo } from './demo.ts';
import { makePlace, oratorio, untilNoneRuns } from './harness.ts';
import { visitAll, watched, withoutScripts } from './sweep.ts';

t.setTimeout(600_000);

/** The command of README. */
function pasted(): string {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const [, section = ''] = /\n## A review in a minute\n([\s\S]*?)\n## /.exec(readme) ?? [];
  return blocksOf(section)[0]?.text ?? '';
}

t.test('a newcomer sees a review, publishes it, and Ctrl-C leaves nothing', async (t) => {
  const place = makePlace(t, 'oratorio-demo-test-');
  const line = pasted();
  t.match(line, /^oratorio backend --demo --open /);
  const { child, ended, opened, said } = await startDemo(t, place, line);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const address = addressIn(opened);
  const { context, complaints, foreign } = await watched(t, browser, address.origin);
  const page = await context.newPage();
  await page.goto(address.href);
  await page.getByRole('link', { name: /^Add vouchers/ }).click();
  const publish = page.getByRole('button', { name: 'Publish 3 findings' });
  await publish.waitFor();
  t.strictSame((await page.getByRole('article').locator('h3').allTextContents()).sort(), [
    'A query is built from text',
    'Text is evaluated as a program',
    'The loop runs one step too far',
  ]);
  await page.getByText('Demo model (offline, no AI)').first().waitFor();
  const item = new URL(page.url()).hash.slice(2);
  await visitAll(t, page, ['queue', 'deliveries', 'sources', 'actors', item]);
  await publish.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
  const outward = page.getByRole('link', { name: /^Add vouchers/ }).first();
  await page.getByText('Published', { exact: true }).first().waitFor();
  const stand = (await outward.getAttribute('href')) ?? '';
  const published = await (await fetch(stand)).text();
  t.match(published, /<h2>src\/cart\.js:4<\/h2>/);
  t.match(published, /<style>/, 'the page of the stand-in has a style');
  t.match(published, /The loop runs one step too far/);
  t.match(published, /<h2>src\/discount\.js:4<\/h2>/);
  t.equal((await fetch(new URL('/app', stand))).status, 404, 'who does not know the address finds no stand-in');
  t.match(await withoutScripts(browser, [`${address.origin}/review`]), [/JavaScript/]);
  t.same(complaints, [], 'no script error, no violation of the content security policy');
  t.same(foreign, [], 'no request to another origin');
  const { stdout, stderr } = said();
  t.match(stdout, /model: demo, offline, no AI/);
  t.notMatch(stdout, /token=/, 'no token is printed without a terminal');
  t.equal(stderr, '', 'no warning');
  child.kill('SIGINT');
  t.strictSame(await ended, [0, null]);
  await untilNoneRuns(place);
  t.strictSame(readdirSync(place.env['TMPDIR'] ?? ''), [], 'the temporary directory is empty');
  t.notOk(existsSync(join(place.root, '.oratorio')), 'the home of the user is not touched');
});

t.test('the demo refuses settings of a real backend, and leaves nothing when its port is taken', async (t) => {
  const place = makePlace(t, 'oratorio-demo-test-');
  t.match(await oratorio(place, ['backend', '--demo', '--config', 'x.json']), {
    code: 2,
    stderr: /leave out --config/,
  });
  const { createServer } = await import('node:net');
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as { port: number };
  t.match(await oratorio(place, ['backend', '--demo', '--port', String(port)]), {
    code: 7,
    stderr: new RegExp(`Port ${port} of 127\\.0\\.0\\.1 is in use`),
  });
  t.strictSame(readdirSync(place.env['TMPDIR'] ?? ''), []);
});
