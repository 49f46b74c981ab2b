/** Takes pictures for `docs/images/` in both themes. Needs `pngquant`. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '../test/browser.ts';
import { makePlace, type Place, startHub, type Teardown } from '../test/e2e/harness.ts';

/** Place of a picture, and the elements that must be there first. */
export interface Picture {
  readonly name: string;
  readonly at: string;
  readonly isOnPhone?: boolean;
  readonly prepare: (page: Page) => Promise<unknown>;
}

/** A Hub with a browser, and where the pictures go. */
export interface Studio {
  readonly t: Teardown;
  readonly place: Place;
  readonly hub: Awaited<ReturnType<typeof startHub>>;
  readonly browser: Browser;
  readonly directory: string;
}

/** Opens a studio, works in it and clears it away. The directory is the first argument of the process, or `docs/images`. */
export async function withStudio(
  work: (studio: Studio) => Promise<void>,
  placeOf: (t: Teardown) => Place | Promise<Place> = (t) => makePlace(t, 'projects-'),
): Promise<void> {
  const directory = process.argv[2] ?? fileURLToPath(new URL('../docs/images', import.meta.url));
  const ends: (() => unknown)[] = [];
  const t: Teardown = { teardown: (end) => ends.unshift(end) };
  try {
    mkdirSync(directory, { recursive: true });
    const browser = await launchBrowser();
    t.teardown(() => browser.close());
    const place = await placeOf(t);
    const hub = await startHub(place);
    await work({ t, place, hub, browser, directory });
    await hub.shutdown();
  } finally {
    for (const end of ends) await end();
  }
}

/** Runs in each page: a browser without a window refuses notices, while that of a person has not decided yet. */
export function allowAskingForNotices(): void {
  Object.defineProperty(Notification, 'permission', { get: () => 'default' });
}

/** Takes each picture in both themes. `addressOf` is asked for each, as an address may hold a token. */
export async function takePictures(
  { browser, directory }: Studio,
  pictures: readonly Picture[],
  addressOf: (at: string) => string | Promise<string>,
): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    const context = await browser.newContext({
      viewport: { width: 1440, height: 900 },
      colorScheme,
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
    });
    context.setDefaultTimeout(60_000);
    await context.addInitScript(allowAskingForNotices);
    for (const { name, at, isOnPhone, prepare } of pictures) {
      const page = await context.newPage();
      if (isOnPhone) await page.setViewportSize({ width: 390, height: 844 });
      await page.goto(await addressOf(at));
      await prepare(page);
      await page.mouse.move(0, 0);
      const png = await page.screenshot({ animations: 'disabled', caret: 'hide' });
      const small = execFileSync('pngquant', ['256', '--nofs', '-'], { input: png });
      writeFileSync(join(directory, `${name}-${colorScheme}.png`), small);
      console.log(`${name}-${colorScheme}.png  ${kib(small)} KiB of ${kib(png)}`);
      await page.close();
    }
    await context.close();
  }
}

const kib = (bytes: Uint8Array): number => Math.round(bytes.byteLength / 1024);
