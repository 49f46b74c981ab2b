/** Checks served views: screen sizes, zoom, light and dark, keyboard, motion, and the real Content-Security-Policy. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { Test } from 'tap';
import { type PageWatch, watchPages } from '../page-watch.ts';
import { axe, pressable, smallTargets } from '../ui/scene.ts';

const screens = [
  { width: 1_440, height: 900 },
  { width: 390, height: 844 },
] as const;
/** Screen of a laptop at a zoom of 200 %. */
const zoomed = { width: 720, height: 450 } as const;
/** Limit of Tab presses per view. */
const mostTabs = 250;

export async function watched(
  t: Pick<Test, 'teardown'>,
  browser: Browser,
  origin: string,
): Promise<PageWatch & { readonly context: BrowserContext }> {
  const context = await browser.newContext({ reducedMotion: 'reduce', viewport: screens[0] });
  t.teardown(() => context.close());
  context.setDefaultTimeout(300_000);
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
  const [view = '', inside] = at.replace(/^\//, '').replace(/\?.*/, '').split('/');
  return roots[inside === undefined ? view : `${view}/`] ?? `.view.${view}`;
}

/** Opens an address (behind `#`) of a page that is open. */
export async function openAt(page: Page, at: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, at);
  await page.locator(rootOf(at)).waitFor();
  // Skeletons, and answers to a request that has just appeared.
  await page.waitForFunction(() => document.querySelector('[aria-busy=true]') === null);
}

async function resize(page: Page, screen: { readonly width: number; readonly height: number }): Promise<void> {
  await page.setViewportSize(screen);
  await page.waitForFunction((width) => innerWidth === width, screen.width);
}

async function fits(t: Test, page: Page, at: string, width: number): Promise<void> {
  const { scroll, client } = await page.evaluate(() => ({
    scroll: document.documentElement.scrollWidth,
    client: document.documentElement.clientWidth,
  }));
  t.ok(scroll <= client, `#/${at} fits ${width} px`, { scroll, client });
}

/**
 * Opens each address (behind `#/`) in the tab, on a laptop and on a phone; in both themes axe finds nothing and nothing is
 * pushed sideways. On the phone each target has room for a finger.
 */
export async function visitAll(t: Test, page: Page, addresses: readonly string[]): Promise<void> {
  for (const at of addresses) {
    await openAt(page, `/${at}`);
    for (const screen of screens) {
      await resize(page, screen);
      await fits(t, page, at, screen.width);
      t.same(await axe(page), [], `#/${at} at ${screen.width} px`);
    }
    t.same(await smallTargets(page, 32, pressable), [], `targets of #/${at} on a phone`);
  }
}

/** Opens each address. Checks that it fits at 200 %, respects reduced motion, and that Tab reaches every control. */
export async function operateAll(t: Test, page: Page, addresses: readonly string[]): Promise<void> {
  for (const at of addresses) {
    await resize(page, screens[0]);
    await openAt(page, `/${at}`);
    t.same(await moving(page), [], `#/${at} without motion`);
    t.same(await unreachable(page), [], `#/${at} by keyboard`);
    await resize(page, zoomed);
    await fits(t, page, at, zoomed.width);
  }
}

/** Animations that run despite reduced motion. */
const moving = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    document.getAnimations().flatMap((animation) => {
      const { duration = 0 } = animation.effect?.getTiming() ?? {};
      const target = animation.effect instanceof KeyframeEffect ? animation.effect.target : null;
      const isSeen = animation.playState === 'running' && Number(duration) > 100;
      return isSeen ? [`${target?.className.toString()} for ${String(duration)} ms`] : [];
    }),
  );

/** Controls that Tab does not reach, and controls without a visible focus. */
async function unreachable(page: Page): Promise<string[]> {
  const controls = 'main :is(a[href], button, input:not([type=radio]), select, textarea, summary, [tabindex="0"])';
  await page.evaluate(() => {
    (document.activeElement as HTMLElement | null)?.blur();
    getSelection()?.removeAllRanges();
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute('tabindex');
  });
  const faults = new Set<string>();
  for (let presses = 0; presses < mostTabs; presses += 1) {
    await page.keyboard.press('Tab');
    const found = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      const isAgain = element.hasAttribute('data-tabbed');
      element.setAttribute('data-tabbed', '');
      // A box around a field may show the focus of the field.
      const around = [element, element.parentElement, element.parentElement?.parentElement];
      const isMarked = around.some((each) => {
        if (!each) return false;
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(each);
        return (outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none';
      });
      return { isAgain, fault: isMarked ? null : `no mark: ${element.outerHTML.slice(0, 120)}` };
    });
    if (found?.fault) faults.add(found.fault);
    if (found === null || found.isAgain) break;
  }
  const missed = await page.evaluate((controls) => {
    const all = [...document.querySelectorAll<HTMLElement>(controls)];
    return all
      .filter(
        (element) => element.tabIndex >= 0 && !element.matches(':disabled') && !element.hasAttribute('data-tabbed'),
      )
      .filter((element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest('[inert]'))
      .map((element) => `not reached: ${element.outerHTML.slice(0, 120)}`);
  }, controls);
  await page.evaluate(() => {
    for (const element of document.querySelectorAll('[data-tabbed]')) element.removeAttribute('data-tabbed');
  });
  return [...faults, ...missed];
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
