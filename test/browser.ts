/**
 * Starts a real browser for tests: the headless shell of this machine, else its Chromium or Chrome. The shell has the same
 * engine without a browser window around each page, which takes a third of the processor time. It makes no requests of its own.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import type { Browser } from 'playwright-core';

// `import` takes half as long again: Node looks for the exports in seven megabytes.
const { chromium } = createRequire(import.meta.url)('playwright-core') as typeof import('playwright-core');

const names = [
  'chromium-headless-shell',
  'chrome-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
];
const elsewhere = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Path of the browser, or of the one in `ORATORIO_TEST_BROWSER`. @throws an Error with the command that installs it */
export function findBrowser(): string {
  const path = (process.env['PATH'] ?? '').split(delimiter);
  const onPath = names.flatMap((name) => path.map((directory) => join(directory, name)));
  const candidates = [process.env['ORATORIO_TEST_BROWSER'] ?? '', ...onPath, ...elsewhere];
  const found = candidates.find((path) => path !== '' && existsSync(path));
  if (found) return found;
  throw new Error(
    'These tests drive a real browser and found none. Install one ("apt-get install chromium-headless-shell", ' +
      '"brew install --cask chromium") or set ORATORIO_TEST_BROWSER to the path of a Chromium or Chrome.',
  );
}

/** Starts the browser; the caller closes it. */
export function launchBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: findBrowser(),
    timeout: 180_000,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      // Saves a process: a tenth of the processor time.
      '--in-process-gpu',
      // Pages of one site share a process: a tenth of the processor time of a load.
      '--renderer-process-limit=1',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--hide-scrollbars',
      ...args,
    ],
  });
}
