import { messageOf } from '../lib/index.ts';
import type { LoadedUws } from './load-uws.ts';
import type { HttpServer, ServerOptions } from './types.ts';

/** `uws`: the newest build of uWebSockets.js that loads; `uws-old`: the build for older systems. */
export type Preference = 'uws' | 'uws-old' | 'node' | 'auto';

function preferred(prefer: Preference): Preference {
  const forced = process.env['ORATORIO_HTTP_ADAPTER'];
  if (forced === undefined || forced === '') return prefer;
  if (forced === 'uws' || forced === 'uws-old' || forced === 'node') return forced;
  throw new TypeError(`ORATORIO_HTTP_ADAPTER is "${forced}"; it must be "uws", "uws-old" or "node".`);
}

/**
 * uWebSockets.js as a server of this environment uses it, or undefined for `node:http`. Calls `onFallback` with the reason when no build
 * loads. Rejects when uWebSockets.js is demanded and does not load.
 */
async function chosenUws(prefer: Preference, onFallback?: (reason: unknown) => void): Promise<LoadedUws | undefined> {
  const choice = preferred(prefer);
  // Each adapter is loaded only when it serves: node:http alone costs 30 ms of start-up.
  if (choice === 'node') return undefined;
  const { loadUws, uwsBuilds } = await import('./load-uws.ts');
  try {
    return await loadUws(choice === 'uws-old' ? uwsBuilds.slice(-1) : uwsBuilds);
  } catch (reason) {
    if (choice !== 'auto') throw reason;
    onFallback?.(reason);
    return undefined;
  }
}

/** Names the library with which servers of this environment serve, and the reason when no build of uWebSockets.js loads. */
export async function httpLibrary(): Promise<{ readonly library: string; readonly reason?: string }> {
  let reason: string | undefined;
  const uws = await chosenUws('auto', (error) => {
    reason = messageOf(error);
  });
  return { library: uws?.library ?? 'node:http', ...(reason !== undefined && { reason }) };
}

/**
 * A server that does not listen yet. `auto` takes uWebSockets.js when a build loads, else `node:http`, and then calls
 * `onFallback` with the reason, so that the caller can say it loudly. The environment variable ORATORIO_HTTP_ADAPTER
 * (`uws`, `uws-old` or `node`) has the last word. Rejects when uWebSockets.js is demanded and does not load.
 */
export async function createServer(
  options: ServerOptions,
  prefer: Preference = 'auto',
  onFallback?: (reason: unknown) => void,
): Promise<HttpServer> {
  const uws = await chosenUws(prefer, onFallback);
  if (uws !== undefined) return new (await import('./uws.ts')).UwsServer(uws, options);
  const { NodeServer } = await import('./node.ts');
  return NodeServer.create(options);
}
