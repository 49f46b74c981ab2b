import type { LookupAddress } from 'node:dns';
import type { RequestOptions } from 'node:https';
import type { LookupFunction } from 'node:net';
import { plainHost } from '../../../lib/index.ts';

/** Way to the push services. */
export interface PushNetwork {
  /** All addresses of a host name, or of a literal address itself. */
  readonly resolve: (host: string) => Promise<readonly LookupAddress[]>;
  readonly isPublic: (address: string) => boolean;
  /** Options of each request besides those of a notice. */
  readonly request: Pick<RequestOptions, 'port' | 'ca'>;
}

/** The Internet as this machine sees it. */
export async function publicInternet(): Promise<PushNetwork> {
  const [{ lookup }, { isPublicAddress }] = await Promise.all([
    import('node:dns/promises'),
    import('../../../addresses/index.ts'),
  ]);
  return {
    resolve: (host) => lookup(host, { all: true }),
    isPublic: (address) => isPublicAddress(address, { embedded: 'judge' }),
    request: {},
  };
}

/** Why an address is not that of a push service. */
export class EndpointError extends Error {
  override readonly name = 'EndpointError';
  /** True: the address may pass a later check. */
  readonly mayPass: boolean;

  constructor(message: string, { mayPass = false }: { readonly mayPass?: boolean } = {}) {
    super(message);
    this.mayPass = mayPass;
  }
}

/**
 * The parts of an endpoint: https at the usual port, without a name and password.
 *
 * @throws EndpointError
 */
export function parseEndpoint(endpoint: string): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null;
  if (url?.protocol !== 'https:') throw new EndpointError('endpoint must be an https address.');
  if (url.port !== '' || url.username !== '' || url.password !== '')
    throw new EndpointError('endpoint must name neither a port nor a user.');
  return url;
}

/**
 * Every address of a host, all of them public. A connection is made to one of these and to nothing else: a second look-up could
 * give another answer.
 *
 * @throws EndpointError
 */
export async function publicAddresses(
  { hostname }: URL,
  { resolve, isPublic }: PushNetwork,
): Promise<readonly LookupAddress[]> {
  const found = await resolve(plainHost(hostname)).catch(() => {
    throw new EndpointError(`endpoint names ${hostname}, which the machine of the Hub cannot resolve.`, {
      mayPass: true,
    });
  });
  if (found.length === 0 || !found.every(({ address }) => isPublic(address)))
    throw new EndpointError(`endpoint names ${hostname}, which is not on the public Internet.`);
  return found;
}

/** A look-up that answers with known addresses. */
export const pinned =
  (addresses: readonly LookupAddress[]): LookupFunction =>
  (_host, { all }, callback) => {
    const [{ address, family } = { address: '', family: 4 }] = addresses;
    if (all) callback(null, [...addresses]);
    else callback(null, address, family);
  };
