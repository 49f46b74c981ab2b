/** Workspaces and requests of another machine on the local page: rail, bands, inbox, palette and titles, on a laptop and a phone. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { AppServerClient, startThread, startTurn } from '../../src/client/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { answered, startMockUpstream } from '../fixtures/upstream/mock-upstream.ts';
import { eventually, readHubLock } from '../hub/harness.ts';
import { axe, overflowsAt, pressable, smallTargets } from '../ui/scene.ts';
import { shows } from '../ui/shows.ts';
import { answerOf, oratorio, oratorioJson, runningHub } from './harness.ts';
import { makeMachines } from './ssh-machine.ts';

t.setTimeout(600_000);

const machines = await makeMachines(t);
const { here, there, program } = machines;
const upstream = await startMockUpstream(t, (request) =>
  request.body.messages.at(-1)?.role === 'tool'
    ? answered(request, { text: 'Done.' })
    : answered(request, { toolCalls: [{ id: 'c', name: 'Exec', arguments: { command: 'touch made' } }] }),
);
const config = { EndPoint: upstream.url, ApiKey: 'key-of-the-upstream', Model: 'mock-model', UpstreamRetries: 0 };
const site = there.workspace('site', config);
await oratorio(here, ['hosts', 'add', 'ssh://box', '--name', 'build', '--program', program, '--json']);
await oratorioJson(here, 'up', `build:${site}`);
const [own] = await runningHub(there).client.list();
const agent = await AppServerClient.connect(own?.endpoints['appServerWebSocket'] ?? '');
t.teardown(() => agent.close());
const origin = new URL(readHubLock(here.home)?.apiBaseUrl ?? '').origin;
const browser = await launchBrowser();
t.teardown(() => browser.close());

async function openPage(t: Test, at: string, { width, height, path = '/' } = { width: 1280, height: 720, path: '/' }) {
  const context = await browser.newContext({ viewport: { width, height }, reducedMotion: 'reduce' });
  t.teardown(() => context.close());
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  await page.goto(`${origin}${path}#token=${pageToken(here.home)}&at=${at}`);
  await page.locator('.connection.live').waitFor();
  return page;
}

const ask = async () =>
  startTurn(agent, await startThread(agent, { workspacePath: site, displayName: 'deploy' }), 'go');
const card = (page: Page) => page.getByRole('article', { name: 'Approval: build:site' });
const rail = (page: Page) => page.getByRole('navigation', { name: 'Workspaces' });

t.test('a request of another machine calls on the local page and is decided there once', async (t) => {
  const page = await openPage(t, '/now');
  const second = await openPage(t, '/inbox', { width: 390, height: 844, path: '/' });
  const turn = await ask();
  await card(page).waitFor();
  await eventually(async () => /^\(1\) /.test(await page.title()) || undefined, 'the title calls');
  await rail(page)
    .getByRole('link', { name: /^build:site, / })
    .waitFor();
  t.same(await axe(page), []);
  await card(second).waitFor();
  t.same(await axe(second), []);
  t.notOk(await overflowsAt(second, 390), 'a phone shows the card');
  t.same(await smallTargets(second, 32, pressable), [], 'targets of the card on a phone');
  const allow = card(page).getByRole('button', { name: 'Allow once' });
  await allow.focus();
  await page.waitForFunction(() => !(document.activeElement as HTMLButtonElement | null)?.disabled);
  await page.keyboard.press('Enter');
  await answerOf(turn);
  t.ok(existsSync(join(site, 'made')), 'the command ran on the host');
  await card(second)
    .getByText(/^Allowed/)
    .waitFor();
  const history = await runningHub(there).call('GET', '/v1/inbox/history');
  t.equal(history.body.length, 1, 'the remote Hub has one decision');
});

t.test('the palette, the title and the header of a page name the machine first', async (t) => {
  const page = await openPage(t, '/now');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('build:site');
  await page
    .getByRole('option', { name: /build:site/ })
    .first()
    .waitFor();
  await page.keyboard.press('Escape');
  await rail(page)
    .getByRole('link', { name: /^build:site, / })
    .press('Enter');
  await page.waitForURL(/\/h\/build\/w\//);
  await eventually(
    async () => /build:site · Oratorio$/.test(await page.title()) || undefined,
    'the title names the host',
  );
  await page.getByRole('banner').getByText('build:site').waitFor();
  await rail(page).locator('[aria-current="page"]').waitFor();
});

t.test('a host that is cut off stays a row with its time, and its requests wait', async (t) => {
  const page = await openPage(t, '/now');
  const turn = await ask();
  await card(page).waitFor();
  await machines.cut();
  const row = page.getByRole('listitem', { name: 'Host build', exact: true });
  await row.getByText('Unreachable').waitFor();
  await row.getByText(/as of/).waitFor();
  await page
    .getByRole('listitem', { name: `build:${site}`, exact: true })
    .getByText(/as of/)
    .waitFor();
  await card(page).getByText('build is not connected; answer when it is.').waitFor();
  await shows(t, 'equal', () => card(page).getByRole('button', { name: 'Allow once' }).isDisabled(), true);
  t.equal(await page.getByRole('alert').count(), 0, 'an unreachable host is not an error');
  t.same(await axe(page), []);
  t.notOk(await overflowsAt(page, 390));
  t.same(await smallTargets(page, 32, pressable), [], 'targets of the rows of a host on a phone');
  await machines.mend();
  await runningHub(here).call('POST', '/v1/hosts/build/enable', {});
  await row.getByText('Connected').waitFor();
  const decline = card(page).getByRole('button', { name: 'Decline', exact: true });
  await decline.click();
  await answerOf(turn);
});

t.test('a page without the token learns neither the names of hosts nor changes them', async (t) => {
  const status = async (path: string) => (await fetch(`${origin}${path}`)).status;
  const id = 'a'.repeat(16);
  t.equal(await status(`/h/build/w/${id}/`), await status(`/h/other/w/${id}/`), 'the page itself');
  t.equal(
    await status(`/h/build/w/${id}/dashboard/api/summary`),
    await status(`/h/other/w/${id}/dashboard/api/summary`),
  );
  const change = (action: string) =>
    fetch(`${origin}/v1/hosts/build/${action}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pageToken(here.home)}`, 'content-type': 'application/json' },
      body: '{}',
    });
  for (const action of ['remove', 'disable', 'enable']) t.equal((await change(action)).status, 401, action);
  t.equal((await change('ensure')).status, 400, 'a page may start a workspace');
});
