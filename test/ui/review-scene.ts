/** Page of the review backend in a real browser. Tests fail for a script error or a request to another origin. */
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import t from 'tap';
import { builtPage } from './built-page.ts';
import { keptPage, type Plays, playAll } from './kept-page.ts';
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

/** Has the built page at hand, and starts a browser for a test file. */
export async function reviewStage() {
  const pageDirectory = await builtPage(t.testdir());
  const openPage = keptPage();

  return function scene(name: string, options: SceneOptions, plays: Plays<ReviewScene>): void {
    t.test(name, async (t) => {
      const backend = await startReviewBackend(pageDirectory, options.repositories);
      t.teardown(() => backend.close());
      const at = (await options.prepare?.(backend)) ?? options.at ?? '';
      const { context, page, complaints, foreign } = await openPage(t, {
        origin: backend.origin,
        context: options.context,
      });
      const fragment = new URLSearchParams({ token: options.token ?? reviewToken, ...(at !== '' && { at }) });
      // The root of the server redirects to the page and keeps the fragment.
      await page.goto(options.isUnauthenticated ? `${backend.origin}/` : `${backend.origin}/#${fragment}`);
      await playAll(t, plays, { backend, context, page }, (t) => {
        t.same(
          [...complaints, ...foreign],
          [],
          'no script error, no violation of the content security policy, no request elsewhere',
        );
      });
    });
  };
}
