import type { HttpServer, ServerOptions } from './types.ts';

export type Preference = 'uws' | 'node' | 'auto';

function preferred(prefer: Preference): Preference {
  const forced = process.env['ORATORIO_HTTP_ADAPTER'];
  if (forced === undefined || forced === '') return prefer;
  if (forced === 'uws' || forced === 'node') return forced;
  throw new TypeError(`ORATORIO_HTTP_ADAPTER is "${forced}"; it must be "uws" or "node".`);
}

/**
 * A server that does not listen yet. `auto` takes uWebSockets.js when its binary loads, else `node:http`, and then calls
 * `onFallback` with the reason, so that the caller can say it loudly. The environment variable ORATORIO_HTTP_ADAPTER
 * (`uws` or `node`) has the last word. Rejects when uWebSockets.js is demanded and does not load.
 */
export async function createServer(
  options: ServerOptions,
  prefer: Preference = 'auto',
  onFallback?: (reason: unknown) => void,
): Promise<HttpServer> {
  const choice = preferred(prefer);
  // Each adapter is loaded only when it serves: node:http alone costs 30 ms of start-up.
  if (choice !== 'node') {
    const { loadUws, UwsServer } = await import('./uws.ts');
    const uws = await loadUws().catch((reason: unknown) => {
      if (choice === 'uws') throw reason;
      onFallback?.(reason);
      return undefined;
    });
    if (uws !== undefined) return new UwsServer(uws, options);
  }
  const { NodeServer } = await import('./node.ts');
  return new NodeServer(options);
}
