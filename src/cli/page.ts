/** The live statechart page of the Hub. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { writeFileAtomic } from '../supervise/index.ts';

/** Address of the page; with `token` in the fragment, which no server and no log ever sees. */
export const pageUrl = (apiBaseUrl: string, token?: string): string =>
  `${apiBaseUrl.replace(/\/+$/, '')}/${token === undefined ? '' : `#token=${token}`}`;

/** Program that opens a document with whatever the user has chosen for it. */
function opener(): { readonly command: string; readonly args: readonly string[] } {
  if (process.platform === 'darwin') return { command: 'open', args: [] };
  if (process.platform === 'win32') return { command: 'explorer.exe', args: [] };
  return { command: 'xdg-open', args: [] };
}

/**
 * Opens `url` in the user's browser. Every user of the machine can read command lines, so the browser is given a file
 * (0600, beside `hub.lock`, which holds the same token) that leads to the page.
 *
 * @returns whether a browser could be asked
 */
export async function openPage(home: string, url: string): Promise<boolean> {
  const file = join(home, 'hub', 'open-page.html');
  const target = JSON.stringify(url).replaceAll('<', '\\u003c');
  writeFileAtomic(
    file,
    `<!doctype html><meta charset="utf-8"><title>Oratorio</title><script>location.replace(${target})</script>\n`,
  );
  const { command, args } = opener();
  const child = spawn(command, [...args, pathToFileURL(file).href], { detached: true, stdio: 'ignore' });
  const isOpen = await new Promise<boolean>((resolve) => {
    child.once('spawn', () => resolve(true)).once('error', () => resolve(false));
  });
  child.unref();
  return isOpen;
}
