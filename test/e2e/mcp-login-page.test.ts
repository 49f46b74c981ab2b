/** The log-in at an MCP server on the page, with a browser that cannot open the last address of the log-in. */
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { eventually, makeWorkspace, quick, startTestHub } from '../hub/harness.ts';
import { GuardedServer } from '../mcp/oauth-helpers.ts';
import { axe, overflowsAt, smallTargets } from '../ui/scene.ts';

const hub = await startTestHub(t);
const guarded = await GuardedServer.start(t);
const browser = await launchBrowser();
t.teardown(() => browser.close());

async function openSettings(t: Test): Promise<{ readonly page: Page; readonly workspace: string }> {
  const tracker = { transport: 'streamableHttp', url: guarded.url };
  const workspace = makeWorkspace(t, { ...quick, Provider: 'demo', McpServers: { tracker } });
  await hub.ensure(workspace);
  await eventually(async () => {
    const { problems } = await hub.record(workspace);
    return problems.some(({ code }) => code === 'mcpServerNeedsLogin') || undefined;
  }, 'the server needs a log-in');
  const { page: path } = await hub.record(workspace);
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  t.teardown(() => context.close());
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  await page.goto(`${hub.lock.apiBaseUrl}${path}#token=${pageToken(hub.home)}&at=/settings`);
  return { page, workspace };
}

/** Last address of a log-in, to which the browser of another machine is sent. */
async function lastAddress(page: Page): Promise<string> {
  const start = await page.getByRole('link', { name: /^Open / }).getAttribute('href');
  const answer = await fetch(start ?? '', { redirect: 'manual' });
  return answer.headers.get('location') ?? '';
}

const field = (page: Page) => page.getByRole('textbox', { name: 'Last address of the browser' });
const finish = (page: Page) => page.getByRole('button', { name: 'Finish' }).click();

t.test('the pasted last address of a browser on another machine logs in', async (t) => {
  const { page, workspace } = await openSettings(t);
  await page.getByRole('button', { name: 'Log in…' }).click();
  const address = await lastAddress(page);
  t.match(address, /^http:\/\/127\.0\.0\.1:\d+\/callback\?code=/);
  t.same(await axe(page), []);
  t.same(await smallTargets(page), []);
  t.equal(await overflowsAt(page, 390), false);

  await field(page).fill('https://example.com/callback?code=stolen');
  await finish(page);
  await page.getByText(/does not belong to this log-in\. Paste the address that begins with http:/).waitFor();
  const foreign = new URL(address);
  foreign.searchParams.set('state', 'of-another-log-in');
  await field(page).fill(foreign.href);
  await finish(page);
  await page.getByText(/belongs to another log-in/).waitFor();

  await field(page).fill(address);
  await field(page).press('Enter');
  await page.getByText('Logged in', { exact: true }).waitFor();
  await eventually(async () => {
    const { problems } = await hub.record(workspace);
    return !problems.some(({ code }) => code === 'mcpServerNeedsLogin') || undefined;
  }, 'the server is ready');
  t.notMatch(await page.content(), new URL(address).searchParams.get('code') ?? 'none', 'the code is not shown');
});
