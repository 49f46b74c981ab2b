/** A real browser for tests: the Chromium or Chrome of this machine, headless, that talks to nobody on its own. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const elsewhere = [
  '/usr/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Path of the browser. Throws an Error that says what to install. `ORATORIO_TEST_BROWSER` names another one. */
export function findBrowser(): string {
  const onPath = (process.env['PATH'] ?? '')
    .split(delimiter)
    .flatMap((directory) => names.map((name) => join(directory, name)));
  const candidates = [process.env['ORATORIO_TEST_BROWSER'] ?? '', ...elsewhere, ...onPath];
  const found = candidates.find((path) => path !== '' && existsSync(path));
  if (found) return found;
  throw new Error(
    'These tests drive a real browser and found none. Install Chromium ("apt-get install chromium", ' +
      '"brew install --cask chromium") or set ORATORIO_TEST_BROWSER to the path of a Chromium or Chrome.',
  );
}

/** Starts the browser; the caller closes it. */
export function launchBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: findBrowser(),
    timeout: 180_000,
    args: [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
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
