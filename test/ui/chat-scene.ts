/**
 * The page's chat over a real agent server whose model a test decides, in a real browser. A test fails for a script error, a
 * violation of the content security policy, or a request to another origin.
 */
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import type { ModelProvider } from '../../src/agent/index.ts';
import { scene as dashboardScene, type Scene as Served } from '../dashboard/harness.ts';
import { hasBuiltPage } from './built-page.ts';
import { goTo, keptPage, type PageRequest } from './kept-page.ts';
import { pagePort } from './page-server.ts';

export interface ChatScene {
  readonly served: Served;
  readonly page: Page;
  /** Goes to a view of the page. */
  go(at: string): Promise<void>;
}

/** Has the page of these sources in `dist/`, from which the agent server serves it. `npm test` has built it before. */
async function buildPage(): Promise<void> {
  if (hasBuiltPage()) return;
  const { build } = await import('vite');
  await build({ configFile: 'src/ui/vite.config.ts', logLevel: 'error' });
}

/** Starts a browser for a test file. */
export async function chatStage() {
  await buildPage();
  const openPage = keptPage({ width: 1440, height: 900 });

  const open = async (
    t: Test,
    { url, token }: Pick<Served, 'url' | 'token'>,
    at: string,
    options: Omit<PageRequest, 'origin'> = {},
  ) => {
    const watched = await openPage(t, { origin: url, ...options });
    await watched.page.goto(`${url}/DashBoard#${new URLSearchParams({ token, at })}`);
    return watched;
  };

  function scene(
    name: string,
    options: {
      readonly provider: ModelProvider;
      readonly config?: Readonly<Record<string, unknown>>;
      readonly at?: string;
    } & Omit<PageRequest, 'origin'>,
    play: (t: Test, scene: ChatScene) => Promise<void>,
  ): void {
    t.test(name, async (t) => {
      const config = { DashBoard: { Port: await pagePort() }, ...options.config };
      const served = await dashboardScene(t, config, options.provider);
      const { page, complaints, foreign } = await open(t, served, options.at ?? '/chat', options);
      await play(t, { served, page, go: (at) => goTo(page, at) });
      t.same(
        [...complaints, ...foreign],
        [],
        'no script error, no violation of the policy, no request to another origin',
      );
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
