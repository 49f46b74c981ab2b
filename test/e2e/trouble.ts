/** Trouble of workspaces on both faces: the list of the command line, and the list of the page. */
import type { Browser, Page } from 'playwright-core';
import type { Test } from 'tap';
import { shows } from '../ui/shows.ts';
import { oratorio, type Place } from './harness.ts';

/** Texts that a user reads of one workspace, on the command line and on the first screen of the page. */
export interface Case {
  readonly name: string;
  readonly state: string;
  /** The reason. */
  readonly what: RegExp;
  /** The command that helps. */
  readonly next: RegExp;
}

export async function openPage(browser: Browser, place: Place, at = '/overview'): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.setDefaultTimeout(300_000);
  const { stdout } = await oratorio(place, ['inspect', '--print-url']);
  await page.goto(`${stdout.trim()}&at=${at}`);
  return page;
}

/** Checks that the list of the command line and the page name state, reason and next step of every case. */
export async function checkFaces(t: Test, place: Place, page: Page, wanted: readonly Case[]): Promise<void> {
  const { stdout } = await oratorio(place, ['list']);
  const rows = new Map(stdout.split('\n').map((line) => [line.split('\t')[0], line.split('\t')]));
  for (const { name, state, what, next } of wanted) {
    const [, word, , , , , , , , trouble] = rows.get(name) ?? [];
    t.equal(word, state, `list: ${name} is ${state}`);
    t.match(trouble, what, `list: ${name} has its reason`);
    t.match(trouble, next, `list: ${name} says what to do`);
    const row = page.locator('.vrow', { has: page.locator('b', { hasText: new RegExp(`^/?${name}$`) }) });
    await shows(t, 'match', () => row.textContent(), new RegExp(state, 'i'), `page: ${name} is ${state}`);
    await shows(t, 'match', () => row.textContent(), what, `page: ${name} has its reason`);
    await shows(t, 'match', () => row.textContent(), next, `page: ${name} says what to do`);
  }
}
