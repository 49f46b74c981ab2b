/**
 * One page for the tests of a process, one after another: its renderer process stays, whose start is a large part of a page load.
 * Each test serves the page from an origin of its own, so storage and caches begin empty; the rest is reset after a test.
 */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import type { Test } from 'tap';
import { processTest } from '../../scripts/shared-tap.ts';
import { launchBrowser } from '../browser.ts';

export interface WatchedPage {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Script errors and violations of the content security policy. */
  readonly complaints: string[];
  /** Requests to other origins. */
  readonly foreign: string[];
}

export interface PageRequest {
  readonly origin: string;
  /** Options that the kept page does not have: the test gets a context of its own. */
  readonly context?: BrowserContextOptions | undefined;
  /** The test changes what cannot be reset, such as scripts that run before those of the page. */
  readonly isChanged?: boolean | undefined;
}

const defaults = {
  viewport: { width: 1280, height: 800 },
  reducedMotion: 'reduce',
  colorScheme: 'light',
  locale: 'en-GB',
  timezoneId: 'Europe/Berlin',
  permissions: ['clipboard-read', 'clipboard-write'],
} satisfies BrowserContextOptions;

/** A page, and what it does that no page may do. */
class Watch implements WatchedPage {
  readonly context: BrowserContext;
  readonly page: Page;
  complaints: string[] = [];
  foreign: string[] = [];
  #origin = '';

  private constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
  }

  static async open(browser: Browser, options: BrowserContextOptions): Promise<Watch> {
    const context = await browser.newContext(options);
    context.setDefaultTimeout(180_000);
    const watch = new Watch(context, await context.newPage());
    context.on('console', (message) => {
      // An answer that a test refuses or cuts is reported by the browser itself; everything else is a fault of the page.
      const isOfNetwork = /Failed to load resource|net::ERR|WebSocket connection/.test(message.text());
      if (message.type() === 'error' && !isOfNetwork) watch.complaints.push(message.text());
    });
    await context.addInitScript(() => {
      addEventListener('securitypolicyviolation', (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
      });
    });
    context.on('weberror', (error) => watch.complaints.push(String(error.error())));
    context.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(watch.#origin) && !/^(?:blob|data|about):/.test(url)) watch.foreign.push(url);
    });
    return watch;
  }

  begin(origin: string): void {
    this.#origin = origin;
    this.complaints = [];
    this.foreign = [];
  }

  /** Leaves the page as a new one is. */
  async reset(viewport: { readonly width: number; readonly height: number }): Promise<void> {
    const { context, page } = this;
    for (const other of context.pages()) if (other !== page) await other.close();
    await page.goto('about:blank');
    await context.unrouteAll();
    await page.unrouteAll();
    await context.clearCookies();
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme: defaults.colorScheme, reducedMotion: defaults.reducedMotion });
    await page.mouse.move(0, 0);
  }
}

let browser: Promise<Browser> | undefined;
const kept = new Map<string, Watch>();

/** Starts the browser of this process, which the files that share the process share. */
function sharedBrowser(): Promise<Browser> {
  if (!browser) {
    const started = launchBrowser();
    processTest.teardown(async () => (await started).close());
    browser = started;
  }
  return browser;
}

/** Returns what gives a test its page. */
export function keptPage(viewport = defaults.viewport) {
  const key = JSON.stringify(viewport);

  return async function openPage(t: Test, { origin, context, isChanged = false }: PageRequest): Promise<WatchedPage> {
    const isKept = context === undefined && !isChanged;
    const watch =
      (isKept && kept.get(key)) || (await Watch.open(await sharedBrowser(), { ...defaults, viewport, ...context }));
    if (isKept) kept.set(key, watch);
    watch.begin(origin);
    t.teardown(async () => {
      if (isKept && t.passing() && !watch.page.isClosed()) return watch.reset(viewport);
      if (isKept) kept.delete(key);
      await watch.context.close();
    });
    return watch;
  };
}
