/** Page of the review backend in a real browser. Tests fail for a script error or a request to another origin. */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { launchBrowser } from '../browser.ts';
import { builtPage } from './built-page.ts';
import { type ReviewBackend, reviewToken, startReviewBackend } from './review-backend.ts';

export interface ReviewScene {
  readonly backend: ReviewBackend;
  readonly context: BrowserContext;
  readonly page: Page;
}
interface SceneOptions {
  /** Called before the page is opened; where it is opened: `/queue?show=failed`. */
  readonly prepare?: (backend: ReviewBackend) => Promise<string | undefined> | Promise<void>;
  readonly at?: string;
  /** Instead of the token that opens it. */
  readonly token?: string;
  readonly isUnauthenticated?: boolean;
  readonly repositories?: readonly string[];
  readonly context?: BrowserContextOptions;
}

type Play = (t: Test, scene: ReviewScene) => Promise<void>;

/** Has the built page at hand, and starts a browser for a test file. */
export async function reviewStage() {
  const pageDirectory = await builtPage(t.testdir());
  let browser: Browser | undefined;
  t.before(async () => {
    browser = await launchBrowser();
  });
  t.teardown(() => browser?.close());

  /** One test, or several by name that share a page, each beginning where the one before it has left the page. */
  return function scene(name: string, options: SceneOptions, plays: Play | Readonly<Record<string, Play>>): void {
    t.test(name, async (t) => {
      if (!browser) throw new Error('the browser has not started');
      const backend = await startReviewBackend(pageDirectory, options.repositories);
      t.teardown(() => backend.close());
      const at = (await options.prepare?.(backend)) ?? options.at ?? '';
      const context = await browser.newContext({
        viewport: { width: 1280, height: 800 },
        reducedMotion: 'reduce',
        colorScheme: 'light',
        locale: 'en-GB',
        timezoneId: 'Europe/Berlin',
        ...options.context,
      });
      t.teardown(() => context.close());
      context.setDefaultTimeout(120_000);
      const faults: string[] = [];
      watch(context, backend, faults);
      const page = await context.newPage();
      const fragment = new URLSearchParams({ token: options.token ?? reviewToken, ...(at !== '' && { at }) });
      // The root of the server redirects to the page and keeps the fragment.
      await page.goto(options.isUnauthenticated ? `${backend.origin}/` : `${backend.origin}/#${fragment}`);
      const playIn = async (t: Test, play: Play) => {
        await play(t, { backend, context, page });
        t.same(faults, [], 'no script error, no violation of the content security policy, no request elsewhere');
      };
      if (typeof plays === 'function') return playIn(t, plays);
      for (const [name, play] of Object.entries(plays)) await t.test(name, (t) => playIn(t, play));
    });
  };
}

function watch(context: BrowserContext, { origin }: ReviewBackend, faults: string[]): void {
  context.on('console', (message) => {
    // An answer that a test refuses or cuts is reported by the browser itself; everything else is a fault of the page.
    const isRefused = /Failed to load resource|net::ERR/.test(message.text());
    if (message.type() === 'error' && !isRefused) faults.push(message.text());
  });
  context.on('weberror', (error) => faults.push(String(error.error())));
  context.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith('blob:')) faults.push(url);
  });
}
