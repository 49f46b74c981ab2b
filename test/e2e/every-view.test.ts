/** Checks every served view of the Hub and of a workspace: laptop, phone, light, dark, keyboard, zoom, no request to another origin. */
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { makeWorkspace, quick, startTestHub } from '../hub/harness.ts';
import { openAt, operateAll, visitAll, watched, withoutScripts } from './sweep.ts';

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

/** Views in the navigation of each page. A new view needs a row here. */
const views = {
  workspace: ['actors', 'automations', 'chat', 'events', 'logs', 'overview', 'settings'],
  hub: ['actors', 'events', 'inbox', 'logs', 'now', 'overview', 'threads'],
} as const;
/** Nested views; `:thread` is the id of an ended conversation. */
const inner = {
  workspace: [
    'chat/:thread',
    'chat/:thread?lens=changes',
    'chat/:thread?lens=trace',
    'chat/:thread?lens=chart',
    'chat/:thread?lens=raw',
    'sessions',
    'sessions/:thread',
    'sessions/:thread?view=log',
    'sessions/:thread?view=list',
  ],
  hub: [],
} as const;

for (const kind of ['workspace', 'hub'] as const) {
  t.test(`every view of the page of the ${kind}`, async (t) => {
    const threadId = kind === 'workspace' ? await talk(t) : '';
    const page = await own.context.newPage();
    const found = await open(page, kind === 'workspace' ? (record.page ?? '') : '/');
    t.strictSame([...found].sort(), views[kind]);
    const all = [...views[kind], ...inner[kind].map((at) => at.replace(':thread', threadId))];
    await visitAll(t, page, all);
    await operateAll(t, page, all);
    await page.close();
  });
}

t.test('the threads of all workspaces: found, renamed and opened in their workspace', async (t) => {
  const page = await own.context.newPage();
  await open(page, '/');
  await page.setViewportSize({ width: 1_440, height: 900 });
  await openAt(page, '/threads');
  // The waiting request stands above the rows.
  await page.getByRole('button', { name: 'Later' }).click();
  const rows = page.getByRole('list', { name: 'Conversations' }).getByRole('listitem');
  await rows.filter({ hasText: 'Waits for you' }).waitFor();
  await page.getByRole('textbox', { name: 'Find conversations' }).fill('CONFIG.json');
  await rows.filter({ hasText: 'Waits for you' }).waitFor({ state: 'detached' });
  await rows
    .filter({ hasText: 'Last turn ok' })
    .getByRole('button', { name: /^Rename/ })
    .click();
  await page.getByRole('textbox', { name: 'Name' }).fill('<b>Renamed</b> config.json');
  await page.getByRole('button', { name: 'Rename', exact: true }).click();
  const renamed = rows.filter({ hasText: '<b>Renamed</b> config.json' });
  await renamed.getByRole('button', { name: /^Archive/ }).click();
  await page.getByText('No results').waitFor();
  await page.getByRole('button', { name: 'Archived, too' }).click();
  await renamed.getByRole('button', { name: /^Unarchive/ }).click();
  await renamed.filter({ hasNotText: 'Archived' }).getByRole('link').click();
  await page.getByRole('heading', { name: '<b>Renamed</b> config.json' }).waitFor();
  t.match(new URL(page.url()).pathname, record.page, 'the page of the workspace');
  const all = page.getByRole('link', { name: 'Conversations of all workspaces' });
  t.equal(await all.getAttribute('href'), '/#/threads');
  await page.close();
});

t.test('no script error, no violation of the policy, no request to another origin', (t) => {
  t.same(own.complaints, []);
  t.same(own.foreign, []);
  t.end();
});

t.test('without scripts a page names JavaScript as its requirement', async (t) => {
  const addresses = ['/', record.page ?? ''].map((path) => `${apiBaseUrl}${path}`);
  for (const text of await withoutScripts(browser, addresses)) t.match(text, /JavaScript/);
});
