/** The Hub's page and the page of a workspace below it, in a browser: inbox, phones, and kill -9 of either server. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import t from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import type { InboxHistoryEntry, InboxItem } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { eventually, killIfThere, makeWorkspace, quick, startTestHub } from '../hub/harness.ts';
import { box, button, write } from '../ui/chat-scene.ts';
import { axe, overflowsAt, readToEnd } from '../ui/scene.ts';
import { shows } from '../ui/shows.ts';
import { answer, deliver, open, standInForPushService } from './push-browser.ts';

const hub = await startTestHub(t);
const workspace = makeWorkspace(t, { ...quick, Provider: 'demo' });
const record = await hub.ensure(workspace);
const shop = makeWorkspace(t, { ...quick, Provider: 'demo' });
const shopRecord = await hub.ensure(shop);
const { apiBaseUrl } = hub.lock;
const token = pageToken(hub.home);
const browser = await launchBrowser();
t.teardown(() => browser.close());
const context: BrowserContext = await browser.newContext({ reducedMotion: 'reduce' });
context.setDefaultTimeout(300_000);
const complaints: string[] = [];
context.on('weberror', (error) => complaints.push(String(error.error())));

/** A client that starts turns and answers nothing by itself. */
async function ask(name: string, command: string, { of = hub, at = workspace } = {}) {
  const { endpoints } = await of.record(at);
  const client = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '', {
    clientInfo: { name: 'oratorio-cli', version: '1' },
  });
  t.teardown(() => client.close());
  const { thread } = (await client.request('thread/start', { displayName: name })) as { thread: { id: string } };
  await client.request('turn/start', { threadId: thread.id, input: [{ type: 'text', text: `run: ${command}` }] });
  return client;
}

const live = (page: Page) => page.locator('.connection.live').waitFor();

t.test('an asset of the page is served, and a name beside it is unknown', async (t) => {
  const html = await (await fetch(`${apiBaseUrl}/`)).text();
  const asset = /assets\/[\w.-]+\.js/.exec(html)?.[0] ?? '';
  const found = await fetch(`${apiBaseUrl}/${asset}`);
  t.equal(found.status, 200);
  t.match(found.headers.get('content-type'), /^text\/javascript/);
  for (const path of ['assets/none.js', 'assets/..%2findex.html', 'assets/', 'none.txt']) {
    const answer = await fetch(`${apiBaseUrl}/${path}`);
    t.match([answer.status, await answer.json()], [404, { error: { code: 'notFound' } }], path);
  }
});

t.test('a request appears on a phone, is not answered at once, and is decided there or elsewhere', async (t) => {
  const page = await context.newPage();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${apiBaseUrl}/#token=${token}&at=/inbox`);
  await page.getByText('Nothing waits for you').waitFor();
  await live(page);
  const long = `touch allowed-here ${'x'.repeat(300)}`;
  await ask('phone', long);
  const request = page.locator('.request').first();
  await request.getByText(long).waitFor();
  const allow = request.getByRole('button', { name: 'Allow once' });
  await shows(t, 'equal', () => page.evaluate(() => document.activeElement?.tagName), 'BODY', 'no focus is stolen');
  t.ok((await request.locator('.consent').boundingBox())?.y ?? 0, 'the command is shown');
  const [above, below] = [await request.locator('.consent').boundingBox(), await allow.boundingBox()];
  t.ok((above?.y ?? 0) < (below?.y ?? 0), 'above the buttons');
  await shows(
    t,
    'equal',
    () => page.evaluate(() => document.documentElement.scrollWidth),
    390,
    'nothing is wider than the phone',
  );
  await shows(t, 'match', () => request.getByRole('link').getAttribute('href'), new RegExp(`^${record.page}#/chat/`));
  await allow.click();
  await request.getByText(/^Allowed on a page, /).waitFor();
  await eventually(() => existsSync(join(workspace, 'allowed-here')), 'the command runs');

  const terminal = await ask('terminal', 'touch elsewhere');
  const second = page.locator('.request').nth(1);
  await second.getByText('touch elsewhere', { exact: true }).waitFor();
  const { data } = (await terminal.request('approval/list', {})) as { data: { requestId: string }[] };
  await terminal.request('approval/respond', { requestId: data[0]?.requestId, decision: 'decline' });
  await second.getByText(/^Declined in the terminal, /).waitFor();
  await shows(t, 'equal', () => second.getByRole('button').count(), 0);
});

t.test('regression: H51 the inbox allows a long command only after its end was in view', async (t) => {
  const page = await context.newPage();
  await page.goto(`${apiBaseUrl}/#token=${token}&at=/inbox`);
  await live(page);
  const lines = Array.from({ length: 90 }, (_, index) => `echo ${index}`).join('; ');
  await ask('long', `${lines.replaceAll('; ', ';'.padEnd(400, ' '))} && touch long-allowed`);
  const request = page.locator('.request').first();
  await request.getByText(/^\d+ lines?, \d+ more below$/).waitFor();
  await eventually(
    () => request.getByRole('button', { name: 'Decline', exact: true }).isEnabled(),
    'the request has settled',
  );
  const allow = request.getByRole('button', { name: 'Allow once' });
  t.equal(await allow.isEnabled(), false);
  await readToEnd(t, request);
  await allow.click();
  await eventually(() => existsSync(join(workspace, 'long-allowed')), 'the command runs');
  await page.close();
});

t.test('one inbox shows the requests of two workspaces; of two people who answer at once one decides', async (t) => {
  // The phone of the test before, and a laptop.
  const [phone] = context.pages();
  if (!phone) throw new Error('the phone shows the inbox');
  const laptop = await context.newPage();
  await laptop.setViewportSize({ width: 1_440, height: 900 });
  await laptop.goto(`${apiBaseUrl}/#token=${token}&at=/inbox`);
  await live(laptop);
  const pages = [laptop, phone];
  await ask('first', 'touch of-the-first');
  await ask('second', 'touch of-the-second', { at: shop });
  const requestOf = (page: Page, command: string) => page.locator('.request', { hasText: command });
  for (const page of pages) {
    const { displayName } = record;
    await requestOf(page, 'touch of-the-first').locator('header b', { hasText: displayName }).waitFor();
    await requestOf(page, 'touch of-the-second').locator('header b', { hasText: shopRecord.displayName }).waitFor();
  }
  const inboxLink = (page: Page, name: string) =>
    page.getByRole('navigation', { name: 'Workspaces' }).getByRole('link', { name, exact: true });
  for (const page of pages) {
    await inboxLink(page, 'Inbox, 2 waiting').waitFor();
    await shows(
      t,
      'match',
      () => page.title(),
      /^\(2\) Inbox · /,
      'regression: waiting requests call in the title of every page',
    );
  }
  const buttonOf = async (page: Page, command: string, name: string) => {
    const found = requestOf(page, command).getByRole('button', { name, exact: true });
    await found.scrollIntoViewIfNeeded();
    await page.waitForFunction(
      (element) => element instanceof HTMLButtonElement && !element.disabled,
      await found.elementHandle(),
    );
    return found.elementHandle();
  };
  // Both press buttons that both have in sight: the second press counts for nothing.
  const presses = [
    await buttonOf(phone, 'touch of-the-second', 'Allow once'),
    await buttonOf(laptop, 'touch of-the-first', 'Allow once'),
    await buttonOf(phone, 'touch of-the-first', 'Decline'),
  ];
  await Promise.all(
    presses.map((element) => element?.evaluate((found) => found instanceof HTMLElement && found.click())),
  );
  const history: InboxHistoryEntry[] = await eventually(async () => {
    const { body } = await hub.call('GET', '/v1/inbox/history');
    const found = body.filter(({ target }: InboxHistoryEntry) => /^touch of-the-/.test(target));
    return new Set(found.map(({ target }: InboxHistoryEntry) => target)).size === 2 ? found : undefined;
  }, 'both decisions');
  t.equal(history.length, 2, 'each is decided once');
  for (const page of pages) {
    await inboxLink(page, 'Inbox').waitFor();
    await eventually(async () => /^Inbox · /.test(await page.title()), 'the title has no number');
  }
  for (const { target, workspacePath, decision, decidedBy, at } of history) {
    t.equal(workspacePath, target === 'touch of-the-first' ? workspace : shop);
    t.equal(decidedBy, 'page');
    t.ok(Number.isFinite(Date.parse(at)));
    const words = decision === 'accept' ? 'Allowed on a page, ' : 'Declined on a page, ';
    for (const page of pages) {
      const outcome = requestOf(page, target).locator('.outcome', { hasText: words });
      await shows(
        t,
        'match',
        () => outcome.textContent(),
        /, \d\d:\d\d/,
        'both pages show the same answer, by whom and when',
      );
      await shows(t, 'equal', () => requestOf(page, target).getByRole('button').count(), 0);
    }
  }
  await eventually(() => existsSync(join(shop, 'of-the-second')), 'the allowed command runs in its workspace');
  for (const page of pages) {
    t.same(await axe(page), []);
    t.equal(
      await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
      0,
      'nothing is pushed sideways',
    );
  }
  await phone.close();
});

/** The laptop, for the tests that follow. */
function laptopPage(): Page {
  const [page] = context.pages();
  if (!page) throw new Error('the laptop is open');
  return page;
}

t.test(
  'a conversation below the address of the Hub: a command is allowed, taken back, and another declined',
  async (t) => {
    const page = laptopPage();
    await page.goto(`${apiBaseUrl}${shopRecord.page}#token=${token}&at=/chat`);
    await write(page, 'run: touch made-here');
    await button(page, 'Allow once').click();
    const undo = button(page, 'Undo');
    await undo.waitFor();
    t.ok(existsSync(join(shop, 'made-here')), 'the command has run');
    await undo.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    t.notOk(existsSync(join(shop, 'made-here')), 'its file is taken back');
    await write(page, 'run: touch never-made');
    await button(page, 'Decline').click();
    await page.locator('.card', { hasText: 'Declined, ' }).waitFor();
    t.notOk(existsSync(join(shop, 'never-made')));
    t.notMatch(page.url(), token, 'the address keeps no token');
  },
);

t.test('a browser turns notices on, shows them while the page does nothing, and turns them off', async (t) => {
  await ask('notice', 'touch noticed');
  const waiting = await eventually(async () => {
    const items: InboxItem[] = (await hub.call('GET', '/v1/inbox')).body;
    return items.find(({ request }) => request.target === 'touch noticed');
  }, 'the request');
  const id = `${waiting.workspaceId}/${waiting.request.requestId}`;
  const own = await browser.newContext({ reducedMotion: 'reduce' });
  t.teardown(() => own.close());
  own.setDefaultTimeout(300_000);
  own.on('weberror', (error) => complaints.push(String(error.error())));
  const plain = await own.newPage();
  await plain.goto(`${apiBaseUrl}/#token=${token}&at=/inbox`);
  await plain.getByText('This browser refuses notices of this page').waitFor();
  t.pass('a browser that forbids them says where to allow them');
  await plain.close();

  await standInForPushService(own);
  const page = await own.newPage();
  await page.goto(`${apiBaseUrl}/#token=${token}&at=/inbox`);
  const turnOn = page.getByRole('button', { name: 'Turn on notices' });
  await turnOn.click();
  await page.locator('.notices[data-state=off]').waitFor();
  await answer(page, { permission: 'granted', refusal: 'push service not available' });
  await turnOn.click();
  await page.getByText('Notices could not be changed: push service not available').waitFor();
  t.equal((await hub.call('GET', '/v1/push')).body.subscriptions, 0);
  await page.getByRole('button', { name: 'Try again' }).click();
  await answer(page, { refusal: '' });
  await turnOn.click();
  await page.locator('.notices[data-state=on]').waitFor();
  t.equal((await hub.call('GET', '/v1/push')).body.subscriptions, 1);
  t.same(await axe(page), []);
  t.notOk(await overflowsAt(page, 390));

  const [worker = await own.waitForEvent('serviceworker')] = own.serviceWorkers();
  const path = `/#/inbox/${id}`;
  const message = { id, title: 'site waits for an answer', body: 'Exec: run', path };
  t.match(await deliver(page, worker, JSON.stringify(message)), {
    title: 'site waits for an answer',
    options: { body: 'Exec: run', tag: id, data: path },
  });
  const damaged = await deliver(page, worker, JSON.stringify({ ...message, path: 'https://evil.example/' }));
  t.match(damaged, { title: 'Oratorio', options: { data: '/#/inbox' } });
  await page.evaluate(() => {
    location.hash = '#/events';
  });
  await page.locator('.view.events').waitFor();
  await open(worker, path);
  await page.locator('.request[aria-current]', { hasText: 'touch noticed' }).waitFor();
  await open(worker, '/#/inbox/aaaaaaaaaaaaaaaa/approval_none');
  await page.getByText('The request of the notice no longer waits.').waitFor();

  await page.getByRole('button', { name: 'Turn off notices' }).click();
  await turnOn.waitFor();
  t.equal((await hub.call('GET', '/v1/push')).body.subscriptions, 0);
  t.same(await page.evaluate(() => caches.keys()), [], 'nothing is cached');
});

t.test(
  'regression: pages reconnect after kill -9 of the agent server and of the Hub, and show each session once',
  async (t) => {
    const page = laptopPage();
    await page.goto(`${apiBaseUrl}${record.page}#token=${token}&at=/sessions`);
    const names = () => page.locator('.c-name a').allTextContents();
    const row = (name: string) => page.locator('.c-name a', { hasText: name }).waitFor();
    await row('phone');
    await live(page);
    t.notMatch(page.url(), token, 'the address keeps no token');
    const { url, stored } = await page.evaluate(() => ({
      url: document.baseURI,
      stored: Object.keys(localStorage).filter((key) => /token/.test(key)),
    }));
    t.match(url, `${apiBaseUrl}${record.page}`);
    t.same(stored, []);

    killIfThere(record.pid ?? 0);
    await eventually(async () => {
      const now = await hub.record(workspace);
      return now.state === 'running' && now.pid !== record.pid ? now : undefined;
    }, 'the agent server is restarted');
    await ask('after the agent server', 'touch x');
    await row('after the agent server');

    const tab = await context.newPage();
    await tab.goto(`${apiBaseUrl}/#/inbox`);
    await tab.locator('.request').first().waitFor();
    t.pass('a tab without a token gets it from the other one');
    const chat = await context.newPage();
    // Later versions are compared with the first one that a tab reads, once its stream is live.
    const firstVersion = chat.waitForResponse(`${apiBaseUrl}/v1/page`);
    await chat.goto(`${apiBaseUrl}${record.page}#/chat`);
    await box(chat).fill('kept draft');
    await live(chat);
    await (await firstVersion).finished();
    await hub.kill('SIGKILL');
    await page.locator('.connection.reconnecting').waitFor();
    // The pages of the next Hub: another version serves, as after an update.
    for (const each of [tab, chat]) {
      await each.route('**/v1/page', async (route) => {
        const response = await route.fetch().catch(() => undefined);
        // A request that comes before the next Hub fails, as it would without the test.
        if (response === undefined) return route.abort();
        await route.fulfill({ response, json: { ...(await response.json()), version: '99.0.0' } });
      });
    }
    const next = await startTestHub(t, { home: hub.home });
    t.equal(next.lock.apiBaseUrl, apiBaseUrl);
    await live(page);
    await live(tab);
    const renewed = 'Version 99.0.0 serves this page now';
    await tab.getByText(renewed).waitFor();
    await chat.getByText(renewed).waitFor();
    t.equal(await page.getByText('serves this page now').count(), 0, 'the same version is no news');
    await chat.getByRole('button', { name: 'Reload' }).click();
    await chat.getByText(renewed).waitFor({ state: 'detached' });
    await box(chat).waitFor();
    await shows(t, 'equal', () => box(chat).inputValue(), 'kept draft', 'the reload keeps the draft');
    await ask('after the Hub', 'touch y', { of: next });
    await row('after the Hub');
    t.same(
      (await names()).sort(),
      ['after the Hub', 'after the agent server', 'first', 'long', 'notice', 'phone', 'terminal'],
      'each once',
    );
    t.same(complaints, []);
    await next.shutdown();
  },
);
