import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import {
  type AddressBlock,
  type Embedding,
  ipv4AddressSpace,
  ipv4SpecialPurpose,
  ipv6AddressSpace,
  ipv6SpecialPurpose,
  ipv6UnicastReserved,
} from './registries.ts';

/** Metadata services of clouds at addresses that no registry lists. All others are link-local, private or shared. */
const metadataServices: ReadonlySet<string> = new Set(['168.63.129.16']);

/** Position of the IPv4 address among the eight groups, and the mask it is combined with (RFC 4380 stores it inverted). */
const places: Readonly<Record<Embedding, { readonly at: number; readonly mask: number }>> = {
  low32: { at: 6, mask: 0 },
  sixToFour: { at: 1, mask: 0 },
  teredo: { at: 6, mask: 0xffff },
};

/** Parses an IPv6 address. ipaddr.js reads `::8.8.8.8` as an IPv4-mapped address, so the dotted end is rewritten first. */
function parseIpv6(address: string): ipaddr.IPv6 {
  return ipaddr.IPv6.parse(address.replace(/\d+\.\d+\.\d+\.\d+$/, asGroups));
}

function asGroups(dotted: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

/** The IPv4 address that an IPv6 address carries, dotted. */
export function embeddedIpv4(address: string, embedding: Embedding): string {
  const { at, mask } = places[embedding];
  return parseIpv6(address)
    .parts.slice(at, at + 2)
    .map((group) => group ^ mask)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.');
}

const mostSpecificFirst = <T>(
  blocks: readonly AddressBlock[],
  parse: (prefix: string) => [T, number],
): { readonly block: AddressBlock; readonly range: [T, number] }[] =>
  blocks
    .map((block) => ({ block, range: parse(block.prefix) }))
    .sort(({ range: [, left] }, { range: [, right] }) => right - left);

const ipv4Rows = mostSpecificFirst([...ipv4SpecialPurpose, ...ipv4AddressSpace], (prefix) =>
  ipaddr.IPv4.parseCIDR(prefix),
);
const ipv6Rows = mostSpecificFirst([...ipv6SpecialPurpose, ...ipv6AddressSpace, ...ipv6UnicastReserved], (prefix) =>
  ipaddr.IPv6.parseCIDR(prefix),
);

/** The most specific registry entry that holds an address; undefined for an IPv4 address that has none. */
export function findBlock(address: string): AddressBlock | undefined {
  if (isIP(address) === 4) {
    const parsed = ipaddr.IPv4.parse(address);
    return ipv4Rows.find(({ range }) => parsed.match(range))?.block;
  }
  const parsed = parseIpv6(address);
  return ipv6Rows.find(({ range }) => parsed.match(range))?.block;
}

/** True for an interface identifier of RFC 5214, section 6.1: 00-00-5E-FE before an IPv4 address, with or without the universal bit. */
export function isIsatap(address: string): boolean {
  const { parts } = parseIpv6(address);
  return parts[5] === 0x5efe && (parts[4] === 0 || parts[4] === 0x0200);
}

/** Blocks whose addresses a host may translate into the IPv4 address that they carry. */
const translated: ReadonlySet<string> = new Set(['::ffff:0:0/96', '64:ff9b::/96']);

export interface PublicAddressOptions {
  /**
   * `refuse`: an IPv6 address that stands for an IPv4 address is not public. `judge`: an IPv4-mapped address and one of the well-known
   * NAT64 prefix (RFC 6052) is as public as the IPv4 address, because that is the host that answers.
   */
  readonly embedded: 'judge' | 'refuse';
}

/**
 * True when a server on the public Internet can have this address, by the IANA registries (RFC 6890): not this machine, private,
 * shared, link-local, multicast, documentation, benchmarking, tunnels, reserved space or a cloud's metadata service. A text
 * that is not an address, or has a zone, is not public.
 */
export function isPublicAddress(address: string, { embedded }: PublicAddressOptions): boolean {
  const version = isIP(address);
  if (version === 0 || address.includes('%') || metadataServices.has(address)) return false;
  const block = findBlock(address);
  if (version === 4) return block?.refused === undefined;
  if (embedded === 'judge' && block?.embeds !== undefined && translated.has(block.prefix))
    return isPublicAddress(embeddedIpv4(address, block.embeds), { embedded });
  return block !== undefined && block.refused === undefined && !isIsatap(address);
}
