import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { RequestContext } from '../../http/index.ts';

type Request = Pick<RequestContext, 'header' | 'remoteAddress'>;

/** Time for which the addresses of a named proxy are used before the name is resolved again. */
const resolvedMs = 10_000;

const plain = (address: string): string => (address.startsWith('::ffff:') ? address.slice(7) : address);
const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');

/**
 * The address for which a request counts. `X-Forwarded-For` is believed only from loopback and from the configured proxies
 * (`Server.TrustedProxies`), and only its last entry, which that proxy has appended itself.
 */
export class ClientAddresses {
  readonly #proxies: () => readonly string[];
  #resolved: ReadonlySet<string> = new Set();
  #resolvedAt = Number.NEGATIVE_INFINITY;

  /** @param proxies addresses and host names */
  constructor(proxies: () => readonly string[]) {
    this.#proxies = proxies;
  }

  of(request: Request): string {
    const peer = plain(request.remoteAddress);
    if (!this.#isTrusted(peer)) return peer;
    const last = request.header('x-forwarded-for')?.split(',').at(-1)?.trim() ?? '';
    return isIP(last) === 0 ? peer : plain(last);
  }

  /** Resolves the names of proxies. Before the first resolution, a named proxy counts as an ordinary client. */
  async resolve(): Promise<void> {
    this.#resolvedAt = performance.now();
    const names = this.#proxies().filter((each) => isIP(each) === 0);
    const found = await Promise.all(names.map((name) => lookup(name, { all: true }).catch(() => [])));
    this.#resolved = new Set(found.flat().map(({ address }) => plain(address)));
  }

  #isTrusted(peer: string): boolean {
    if (isLoopback(peer)) return true;
    const proxies = this.#proxies();
    if (proxies.length === 0) return false;
    if (proxies.some((each) => plain(each) === peer) || this.#resolved.has(peer)) return true;
    if (performance.now() - this.#resolvedAt > resolvedMs) void this.resolve();
    return false;
  }
}
