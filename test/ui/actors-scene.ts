/** Shared parts of the tests of the actors view, in a real browser over real actors. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import type { Test } from 'tap';
import { createWorkspace, startBackend, token, type Workspace } from './backend.ts';

export const demo = '/home/ada/projects/demo';

export type Backend = Awaited<ReturnType<typeof startBackend>>;

export interface Scene {
  readonly backend: Backend;
  readonly page: Page;
  readonly workspaces: readonly Workspace[];
  readonly workspace: Workspace;
}

export interface SceneOptions {
  readonly workspaces?: readonly string[];
  /** Where the link leads, after `#`. */
  readonly at?: string;
  readonly context?: BrowserContextOptions;
  /** Before the page is opened. */
  readonly prepare?: (backend: Backend, workspaces: readonly Workspace[]) => Promise<void>;
}

/**
 * Opens the page over its own backend, plays, and closes both. Fails for a script error, a violation of the content
 * security policy and a request to another origin.
 */
export async function playScene(
  t: Test,
  { browser, directory }: { readonly browser: Browser; readonly directory: string },
  play: (scene: Scene) => Promise<void>,
  options: SceneOptions = {},
): Promise<void> {
  const backend = await startBackend(directory);
  t.teardown(() => backend.close());
  const workspaces = (options.workspaces ?? [demo]).map((path) => backend.add(path));
  await options.prepare?.(backend, workspaces);
  const context = await browser.newContext({
    viewport: { width: 1360, height: 860 },
    reducedMotion: 'reduce',
    colorScheme: 'light',
    ...options.context,
  });
  t.teardown(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(180_000);
  const complaints: string[] = [];
  const foreign: string[] = [];
  page.on('console', (message) => {
    // A connection that a test cut is reported by the browser itself; everything else is a fault of the page.
    const isCut = /Failed to load resource|net::ERR/.test(message.text());
    if (message.type() === 'error' && !isCut) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    if (!/^(blob|data):/.test(request.url()) && !request.url().startsWith(backend.url)) foreign.push(request.url());
  });
  await page.exposeFunction('reportViolation', (text: string) => complaints.push(text));
  await page.addInitScript(() => {
    const scope = globalThis as unknown as { reportViolation(text: string): void };
    addEventListener('securitypolicyviolation', (event) =>
      scope.reportViolation(`${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  await page.goto(linkTo(backend, options.at));
  await page.locator('.actors, .gate').first().waitFor();
  await play({ backend, page, workspaces, workspace: workspaces[0] ?? createWorkspace(demo) });
  t.same(complaints, [], 'no script error, no violation of the content security policy');
  t.same(foreign, [], 'no request to another origin');
}

/** Address with the token, as `oratorio inspect` prints it. */
export const linkTo = (backend: Backend, at = '/actors'): string =>
  `${backend.url}#token=${token}&at=${encodeURIComponent(at)}`;

export const lit = (page: Page, state: string): Promise<void> =>
  page.locator(`.node.active[data-state="${state}"]`).waitFor({ state: 'attached' });

/** Chooses an actor whose title contains `name`. */
export const select = (page: Page, name: string): Promise<void> =>
  page.locator('[role=treeitem]', { hasText: name }).first().click();

export const showTab = (page: Page, name: string): Promise<void> => page.getByRole('tab', { name }).click();

/** Waits until the log holds `steps` transitions: a stream may deliver them in several pieces. */
export const hasWholeLog = (page: Page, steps: number): Promise<void> =>
  page.locator('.log .panel-tools', { hasText: new RegExp(`^${steps}$`) }).waitFor();

/** Waits until a locator's text is, or matches, what is expected. */
export async function hasText(page: Page, selector: string, expected: RegExp | string): Promise<void> {
  await page.locator(selector, { hasText: expected }).first().waitFor();
}
