import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { isPublicAddress } from '../../../addresses/index.ts';
import { orAborted } from './deadline.ts';
import { refusal, WebError } from './errors.ts';
import { bareHost, isAllowedHost } from './hosts.ts';

/** Address that a name resolves to. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Finds all addresses of a host name. */
export type Resolver = (hostname: string) => Promise<readonly ResolvedAddress[]>;

/** Resolves names like every other program of this machine: hosts file, then DNS. */
export const systemResolver: Resolver = async (hostname) => {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
};

/** Rules for permitted hosts. */
export interface DestinationRules {
  /** Host names, addresses, or either with a port: allowed although private. */
  readonly allowedHosts: readonly string[];
  readonly resolve: Resolver;
}

/**
 * The addresses of `url`'s host, all of them proved to be allowed. The connection has to be made to one of these and to
 * nothing else: asking for the name again could give another answer.
 * @throws WebError when any of them is not public and the host is not among the allowed ones, or when it has no address
 */
export async function findDestination(
  url: URL,
  { allowedHosts, resolve }: DestinationRules,
  signal: AbortSignal,
): Promise<readonly ResolvedAddress[]> {
  const host = bareHost(url.hostname);
  const isAllowed = isAllowedHost(url, allowedHosts);
  if (!isAllowed && /^(.+\.)?localhost$/.test(host)) throw notPublic(host);
  const family = isIP(host);
  const found =
    family === 0 ? await resolveName(host, resolve, signal) : [{ address: host, family } as ResolvedAddress];
  if (!isAllowed && !found.every(({ address }) => isPublicAddress(address, { embedded: 'judge' })))
    throw notPublic(host);
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
