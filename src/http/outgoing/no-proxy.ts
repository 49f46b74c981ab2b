import { BlockList, isIP } from 'node:net';

/** Host and port of a connection. */
export interface Destination {
  /** Name or address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Host and port of a URL, in the form that entries are compared with. */
export function destinationOf({ protocol, hostname, port }: URL): Destination {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return { host: host.toLowerCase(), port: Number(port) || (/^(?:https|wss):$/.test(protocol) ? 443 : 80) };
}

/** Whether a destination is this machine. A name counts by its spelling: it is not resolved. */
export function isLoopback({ host }: Destination): boolean {
  if (host === 'localhost' || host.endsWith('.localhost')) return true;
  const version = isIP(host);
  return version !== 0 && loopback.check(host, version === 4 ? 'ipv4' : 'ipv6');
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('0.0.0.0', 'ipv4');
loopback.addAddress('::1', 'ipv6');
loopback.addAddress('::', 'ipv6');

/**
 * Whether `NO_PROXY` excepts a destination. Entries are separated by commas or spaces: a name, which covers the names below it with or
 * without a leading dot or `*.`; an address; a network such as `10.0.0.0/8`; each with an optional port; or `*` alone.
 */
export function isExcepted(list: string, destination: Destination): boolean {
  return list.split(/[\s,]+/).some((entry) => entry !== '' && matches(entry.toLowerCase(), destination));
}

function matches(entry: string, { host, port }: Destination): boolean {
  if (entry === '*') return true;
  const { name, onlyPort } = splitPort(entry);
  if (onlyPort !== undefined && onlyPort !== port) return false;
  const version = isIP(host);
  if (version !== 0) return matchesAddress(name, host, version === 4 ? 'ipv4' : 'ipv6');
  const suffix = name.replace(/^\*?\./, '').replace(/\.$/, '');
  return suffix !== '' && (host === suffix || host.endsWith(`.${suffix}`));
}

/** An address of version 6 has its port behind brackets. */
function splitPort(entry: string): { readonly name: string; readonly onlyPort: number | undefined } {
  const [, inBrackets, plain, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(entry) ?? [];
  return { name: inBrackets ?? plain ?? entry, onlyPort: port === undefined ? undefined : Number(port) };
}

function matchesAddress(name: string, host: string, type: 'ipv4' | 'ipv6'): boolean {
  const [network = '', bits] = name.split('/', 2);
  if (isIP(network) !== (type === 'ipv4' ? 4 : 6)) return false;
  const longest = type === 'ipv4' ? 32 : 128;
  const prefix = bits === undefined ? longest : Number(bits);
  if (bits === '' || !Number.isInteger(prefix) || prefix < 0 || prefix > longest) return false;
  const block = new BlockList();
  block.addSubnet(network, prefix, type);
  return block.check(host, type);
}
