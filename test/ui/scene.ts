/** Page of the built UI over a fake backend, in a real browser. Tests fail for a script error or a request to another origin. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { builtPage } from './built-page.ts';
import { keptPage, type Plays, playAll } from './kept-page.ts';
import { remaining, shows } from './shows.ts';
import { type BackendOptions, startWorkspaceBackend, token, type WorkspaceBackend } from './workspace-backend.ts';

export interface Scene {
  readonly backend: WorkspaceBackend;
  readonly context: BrowserContext;
  readonly page: Page;
}

export interface SceneOptions extends BackendOptions {
  readonly context?: BrowserContextOptions;
  /** Where the page is opened: `/events?q=x`. */
  readonly at?: string;
  /** Opened without a token. */
  readonly isUnauthenticated?: boolean;
  /** Complaints of the page that the test brings about. */
  readonly complains?: RegExp;
  /** Called before the page is opened. */
  readonly prepare?: (backend: WorkspaceBackend) => void;
}

/** Has the built page at hand, and a browser for a test file. */
export async function stage() {
  const pageDirectory = await builtPage(t.testdir());
  const openPage = keptPage();

  return function scene(name: string, options: SceneOptions, plays: Plays<Scene>): void {
    t.test(name, async (t) => {
      const backend = await startWorkspaceBackend(pageDirectory, options);
      t.teardown(() => backend.close());
      options.prepare?.(backend);
      const { context, page, complaints, foreign } = await openPage(t, { ...options, origin: backend.origin });
      await page.goto(options.isUnauthenticated ? backend.url : entrance(backend, options.at));
      await playAll(t, plays, { backend, context, page }, (t) => {
        const unexpected = complaints.filter((text) => !options.complains?.test(text));
        t.same(unexpected, [], 'no script error, no violation of the content security policy');
        t.same(foreign, [], 'no request to another origin');
      });
    });
  };
}

/** The address that opens the page with its token. */
export const entrance = (backend: WorkspaceBackend, at = ''): string =>
  `${backend.url}#${new URLSearchParams({ token, ...(at !== '' && { at }) })}`;

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Rules by colour scheme: all in one, only those about colours in the other, because the rest give the same result. */
const rulesOf = {
  light: { type: 'tag', values: tags },
  dark: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] },
} as const;

interface Axe {
  run(
    part: unknown,
    options: unknown,
  ): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }>;
}

/**
 * Findings of axe-core about the page in its present state, in light and dark.
 *
 * @param part selector of the only part that has changed since axe examined the whole page
 */
export async function axe(page: Page, part?: string): Promise<string[]> {
  const found: string[] = [];
  // By the debugger: a script element would be against the content security policy. Once: it is half a megabyte.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axeSource);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const violations = await remaining(() =>
      page.evaluate(
        ({ runOnly, part }) =>
          (globalThis as unknown as { axe: Axe }).axe
            // No rule of these reads style sheets or media in advance, and no selectors are printed.
            .run(part ?? document, { runOnly, resultTypes: ['violations'], preload: false, selectors: false })
            .then(({ violations }) =>
              violations.flatMap(({ id, nodes }) =>
                nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} — ${failureSummary}`),
              ),
            ),
        { runOnly: rulesOf[colorScheme], part },
      ),
    );
    found.push(...violations.map((violation) => `${colorScheme}: ${violation}`));
  }
  return found;
}

/** Whether everything fits a screen of this width without being pushed sideways. */
export async function overflowsAt(page: Page, width: number): Promise<boolean> {
  await page.setViewportSize({ width, height: 700 });
  await page.waitForFunction((width) => innerWidth === width, width);
  const overflow = await remaining(() =>
    page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      return scrollWidth > clientWidth ? [scrollWidth] : [];
    }),
  );
  return overflow.length > 0;
}

/** Scrolls to the end of each part of a request, as often as its layout changes, until it can be allowed. */
export async function readToEnd(t: Test, request: Locator): Promise<void> {
  const isAllowable = async () => {
    for (const end of await request.locator('.end-mark').all()) await end.scrollIntoViewIfNeeded();
    return request.getByRole('button', { name: 'Allow once' }).isEnabled();
  };
  await shows(t, 'ok', isAllowable, 'the end of the request was in view');
}

const controls = 'button, select, input, textarea, nav a, a.button';
/** Every control, link and row that a finger can press. */
export const pressable = `${controls}, summary, a[href], :is([role=option], [role=treeitem], [role=tab]), [role=row][aria-selected]`;

/**
 * Visible targets smaller than `least` by `least` CSS pixels; 24 is the limit of WCAG 2.5.8. The label of a control belongs to
 * it. Links within sentences are exempt.
 */
export function smallTargets(page: Page, least = 24, targets = controls): Promise<readonly string[]> {
  const read = () =>
    page.evaluate(
      ({ least, targets }) => {
        const isInSentence = (element: Element) =>
          element.matches('a') &&
          getComputedStyle(element).display === 'inline' &&
          [...(element.parentElement?.childNodes ?? [])].some((node) => node.nodeType === 3 && node.nodeValue?.trim());
        return [...document.querySelectorAll(targets)]
          .filter((element) => (element as HTMLElement).checkVisibility({ visibilityProperty: true }))
          .filter((element) => {
            const own = element.getBoundingClientRect();
            const label = element.closest('label') ?? (element as HTMLInputElement).labels?.[0];
            const box = label?.getBoundingClientRect() ?? own;
            const [width, height] = [Math.max(own.width, box.width), Math.max(own.height, box.height)];
            return own.width > 0 && (width < least - 0.5 || height < least - 0.5) && !isInSentence(element);
          })
          .map((element) => element.outerHTML.slice(0, 120));
      },
      { least, targets },
    );
  return remaining(read);
}
