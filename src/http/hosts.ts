const loopback = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/;

/**
 * Host header values of this machine's loopback names, with any port: an SSH tunnel changes the port, and it is the
 * name that a DNS-rebinding page cannot choose.
 */
export function loopbackHosts(): (host: string) => boolean {
  return (host) => loopback.test(host);
}

/**
 * Does a page of another origin send this request? Browsers set `Sec-Fetch-Site` themselves (a page cannot forge it);
 * those without it send `Origin`, which must then name the very host that was asked. Clients that are no browser send neither.
 */
export function isForeign(host: string, fetchSite: string | undefined, origin: string | undefined): boolean {
  if (fetchSite !== undefined) return fetchSite !== 'same-origin' && fetchSite !== 'none';
  if (origin === undefined) return false;
  const authority = /^https?:\/\/([^/?#@\\]+)$/i.exec(origin)?.[1];
  return authority?.toLowerCase() !== host.toLowerCase();
}
