/**
 * The page's chat over a real agent server whose model a test decides, in a real browser. A test fails for a script error, a
 * violation of the content security policy, or a request to another origin.
 */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { isBuilt } from '../../scripts/stamp.mjs';
import type { ModelProvider } from '../../src/agent/index.ts';
import { launchBrowser } from '../browser.ts';
import { scene as dashboardScene, type Scene as Served } from '../dashboard/harness.ts';

export interface ChatScene {
  readonly served: Served;
  readonly page: Page;
  /** Goes to a view of the page. */
  go(at: string): Promise<void>;
}

/** Has the page of these sources in `dist/`, from which the agent server serves it. `npm test` has built it before. */
async function buildPage(): Promise<void> {
  if (isBuilt()) return;
  const { build } = await import('vite');
  await build({ configFile: 'src/ui/vite.config.ts', logLevel: 'error' });
}

export interface Watched {
  readonly complaints: readonly string[];
}

/** Collects what must not happen in a page. */
export async function watch(page: Page, origin: string): Promise<Watched> {
  const complaints: string[] = [];
  page.on('console', (message) => {
    // The browser logs each refused request and each cut connection; those are expected.
    const isOfNetwork = /Failed to load resource|net::ERR|WebSocket connection/.test(message.text());
    if (message.type() === 'error' && !isOfNetwork) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !/^(?:blob|data):/.test(url)) complaints.push(`foreign: ${url}`);
  });
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  return { complaints };
}

export const defaultContext: BrowserContextOptions = {
  viewport: { width: 1440, height: 900 },
  reducedMotion: 'reduce',
  colorScheme: 'light',
  locale: 'en-GB',
  timezoneId: 'Europe/Berlin',
};

/** Starts a browser for a test file. */
export async function chatStage() {
  await buildPage();
  let browser: Browser | undefined;
  t.before(async () => {
    browser = await launchBrowser();
  });
  t.teardown(() => browser?.close());

  const open = async (
    t: Test,
    { url, token }: Pick<Served, 'url' | 'token'>,
    at: string,
    more: BrowserContextOptions = {},
  ) => {
    if (!browser) throw new Error('the browser has not started');
    const context = await browser.newContext({ ...defaultContext, ...more });
    t.teardown(() => context.close());
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    const watched = await watch(page, url);
    await page.goto(`${url}/DashBoard#${new URLSearchParams({ token, at })}`);
    return { page, watched };
  };

  function scene(
    name: string,
    options: {
      readonly provider: ModelProvider;
      readonly config?: Readonly<Record<string, unknown>>;
      readonly at?: string;
      readonly context?: BrowserContextOptions;
    },
    play: (t: Test, scene: ChatScene) => Promise<void>,
  ): void {
    t.test(name, async (t) => {
      const served = await dashboardScene(t, options.config ?? {}, options.provider);
      const { page, watched } = await open(t, served, options.at ?? '/chat', options.context);
      const go = async (at: string) => {
        await page.evaluate((hash) => {
          location.hash = hash;
        }, `#${at}`);
      };
      await play(t, { served, page, go });
      t.same(watched.complaints, [], 'no script error, no violation of the policy, no request to another origin');
    });
  }
  return { scene, open };
}

/** The one box for messages. */
export const box = (page: Page) => page.getByRole('textbox', { name: 'Message' });

/** Writes a message and sends it with Enter. */
export async function write(page: Page, text: string): Promise<void> {
  await box(page).fill(text);
  await box(page).press('Enter');
}

export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** Resolves with the id of the thread that is open. */
export async function openThread(page: Page): Promise<string> {
  await page.waitForFunction(() => location.hash.startsWith('#/chat/'));
  return decodeURIComponent(new URL(page.url()).hash.replace('#/chat/', ''));
}
