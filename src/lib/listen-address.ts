/** Address of a listener, from a setting or a socket. */
export interface ListenAddress {
  /** A host name or an address; an IPv6 address with or without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * A host as a socket takes it: in the one spelling that clients send in `Host`, without the brackets of an IPv6 address. A text
 * that is not a host is returned in lower case.
 */
export function plainHost(host: string): string {
  const text = host.trim().toLowerCase();
  const bare = text.replace(/^\[(.*)\]$/, '$1');
  const url = `http://${bare.includes(':') ? `[${bare}]` : bare}/`;
  if (!/^[\w.:-]+$/.test(bare) || !URL.canParse(url)) return bare;
  return new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
}

/** Whether only this machine can reach a listener on `host`. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/.test(plainHost(host));
}

/** `host:port` as a URL and a `Host` header have it: an IPv6 address in brackets (RFC 3986, section 3.2.2). */
export function hostAndPort({ host, port }: ListenAddress): string {
  const plain = plainHost(host);
  return `${plain.includes(':') ? `[${plain}]` : plain}:${port}`;
}

/** Address of an HTTP server without a path, e.g. `http://[::1]:7720`. */
export const httpBase = (address: ListenAddress): string => `http://${hostAndPort(address)}`;
