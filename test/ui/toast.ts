import type { Page } from 'playwright-core';

/**
 * Resolves when a toast of the page contains `text`. Call it before the action that shows the toast: a toast disappears after some
 * seconds, so the page itself watches for it.
 */
export const untilToast = (page: Page, text: string): Promise<unknown> =>
  page.waitForFunction((text) => document.querySelector('.toasts')?.textContent?.includes(text), text);
