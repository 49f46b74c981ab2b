import type { AgentOptions } from 'node:http';
import type { HttpProxy } from './proxy.ts';

/** `proxyEnv` exists since Node 22.21; its types do not have it yet. */
type ProxiedOptions = AgentOptions & { readonly proxyEnv?: Readonly<Record<string, string>> };

/** Options of an agent of `node:http` or `node:https` that connects through a proxy. Its credentials reach the proxy only. */
export const throughProxy = (proxy: HttpProxy | undefined): ProxiedOptions =>
  // Node would read NO_PROXY in its own way; the choice is made here.
  proxy ? { proxyEnv: { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url } } : {};
