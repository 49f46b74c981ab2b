/** The page of a workspace that is down, in a browser: its report, its remedies and its history. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import t from 'tap';
import { AppServerClient, startThread, startTurn } from '../../src/client/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { eventually, killIfThere, makeWorkspace, startTestHub, temporaryDirectory } from '../hub/harness.ts';
import { axe, overflowsAt } from '../ui/scene.ts';
import { shows } from '../ui/shows.ts';

const home = temporaryDirectory(t);
const settings = {
  Permissions: { DefaultApprovalPolicy: 'autoApprove' },
  DashBoard: { Password: 'password-of-the-page' },
};
writeFileSync(join(home, 'config.json'), JSON.stringify(settings), { mode: 0o600 });
const first = await startTestHub(t, { home });
const workspace = makeWorkspace(
  t,
  {
    Provider: 'demo',
    Supervision: { BackoffBaseMs: 20, MaxRestarts: 1, WithinSeconds: 3_600 },
  },
  'infra',
);
const { page: path } = await first.ensure(workspace);
const token = pageToken(home);
const browser = await launchBrowser();
t.teardown(() => browser.close());

type Hub = typeof first;
const running = (hub: Hub) =>
  eventually(async () => {
    const record = await hub.record(workspace);
    return record.state === 'running' ? record : undefined;
  }, 'the server runs');

/** Kills the agent server until the Hub gives it up. */
async function killAll(hub: Hub): Promise<void> {
  for (let kill = 0; kill < 2; kill += 1) {
    const { pid } = await running(hub);
    killIfThere(pid ?? 0);
    await eventually(async () => (await hub.record(workspace)).pid !== pid || undefined, 'the end is noticed');
  }
  await eventually(
    async () => (await hub.record(workspace)).phase === 'exited.givenUp' || undefined,
    'it was given up',
  );
}

async function openPage(hub: Hub, at = ''): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
  page.setDefaultTimeout(300_000);
  await page.goto(`${hub.lock.apiBaseUrl}${path}#token=${token}${at}`);
  return page;
}

const headline = (page: Page) =>
  page.getByRole('heading', { level: 1, name: /^infra is down: its process was killed \(SIGKILL\) 2 times in / });
const crashes = (page: Page) => page.getByRole('table', { name: 'Crashes' }).locator('tbody tr');

const client = await AppServerClient.connect((await first.record(workspace)).endpoints['appServerWebSocket'] ?? '');
const thread = await startThread(client, { workspacePath: workspace });
for await (const _event of await startTurn(client, thread, 'a question that stays'));
for await (const _event of await startTurn(
  client,
  thread,
  'write "a line that stays, password-of-the-page" to kept.txt',
));
client.close();
await killAll(first);

t.test('regression: the page of a workspace that gave up shows its report first, and its history', async (t) => {
  const page = await openPage(first);
  await headline(page).waitFor();
  await page.getByText('The Hub gave up; the limit is 2 in 60 min.').waitFor();
  await shows(t, 'equal', () => crashes(page).count(), 2);
  await shows(t, 'match', () => crashes(page).first().textContent(), /SIGKILL/);
  await shows(t, 'ok', () => page.getByRole('navigation', { name: 'Views' }).isVisible());
  await shows(t, 'equal', () => page.getByRole('link', { name: 'Hub' }).first().getAttribute('href'), '/');
  for (const name of ['Start again', 'Open the log']) await page.getByRole('button', { name }).waitFor();
  await page.getByRole('button', { name: 'Raise the limit…' }).click();
  const place = `${join(workspace, '.oratorio', 'config.json')}:1`;
  await page.getByText(place).waitFor();
  t.same(await axe(page), []);
  t.notOk(await overflowsAt(page, 360), 'it fits a phone');

  await page.goto(`${first.lock.apiBaseUrl}${path}#/chat`);
  await page.getByText('a question that stays').first().click();
  await page.locator('.row', { hasText: 'a question that stays' }).first().waitFor();
  await page.getByText('This is the read-only viewer').waitFor();
  t.equal(await page.locator('.composer').count(), 0, 'regression: no message can be written there');
  await page.getByRole('tab', { name: 'Changes' }).click();
  await page.locator('.file-change', { hasText: 'kept.txt' }).getByText('a line that stays').first().waitFor();
  t.notMatch(
    await page.locator('.file-change', { hasText: 'kept.txt' }).textContent(),
    /password-of-the-page/,
    'regression: secrets of the settings are taken out, as by a running agent server',
  );
  t.equal(await page.getByRole('button', { name: /^(?:Keep|Revert|Undo)/ }).count(), 0, 'no button changes files');
  t.same(await axe(page), []);
  await page.getByRole('tab', { name: 'Trace' }).click();
  await page.getByRole('treegrid').getByText('kept.txt').first().waitFor();
  await page.getByRole('tab', { name: 'Chart' }).click();
  await page.getByRole('link', { name: 'Open the trace' }).click();
  await page.getByRole('tabpanel', { name: 'Trace' }).waitFor();
  await page.goto(`${first.lock.apiBaseUrl}${path}#/sessions`);
  await page.getByText('a question that stays').first().waitFor();
  await page.close();
});

t.test('regression: the log and the chart are reachable, and the log has each end', async (t) => {
  const page = await openPage(first);
  await page.getByRole('link', { name: 'State chart' }).click();
  await page.waitForURL(/\/#\/actors\//);
  await page.getByText('exited · deciding → gave up').first().waitFor();
  t.match(page.url(), /#\/actors\/.*infra/);
  await page.goBack();
  await page.getByRole('button', { name: 'Open the log' }).click();
  await page.getByText('the agent server has ended').first().waitFor();
  await page.close();
});

t.test(
  'regression: a later Hub shows the same report, and an open page follows a start and the next end',
  async (t) => {
    await first.kill('SIGKILL');
    const next = await startTestHub(t, { home });
    const page = await openPage(next);
    await headline(page).waitFor();
    await shows(t, 'equal', () => crashes(page).count(), 2);
    await page.getByRole('button', { name: 'Start again' }).click();
    await running(next);
    await page.getByRole('region', { name: 'Modules' }).waitFor();
    await headline(page).waitFor({ state: 'detached' });
    await killAll(next);
    await headline(page).waitFor();
    await shows(t, 'equal', () => crashes(page).count(), 2, 'only the ends since the start');
    const log = readFileSync((await next.record(workspace)).incident?.exits[0]?.log?.file ?? '', 'utf8');
    t.equal(log.split('the agent server has ended').length - 1, 4);
    await page.close();
    await next.shutdown();
  },
);
