import { destinationOf, isLoopback } from './no-proxy.ts';
import { type HttpProxy, hasProxy, ProxyError, proxyFor } from './proxy.ts';

/**
 * `fetch` for servers elsewhere: through the proxy that the environment names, also after a redirect. Without one it is the
 * `fetch` of Node. A failed request names its proxy.
 * @throws TypeError as `fetch` does
 */
export const outgoingFetch = async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
  const address = new URL(url);
  if (!hasProxy() || isLoopback(destinationOf(address))) return fetch(address, init);
  const proxied = await load();
  try {
    return await proxied(address, init);
  } catch (error) {
    const proxy = init.signal?.aborted || error instanceof ProxyError ? undefined : proxyFor(address);
    throw proxy ? through(proxy, error) : error;
  }
};

function through(proxy: HttpProxy, error: unknown): TypeError {
  const { code } = ((error as Error).cause ?? {}) as { readonly code?: unknown };
  const reason = typeof code === 'string' ? code : 'no connection';
  const cause = Object.assign(new Error(`${reason} through the proxy ${proxy.shown}`, { cause: error }), {
    code: typeof code === 'string' ? `${code} through the proxy ${proxy.shown}` : undefined,
  });
  return new TypeError(`fetch failed: ${cause.message}`, { cause });
}

let loaded: Promise<(url: URL, init: RequestInit) => Promise<Response>> | undefined;

/** Loads the client that can use a proxy, whose connections serve later requests, too. */
function load(): Promise<(url: URL, init: RequestInit) => Promise<Response>> {
  loaded ??= Promise.all([
    import('undici/lib/api/api-connect.js'),
    import('undici/lib/dispatcher/agent.js'),
    import('undici/lib/dispatcher/pool.js'),
    import('undici/lib/dispatcher/proxy-agent.js'),
    import('undici/lib/web/fetch/index.js'),
  ]).then(
    ([{ default: connect }, { default: Agent }, { default: Pool }, { default: ProxyAgent }, { fetch: proxied }]) => {
      // The main file of the package adds this method, with which a tunnel begins, to every dispatcher.
      const clientFactory = (origin: URL, options: object) => Object.assign(new Pool(origin, options), { connect });
      const dispatcher = new Agent({
        factory(origin, options) {
          const proxy = proxyFor(new URL(origin));
          return proxy
            ? new ProxyAgent({ uri: proxy.url, proxyTunnel: false, clientFactory })
            : new Pool(origin, options);
        },
      });
      // The types of the package and of Node's own copy of it differ in name only.
      return (url, init) => proxied(url, { ...init, dispatcher } as never) as unknown as Promise<Response>;
    },
  );
  return loaded;
}
