/** Every view of the Hub's page and of a workspace's page as they are served: laptop and phone, light and dark, no foreign request. */
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { makeWorkspace, quick, startTestHub } from '../hub/harness.ts';
import { visitAll, watched, withoutScripts } from './sweep.ts';

const hub = await startTestHub(t);
const workspace = makeWorkspace(t, { ...quick, Provider: 'demo' });
const record = await hub.ensure(workspace);
const { apiBaseUrl } = hub.lock;
const token = pageToken(hub.home);
const browser = await launchBrowser();
t.teardown(() => browser.close());
const own = await watched(t, browser, apiBaseUrl);

/** A conversation that has ended, and one that waits for an approval. */
async function talk(t: Test): Promise<string> {
  const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '', {
    clientInfo: { name: 'oratorio-cli', version: '1' },
  });
  t.teardown(() => client.close());
  const start = async (text: string) => {
    const { thread } = (await client.request('thread/start', { displayName: text })) as { thread: { id: string } };
    await client.request('turn/start', { threadId: thread.id, input: [{ type: 'text', text }] });
    return thread.id;
  };
  const ended = new Promise<void>((resolve) => {
    client.onNotification(({ method }) => method === 'turn/completed' && resolve());
  });
  const threadId = await start('read config.json\nsay **done**');
  await ended;
  await start('run: touch waits');
  return threadId;
}

async function open(page: Page, path: string): Promise<readonly string[]> {
  await page.goto(`${apiBaseUrl}${path}#token=${token}`);
  await page.locator('.connection.live').waitFor();
  const links = await page
    .locator('nav a[href^="#/"]')
    .evaluateAll((all) => all.map((link) => link.getAttribute('href')));
  return [...new Set(links.flatMap((link) => (link ? [link.slice(2)] : [])))];
}

t.test('every view of the page of a workspace', async (t) => {
  const threadId = await talk(t);
  const page = await own.context.newPage();
  const views = await open(page, record.page ?? '');
  t.strictSame([...views].sort(), [
    'actors',
    'automations',
    'chat',
    'events',
    'logs',
    'overview',
    'sessions',
    'settings',
  ]);
  await visitAll(t, page, [...views, `chat/${threadId}`, `sessions/${threadId}`]);
  await page.close();
});

t.test('every view of the page of the Hub', async (t) => {
  const page = await own.context.newPage();
  const views = await open(page, '/');
  t.strictSame([...views].sort(), ['actors', 'events', 'inbox', 'logs', 'overview']);
  await visitAll(t, page, views);
  await page.close();
});

t.test('no script error, no violation of the policy, no request to another origin', (t) => {
  t.same(own.complaints, []);
  t.same(own.foreign, []);
  t.end();
});

t.test('without scripts a page says what it needs', async (t) => {
  for (const path of ['/', record.page ?? ''])
    t.match(await withoutScripts(browser, `${apiBaseUrl}${path}`), /JavaScript/);
});
