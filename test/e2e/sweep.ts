/** Checks views of the product as it is served: two sizes of screen, light and dark, its real Content-Security-Policy. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { Test } from 'tap';
import { axe } from '../ui/scene.ts';

const screens = [
  { width: 1_440, height: 900 },
  { width: 390, height: 844 },
] as const;

/** A browser that holds everything against its page that no page may do. */
export interface Watched {
  readonly context: BrowserContext;
  /** Script errors, violations of the Content-Security-Policy. */
  readonly complaints: string[];
  /** Requests to other origins. */
  readonly foreign: string[];
}

export async function watched(t: Pick<Test, 'teardown'>, browser: Browser, origin: string): Promise<Watched> {
  const context = await browser.newContext({ reducedMotion: 'reduce', viewport: screens[0] });
  t.teardown(() => context.close());
  context.setDefaultTimeout(120_000);
  const [complaints, foreign]: [string[], string[]] = [[], []];
  context.on('weberror', (error) => complaints.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  context.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol !== 'blob:' && url.protocol !== 'data:' && url.origin !== origin) foreign.push(request.url());
  });
  return { context, complaints, foreign };
}

/** A view, and what shows that it is there. */
export interface Visit {
  /** Behind `#/`. */
  readonly at: string;
  /** Selector; default: the heading of a view. */
  readonly shows?: string;
}

/** Opens each view in the tab, on a laptop and on a phone; in both themes axe finds nothing and nothing is pushed sideways. */
export async function visitAll(t: Test, page: Page, visits: readonly Visit[]): Promise<void> {
  for (const { at, shows = 'main h1' } of visits) {
    await page.evaluate((hash) => {
      location.hash = hash;
    }, `/${at}`);
    await page.locator(shows).first().waitFor({ state: 'attached' });
    for (const screen of screens) {
      await page.setViewportSize(screen);
      await page.waitForFunction((width) => innerWidth === width, screen.width);
      const { scroll, client } = await page.evaluate(() => ({
        scroll: document.documentElement.scrollWidth,
        client: document.documentElement.clientWidth,
      }));
      t.ok(scroll <= client, `#/${at} fits ${screen.width} px`, { scroll, client });
      t.same(await axe(page), [], `#/${at} at ${screen.width} px`);
    }
  }
}

/** Text of a page for readers without scripts. */
export async function withoutScripts(browser: Browser, address: string): Promise<string> {
  const context = await browser.newContext({ javaScriptEnabled: false });
  try {
    const page = await context.newPage();
    await page.goto(address);
    return (await page.locator('noscript').allInnerTexts()).join(' ');
  } finally {
    await context.close();
  }
}
