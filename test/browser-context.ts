/**
 * Browser contexts of tests. The tests of a file that need nothing special share one, because a new context starts a process
 * for its pages, which compiles the page and axe-core again.
 */
import type { Browser, BrowserContext, BrowserContextOptions, CDPSession, Page } from 'playwright-core';
import type { Test } from 'tap';

interface Shared {
  readonly context: BrowserContext;
  /** Stays open, because the process ends with its last page. */
  readonly anchor: Page;
  readonly session: CDPSession;
  isTaken: boolean;
}

/** By browser and options. */
const sharedContexts = new WeakMap<Browser, Map<string, Promise<Shared>>>();

/** Events of a context to which tests listen. */
const observed = ['console', 'page', 'request', 'requestfailed', 'response', 'weberror'];

/**
 * Context for the duration of a test: that of the file, without a page, cookie or stored value of an earlier test. A test that
 * passes options of its own (`{}` is enough), because it differs or adds routes or scripts to the context, gets a new one.
 */
export async function contextFor(
  t: Pick<Test, 'teardown'>,
  browser: Browser,
  defaults: BrowserContextOptions,
  own: BrowserContextOptions | undefined,
): Promise<BrowserContext> {
  if (own) {
    const context = await browser.newContext({ ...defaults, ...own });
    t.teardown(() => context.close());
    return context;
  }
  const shared = await sharedContext(browser, defaults);
  if (shared.isTaken) throw new Error('another test of this file is using the shared context');
  shared.isTaken = true;
  const { context } = shared;
  const pages: Page[] = [];
  context.on('page', (page) => pages.push(page));
  t.teardown(async () => {
    await clear(shared, pages);
    shared.isTaken = false;
  });
  return context;
}

function sharedContext(browser: Browser, options: BrowserContextOptions): Promise<Shared> {
  const ofBrowser = sharedContexts.get(browser) ?? new Map<string, Promise<Shared>>();
  sharedContexts.set(browser, ofBrowser);
  const key = JSON.stringify(options);
  const shared = ofBrowser.get(key) ?? createShared(browser, options);
  ofBrowser.set(key, shared);
  return shared;
}

async function createShared(browser: Browser, options: BrowserContextOptions): Promise<Shared> {
  const context = await browser.newContext(options);
  const anchor = await context.newPage();
  return { context, anchor, session: await context.newCDPSession(anchor), isTaken: false };
}

/** Closes the pages of a test, then removes its listeners, cookies and what the origins of its pages have stored. */
async function clear({ context, anchor, session }: Shared, opened: readonly Page[]): Promise<void> {
  if (!anchor.context().browser()?.isConnected()) return;
  for (const page of context.pages()) if (page !== anchor) await page.close();
  for (const event of observed) context.removeAllListeners(event);
  await context.clearCookies();
  for (const origin of new Set(opened.map((page) => new URL(page.url()).origin)))
    if (origin !== 'null') await session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' });
}
