import type { Page } from 'playwright-core';

/**
 * Resolves when the page has told `text` at its foot. Call it before what brings that about: it is told for some seconds only,
 * so the page itself looks out for it.
 */
export const told = (page: Page, text: string): Promise<unknown> =>
  page.waitForFunction((text) => document.querySelector('.toasts')?.textContent?.includes(text), text);
