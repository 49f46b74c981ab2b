/** A host with ten thousand workspaces: the page of this Hub shows them in pages, finds each of them, and stays connected. */
import t from 'tap';
import { version } from '../../src/protocol/index.ts';
import { launchBrowser } from '../browser.ts';
import { fakeHub, sendJson } from '../client/fake-hub.ts';
import { oratorioJson, startHub } from './harness.ts';
import { makeMachines } from './ssh-machine.ts';
import { openPage } from './trouble.ts';

t.setTimeout(600_000);

const count = 10_000;
const token = 'x'.repeat(40);
const nameOf = (number: number): string => `site-${String(number).padStart(5, '0')}`;

const records = Array.from({ length: count }, (_, number) => ({
  ...{ workspacePath: `/srv/${nameOf(number)}`, canonicalWorkspacePath: `/srv/${nameOf(number)}` },
  ...(number === 7_777 ? { state: 'exited', exitCode: 1 } : { state: 'stopped', exitCode: null }),
  ...{
    pid: null,
    endpoints: {},
    serviceStatus: {},
    serverVersion: null,
    startedByHub: true,
    lastError: null,
    recentStderr: null,
  },
}));

t.test('ten thousand workspaces are shown in pages with filters, and the page stays connected', async (t) => {
  const machines = await makeMachines(t);
  const { here, program } = machines;
  const fake = await fakeHub(
    ({ url = '' }, response) => {
      if (url.startsWith('/v1/events')) {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': connected\n\n');
        const beats = setInterval(() => response.write(': alive\n\n'), 1_000);
        response.on('close', () => clearInterval(beats));
      } else sendJson(response, 200, url.startsWith('/v1/inbox') ? [] : records);
    },
    [token],
  );
  t.teardown(() => fake.close());
  machines.install(`echo '${JSON.stringify({ apiBaseUrl: fake.baseUrl, version, tokenId: 't', token })}'`);
  await startHub(here);
  const added = await oratorioJson(here, 'hosts', 'add', 'ssh://box', '--name', 'farm', '--program', program);
  t.match(added, { state: 'connected', workspaces: count });

  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const began = performance.now();
  const page = await openPage(browser, here);
  const row = (number: number) => page.locator('.vrow', { hasText: nameOf(number) });
  await row(7_777).waitFor();
  t.comment(`first rows after ${Math.round(performance.now() - began)} ms`);
  await row(0).waitFor();
  t.ok((await page.locator('.vrow').count()) < 200, 'only rows near the screen are in the document');
  await page.getByText(/1\s000 of 10\s000/).waitFor();

  await page.getByRole('button', { name: /Next 1\s000/ }).click();
  await row(1_000).waitFor();
  t.equal(await row(0).count(), 0, 'the second page replaces the first');

  await page.getByLabel('Find workspaces').fill('site-09999');
  await row(9_999).waitFor();
  await page.getByText(/^1 of 10\s000/).waitFor();
  await page.getByLabel('Find workspaces').fill('');
  await page.getByRole('button', { name: 'Trouble 1' }).click();
  await row(7_777).waitFor();
  await page.locator('.connection.live').waitFor();
});
