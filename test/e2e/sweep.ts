/** Checks views of the served product: two sizes of screen, light and dark, its real Content-Security-Policy. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { Test } from 'tap';
import { type PageWatch, watchPages } from '../page-watch.ts';
import { axe } from '../ui/scene.ts';

const screens = [
  { width: 1_440, height: 900 },
  { width: 390, height: 844 },
] as const;

export async function watched(
  t: Pick<Test, 'teardown'>,
  browser: Browser,
  origin: string,
): Promise<PageWatch & { readonly context: BrowserContext }> {
  const context = await browser.newContext({ reducedMotion: 'reduce', viewport: screens[0] });
  t.teardown(() => context.close());
  context.setDefaultTimeout(120_000);
  return { context, ...(await watchPages(context, { isOwn: (url) => new URL(url).origin === origin })) };
}

/** Elements that are there once a view is, where its class is not its name. */
const roots: Readonly<Record<string, string>> = {
  overview: '.view.home',
  actors: '.actors',
  queue: '.view.review-queue',
  'queue/': '.view.review-pull',
  'sessions/': '.view.trace',
};

/** Selector of the view of an address. */
function rootOf(at: string): string {
  const [view = '', inside] = at.replace(/^\//, '').split('/');
  return roots[inside === undefined ? view : `${view}/`] ?? `.view.${view}`;
}

/** Opens an address (behind `#`) of a page that is open. */
export async function openAt(page: Page, at: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, at);
  await page.locator(rootOf(at)).waitFor();
  await page.locator('[aria-busy=true]').waitFor({ state: 'detached' });
}

/** Opens each address (behind `#/`) in the tab, on a laptop and on a phone; in both themes axe finds nothing and nothing is pushed sideways. */
export async function visitAll(t: Test, page: Page, addresses: readonly string[]): Promise<void> {
  for (const at of addresses) {
    await openAt(page, `/${at}`);
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

/** Texts of pages for readers without scripts. */
export async function withoutScripts(browser: Browser, addresses: readonly string[]): Promise<readonly string[]> {
  const context = await browser.newContext({ javaScriptEnabled: false });
  try {
    const page = await context.newPage();
    const texts: string[] = [];
    for (const address of addresses) {
      await page.goto(address);
      texts.push((await page.locator('noscript').allInnerTexts()).join(' '));
    }
    return texts;
  } finally {
    await context.close();
  }
}
