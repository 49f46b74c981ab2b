/** Pages for a browser: the page of the Hub, and the dashboards of workspaces. */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { writeFileAtomic } from '../supervise/index.ts';
import type { CommandContext } from './command.ts';

/** Address of the Hub's page; with `token` in the fragment, which no server and no log ever sees. */
export const pageUrl = (apiBaseUrl: string, token?: string): string =>
  addressOf({ address: `${apiBaseUrl.replace(/\/+$/, '')}/`, token });

/** Address of a page, the token that opens it, and the view to show. */
export interface PageAddress {
  /** Whole address, without a fragment. */
  readonly address: string;
  readonly token?: string | undefined;
  /** Absent: the first view. */
  readonly at?: string | undefined;
}

function addressOf({ address, token, at }: PageAddress): string {
  if (token !== undefined) return `${address}#token=${token}${at === undefined ? '' : `&at=${at}`}`;
  return at === undefined ? address : `${address}#${at}`;
}

/** Address of a page for printing: with its token on a terminal only. */
export const pageFor = (
  { output }: Pick<CommandContext, 'output'>,
  address: string,
  token: string | undefined,
): string => addressOf({ address, token: output.isTTY ? token : undefined });

/**
 * Prints the address of a page, and opens it with `--open` or at a terminal. The token is printed at a terminal and with
 * `--print-url` only; a log or a pipe gets the bare address.
 *
 * @param opensByItself on a terminal without being asked
 */
export async function showPage(
  { home, options, output }: CommandContext,
  page: PageAddress,
  { opensByItself = true }: { readonly opensByItself?: boolean } = {},
): Promise<void> {
  const withToken = addressOf(page);
  const bare = addressOf({ address: page.address });
  const isAsked = options['open'] === true;
  if (options['print-url'] === true) {
    if (output.json) output.document({ url: withToken });
    else output.line(withToken);
    return;
  }
  if (output.json && !isAsked) return output.document({ url: bare });
  output.line(output.isTTY ? withToken : bare);
  if (!output.isTTY && !isAsked) {
    return output.note(
      'Not a terminal: nothing was opened. Use --open, or --print-url for the address with its token.',
    );
  }
  if (!isAsked && !opensByItself) return;
  if (!(await openPage(home, withToken))) output.warn('No browser could be opened: open the address above yourself.');
}

/** Program that opens a document in the user's default program for it. */
export function pageOpener(): { readonly command: string; readonly args: readonly string[] } {
  if (process.platform === 'darwin') return { command: 'open', args: [] };
  if (process.platform === 'win32') return { command: 'explorer.exe', args: [] };
  return { command: 'xdg-open', args: [] };
}

/**
 * Opens `url` in the user's browser. Every user of the machine can read command lines, so the browser is given a file
 * (0600, beside `hub.lock`, in a directory that holds the same token) that leads to the page.
 *
 * @returns whether a browser could be asked
 */
export async function openPage(home: string, url: string): Promise<boolean> {
  const directory = join(home, 'hub');
  const file = join(directory, 'open-page.html');
  const target = JSON.stringify(url).replaceAll('<', '\\u003c');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileAtomic(
    file,
    `<!doctype html><meta charset="utf-8"><title>Oratorio</title><script>location.replace(${target})</script>\n`,
  );
  const { command, args } = pageOpener();
  const child = spawn(command, [...args, pathToFileURL(file).href], { detached: true, stdio: 'ignore' });
  const isOpen = await new Promise<boolean>((resolve) => {
    child.once('spawn', () => resolve(true)).once('error', () => resolve(false));
  });
  child.unref();
  return isOpen;
}
