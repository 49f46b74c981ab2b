import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { isPublicAddress } from './addresses.ts';
import { orAborted } from './deadline.ts';
import { refusal, WebError } from './errors.ts';

/** Where a name leads. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Finds all addresses of a host name. */
export type Resolver = (hostname: string) => Promise<readonly ResolvedAddress[]>;

/** As every other program of this machine resolves names: hosts file, then DNS. */
export const systemResolver: Resolver = async (hostname) => {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
};

/** The URL a model wrote, if it is one that may be fetched at all. @throws WebError */
export function parseWebUrl(text: string, base?: URL): URL {
  if (!URL.canParse(text, base)) throw new WebError(`${JSON.stringify(text)} is not a valid URL`);
  const url = new URL(text, base);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refusal(`only http and https can be fetched, not ${url.protocol}`);
  }
  if (url.username !== '' || url.password !== '') throw refusal('a URL with a user name or password in it');
  return url;
}

/** What decides whether a host may be talked to. */
export interface DestinationRules {
  /** Host names, addresses, or either with a port: allowed although private. */
  readonly allowedHosts: readonly string[];
  readonly resolve: Resolver;
}

/**
 * The addresses of `url`'s host, all of them proved to be allowed. The connection has to be made to one of these and to
 * nothing else: asking for the name again could give another answer.
 * @throws WebError when any of them is not public and the host is not among the allowed ones, or when there is none
 */
export async function findDestination(
  url: URL,
  { allowedHosts, resolve }: DestinationRules,
  signal: AbortSignal,
): Promise<readonly ResolvedAddress[]> {
  const host = bareHost(url.hostname);
  const isAllowed = allowedHosts.some((allowed) => matches(allowed, host, portOf(url)));
  if (!isAllowed && /^(.+\.)?localhost$/.test(host)) throw notPublic(host);
  const family = isIP(host);
  const found =
    family === 0 ? await resolveName(host, resolve, signal) : [{ address: host, family } as ResolvedAddress];
  if (!isAllowed && !found.every(({ address }) => isPublicAddress(address))) throw notPublic(host);
  return found;
}

async function resolveName(host: string, resolve: Resolver, signal: AbortSignal): Promise<readonly ResolvedAddress[]> {
  let found: readonly ResolvedAddress[];
  try {
    found = await orAborted(resolve(host), signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new WebError(`the name ${host} cannot be resolved`, { cause: error });
  }
  if (found.length === 0) throw new WebError(`the name ${host} has no address`);
  return found;
}

const notPublic = (host: string): WebError =>
  refusal(
    `${host} is not on the public internet. Only the user can allow it, by naming it in the setting Tools.Web.AllowedHosts`,
  );

/** Without the brackets of an IPv6 address and the root's dot: `[::1]` → `::1`, `example.com.` → `example.com`. */
const bareHost = (hostname: string): string =>
  hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');

const portOf = (url: URL): string => url.port || (url.protocol === 'https:' ? '443' : '80');

/** `entry` is a user's: `host`, `host:port`, `[v6]:port` or a bare IPv6 address. */
function matches(entry: string, host: string, port: string): boolean {
  const wanted = entry.trim().toLowerCase();
  if (bareHost(wanted) === host) return true;
  const [, name, number] = /^(.*):(\d+)$/.exec(wanted) ?? [];
  return name !== undefined && isIP(wanted) !== 6 && bareHost(name) === host && number === port;
}
