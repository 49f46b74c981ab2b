import { hostAndPort } from '../../lib/index.ts';
import { destinationOf, isExcepted, isLoopback } from './no-proxy.ts';

/** Proxy of one connection. */
export interface HttpProxy {
  /** Address with its credentials. */
  readonly url: string;
  /** Host and port, with the variable or setting that names the proxy: for messages. */
  readonly shown: string;
}

/** A proxy that cannot be used. The message names the variable or setting, and no credentials. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Setting for a connection without a proxy. */
export const noProxy = 'none';

export interface ProxyOptions {
  /** Default: the environment of this process. */
  readonly env?: Environment | undefined;
  /** Setting in place of the environment: an address, or `none`. Empty: the environment decides. */
  readonly setting?: string | undefined;
}

/**
 * Proxy for a connection to `url`; undefined: a direct one. Variables are read as curl reads them: `http_proxy`, `https_proxy`,
 * `all_proxy` and `no_proxy`, then their upper-case forms. A connection to this machine uses a proxy only by a setting.
 * @throws ProxyError
 */
export function proxyFor(url: URL, { env = process.env, setting = '' }: ProxyOptions = {}): HttpProxy | undefined {
  if (setting === noProxy) return undefined;
  if (setting !== '') return parsed(setting, 'the setting Proxy');
  const [name, address] = variable(env, namesFor(url.protocol, env));
  if (address === '') return undefined;
  const destination = destinationOf(url);
  if (isLoopback(destination)) return undefined;
  const [, exceptions] = variable(env, ['no_proxy', 'NO_PROXY']);
  return isExcepted(exceptions, destination) ? undefined : parsed(address, name);
}

/** Whether the environment names any proxy. */
export const hasProxy = (env: Environment = process.env): boolean =>
  variable(env, [...namesFor('http:', env), ...namesFor('https:', env)])[1] !== '';

function namesFor(protocol: string, env: Environment): readonly string[] {
  const all = ['all_proxy', 'ALL_PROXY'];
  if (/^(?:https|wss):$/.test(protocol)) return ['https_proxy', 'HTTPS_PROXY', ...all];
  // A CGI program finds the header `Proxy` of its client in HTTP_PROXY.
  return env['REQUEST_METHOD'] === undefined ? ['http_proxy', 'HTTP_PROXY', ...all] : ['http_proxy', ...all];
}

/** First of the variables that has a value, with it. */
function variable(env: Environment, names: readonly string[]): readonly [string, string] {
  for (const name of names) {
    const value = env[name]?.trim() ?? '';
    if (value !== '') return [name, value];
  }
  return ['', ''];
}

function parsed(address: string, source: string): HttpProxy {
  const text = /^[a-z][a-z\d+.-]*:\/\//i.test(address) ? address : `http://${address}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || url.hostname === '') {
    throw new ProxyError(`The proxy of ${source} is not a URL. Write it as http://HOST:PORT.`);
  }
  if (!/^https?:$/.test(url.protocol)) {
    throw new ProxyError(
      `The proxy of ${source} speaks ${url.protocol.slice(0, -1)}, which is not supported. Name one that speaks HTTP.`,
    );
  }
  const { host, port } = destinationOf(url);
  return { url: url.href, shown: `${hostAndPort({ host, port })} (${source})` };
}
