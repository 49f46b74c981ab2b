/** Shared parts of the tests of the actors view, in a real browser over real actors. */
import type { BrowserContextOptions, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { createWorkspace, startBackend, token, type Workspace } from './backend.ts';
import { builtPage } from './built-page.ts';
import { keptPage } from './kept-page.ts';

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

type Play = (t: Test, scene: Scene) => Promise<void>;

/**
 * Has the built page at hand, and a browser for a test file. A test opens the page over its own backend, and fails for a script
 * error, a violation of the content security policy and a request to another origin.
 */
export async function actorsStage() {
  const directory = await builtPage(t.testdir());
  const openPage = keptPage({ width: 1360, height: 860 });

  return function onPage(name: string, play: Play, options: SceneOptions = {}): void {
    t.test(name, async (t) => {
      const backend = await startBackend(directory);
      t.teardown(() => backend.close());
      const workspaces = (options.workspaces ?? [demo]).map((path) => backend.add(path));
      await options.prepare?.(backend, workspaces);
      const { page, complaints, foreign } = await openPage(t, { origin: backend.url, context: options.context });
      await page.goto(linkTo(backend, options.at));
      await page.locator('.actors, .gate').first().waitFor();
      await play(t, { backend, page, workspaces, workspace: workspaces[0] ?? createWorkspace(demo) });
      t.same(complaints, [], 'no script error, no violation of the content security policy');
      t.same(foreign, [], 'no request to another origin');
    });
  };
}

/** Address with the token, as `oratorio inspect` prints it. */
export const linkTo = (backend: Backend, at = '/actors'): string =>
  `${backend.url}#token=${token}&at=${encodeURIComponent(at)}`;

export const lit = (page: Page, state: string): Promise<void> =>
  page.locator(`.node.active:is([data-state="${state}"], [data-frame="${state}"])`).waitFor({ state: 'attached' });

/** Chooses an actor whose title contains `name`. */
export const select = (page: Page, name: string): Promise<void> =>
  page.locator('[role=treeitem]', { hasText: name }).first().click();

export const showTab = (page: Page, name: string): Promise<void> => page.getByRole('tab', { name }).click();

/** Waits until the log holds `steps` transitions: a stream may deliver them in several pieces. */
export const hasWholeLog = (page: Page, steps: number): Promise<void> =>
  page.locator('.log .panel-tools', { hasText: new RegExp(`^${steps}$`) }).waitFor();

/** Waits until a locator's text equals or matches the expected one. */
export async function hasText(page: Page, selector: string, expected: RegExp | string): Promise<void> {
  await page.locator(selector, { hasText: expected }).first().waitFor();
}
