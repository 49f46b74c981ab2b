/**
 * Host header values of this machine's loopback addresses and of `localhost`, with any port: an SSH tunnel changes the port, and it
 * is the name that a DNS-rebinding page cannot choose.
 */
export const loopbackHosts = (): ((host: string) => boolean) => knownHosts({ isPublic: false, names: [] });

/** Which Host headers are served. */
export interface HostRules {
  /** Others than this machine can connect: plain addresses are served too, which no page of a foreign name can be on. */
  readonly isPublic: boolean;
  /** Further host names, without a port. */
  readonly names: readonly string[];
}

const authority = /^(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::\d{1,5})?$/;

/** An IPv4 address in its usual spelling, or an IPv6 one in brackets. */
const isAddress = (name: string): boolean =>
  name.startsWith('[')
    ? URL.canParse(`http://${name}/`)
    : /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)$/.test(name);

/**
 * Host header values of this machine's loopback addresses, of `names` and, when others can connect, of plain addresses; with
 * any port, and with the dot at the end that makes a name absolute. A DNS-rebinding page can choose only a name, and names
 * must be listed.
 */
export function knownHosts({ isPublic, names }: HostRules): (host: string) => boolean {
  const known = new Set(['localhost', ...names.map((name) => name.trim().toLowerCase().replace(/\.$/, ''))]);
  return (host) => {
    const name = authority.exec(host)?.[1]?.replace(/\.$/, '');
    if (name === undefined) return false;
    if (known.has(name)) return true;
    return isAddress(name) && (isPublic || name === '[::1]' || name.startsWith('127.'));
  };
}

/**
 * Does a page of another origin send this request? Browsers set `Sec-Fetch-Site` themselves (a page cannot forge it);
 * those without it send `Origin`, which must then name the very host that was asked. Other clients send neither.
 */
export function isForeign(host: string, fetchSite: string | undefined, origin: string | undefined): boolean {
  if (fetchSite !== undefined) return fetchSite !== 'same-origin' && fetchSite !== 'none';
  if (origin === undefined) return false;
  const authority = /^https?:\/\/([^/?#@\\]+)$/i.exec(origin)?.[1];
  return authority?.toLowerCase() !== host.toLowerCase();
}
