/** Page of the built UI over the backend with traces, in a real browser. Tests fail for a script error or a request to another origin. */
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import t from 'tap';
import { builtPage } from './built-page.ts';
import { keptPage, type Plays, playAll } from './kept-page.ts';
import { type Backend, type BackendOptions, startBackend, token } from './sessions-backend.ts';

export interface Scene {
  readonly backend: Backend;
  readonly context: BrowserContext;
  readonly page: Page;
  /** Opens another place of the page, as from a link in a terminal. */
  readonly open: (at: string) => Promise<void>;
}

export interface SceneOptions extends BackendOptions {
  readonly context?: BrowserContextOptions;
  /** Where the page is opened: `/sessions?q=x`. */
  readonly at: string;
  /** The clock of the page can be moved on. */
  readonly hasClock?: boolean;
  /** Fills the backend before the page is opened. */
  readonly prepare?: (backend: Backend) => void;
}

/** Has the built page at hand, and starts a browser for a test file. */
export async function stage() {
  const pageDirectory = await builtPage(t.testdir());
  const openPage = keptPage();

  return function scene(name: string, options: SceneOptions, plays: Plays<Scene>): void {
    t.test(name, async (t) => {
      const backend = await startBackend(pageDirectory, options);
      t.teardown(() => backend.close());
      options.prepare?.(backend);
      const { context, page, complaints, foreign } = await openPage(t, {
        origin: backend.origin,
        context: options.context,
        isChanged: options.hasClock,
      });
      if (options.hasClock) await installClock(page);
      const open = async (at: string) => {
        // A link that changes the fragment alone loads nothing.
        if (page.url() !== 'about:blank') await page.goto('about:blank');
        await page.goto(`${backend.url}#${new URLSearchParams({ token, at })}`);
      };
      await open(options.at);
      await playAll(t, plays, { backend, context, page, open }, (t) => {
        t.same(complaints, [], 'no script error, no violation of the content security policy');
        t.same(foreign, [], 'no request to another origin');
        t.same(backend.failed, [], 'every answer is what its schema says');
      });
    });
  };
}

/** A clock that a test moves. Deadlines of requests stay in real time: a jump would end a request that is under way. */
async function installClock(page: Page): Promise<void> {
  await page.context().addInitScript(() => Object.assign(globalThis, { realDeadline: AbortSignal.timeout }));
  await page.clock.install();
  await page.addInitScript(() => {
    const { realDeadline } = globalThis as unknown as { readonly realDeadline: typeof AbortSignal.timeout };
    AbortSignal.timeout = (ms) => realDeadline.call(AbortSignal, ms);
  });
}

/** Text of the clipboard. */
export const clipboard = (page: Page): Promise<string> => page.evaluate(() => navigator.clipboard.readText());
