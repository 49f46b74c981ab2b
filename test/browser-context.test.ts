/** Tests of a file that share a browser context see nothing of each other. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BrowserContext, Page } from 'playwright-core';
import t from 'tap';
import { launchBrowser, sharedProcess } from './browser.ts';
import { contextFor } from './browser-context.ts';

const browser = await launchBrowser(sharedProcess);
t.teardown(() => browser.close());
const server = createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>page'));
server.listen(0, '127.0.0.1');
await once(server, 'listening');
t.teardown(() => {
  server.closeAllConnections();
  server.close();
});
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

interface Storages {
  readonly document: { cookie: string };
  readonly localStorage: Record<string, string>;
  readonly sessionStorage: Record<string, string>;
}

/** Values that are stored at the origin of a page. */
const storedIn = (page: Page): Promise<unknown> =>
  page.evaluate(async () => {
    const { document, localStorage, sessionStorage } = globalThis as unknown as Storages;
    return [document.cookie, { ...localStorage }, { ...sessionStorage }, await caches.keys()];
  });
const nothing = ['', {}, {}, []];

let first: BrowserContext;
const heard: string[] = [];

t.test('one test leaves pages, listeners, cookies and stored values', async (t) => {
  first = await contextFor(t, browser, {}, undefined);
  first.on('request', (request) => heard.push(request.url()));
  const page = await first.newPage();
  await page.goto(url);
  t.same(await storedIn(page), nothing);
  await page.evaluate(async () => {
    const { document, localStorage, sessionStorage } = globalThis as unknown as Storages;
    document.cookie = 'a=1';
    localStorage['a'] = '1';
    sessionStorage['a'] = '1';
    await caches.open('a');
  });
  t.notSame(await storedIn(page), nothing);
  t.same(heard.length > 0, true);
  await t.rejects(contextFor(t, browser, {}, undefined), /is using the shared context/);
});

t.test('the next test has the same context without them', async (t) => {
  const before = heard.length;
  const context = await contextFor(t, browser, {}, undefined);
  t.equal(context, first);
  t.equal(context.pages().length, 1, 'only the page that keeps the process');
  const page = await context.newPage();
  await page.goto(url);
  t.same(await storedIn(page), nothing);
  t.equal(heard.length, before);
});

t.test('options of its own give a test a context of its own', async (t) => {
  const context = await contextFor(t, browser, {}, { locale: 'en-GB' });
  t.not(context, first);
  t.same(context.pages(), []);
});

t.test('a test that closes the browser ends well', async (t) => {
  const context = await contextFor(t, browser, {}, undefined);
  await context.newPage();
  await browser.close();
  t.equal(browser.isConnected(), false);
});
