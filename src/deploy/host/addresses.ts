import { BlockList, isIP, isIPv4, SocketAddress } from 'node:net';
import { type HostVerdict, refuse } from './refusals.ts';
import {
  type AddressBlock,
  type Embedding,
  ipv4AddressSpace,
  ipv4SpecialPurpose,
  ipv6AddressSpace,
  ipv6SpecialPurpose,
  ipv6UnicastReserved,
} from './registries.ts';

/** The eight 16-bit groups of a valid IPv6 address without a zone, whatever its notation. */
export function ipv6Groups(address: string): number[] {
  const [head = '', tail] = address.replace(/\d+\.\d+\.\d+\.\d+$/, asGroups).split('::');
  const before = groupsOf(head);
  if (tail === undefined) return before;
  const after = groupsOf(tail);
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function groupsOf(part: string): number[] {
  return part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
}

function asGroups(dotted: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

/** Which two of the eight groups are the IPv4 address, and what they are combined with (RFC 4380 stores it inverted). */
const places: Readonly<Record<Embedding, { readonly at: number; readonly mask: number }>> = {
  low32: { at: 6, mask: 0 },
  sixToFour: { at: 1, mask: 0 },
  teredo: { at: 6, mask: 0xffff },
};

/** The IPv4 address that the eight groups of an IPv6 address carry, dotted. */
export function embeddedIpv4(groups: readonly number[], embedding: Embedding): string {
  const { at, mask } = places[embedding];
  return groups
    .slice(at, at + 2)
    .map((group) => group ^ mask)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.');
}

type Family = 'ipv4' | 'ipv6';

interface Row {
  readonly block: AddressBlock;
  readonly bits: number;
  readonly list: BlockList;
}

const rows: Readonly<Record<Family, readonly Row[]>> = {
  ipv4: mostSpecificFirst('ipv4', [...ipv4SpecialPurpose, ...ipv4AddressSpace]),
  ipv6: mostSpecificFirst('ipv6', [...ipv6SpecialPurpose, ...ipv6AddressSpace, ...ipv6UnicastReserved]),
};

/** The most specific registry entry that holds a valid address without a zone, if one does. */
export function findBlock(address: string, family: Family): AddressBlock | undefined {
  const socketAddress = new SocketAddress({ address, family });
  return rows[family].find(({ list }) => list.check(socketAddress))?.block;
}

// One list for each block and family: a list of both would hold `::ffff:10.0.0.1` to be in 10.0.0.0/8.
function mostSpecificFirst(family: Family, blocks: readonly AddressBlock[]): Row[] {
  return blocks
    .map((block) => {
      const [network = '', length] = block.prefix.split('/');
      const bits = Number(length);
      const list = new BlockList();
      list.addSubnet(network, bits, family);
      return { block, bits, list };
    })
    .sort((a, b) => b.bits - a.bits);
}

/** Judges a text that `net.isIP` holds to be an address, by the IANA registries. */
export function classifyAddress(text: string): HostVerdict {
  if (text.includes('%')) return refuse('zoneId', text);
  return isIPv4(text) ? classifyIpv4(text) : classifyIpv6(text);
}

function classifyIpv4(name: string): HostVerdict {
  const block = findBlock(name, 'ipv4');
  if (block?.refused) return refuse(block.refused, name, describeBlock(block));
  return { ok: true, host: { kind: 'ipv4', name, display: name, origin: `https://${name}` } };
}

function classifyIpv6(text: string): HostVerdict {
  const block = findBlock(text, 'ipv6');
  const groups = ipv6Groups(text);
  if (block?.refused) {
    const carried = block.embeds ? `${embeddedIpv4(groups, block.embeds)} in ` : '';
    return refuse(block.refused, text, `${carried}${describeBlock(block)}`);
  }
  if (isIsatap(groups)) return refuse('isatap', text, `${embeddedIpv4(groups, 'low32')} in ISATAP (RFC 5214)`);
  const name = new SocketAddress({ address: text, family: 'ipv6' }).address;
  return { ok: true, host: { kind: 'ipv6', name, display: name, origin: `https://[${name}]` } };
}

/** The interface identifier of RFC 5214, section 6.1: 00-00-5E-FE before an IPv4 address, with or without the universal bit. */
function isIsatap(groups: readonly number[]): boolean {
  return groups[5] === 0x5efe && (groups[4] === 0 || groups[4] === 0x0200);
}

function describeBlock({ prefix, name, source }: AddressBlock): string {
  return `${prefix}, ${name} (${source})`;
}

/**
 * For doctor: whether an address that a name resolves to can be a server on the Internet; by the registries, without asking
 * the network. What is no address is not public, nor is what a DNS64 made of an IPv4 address (RFC 6147).
 */
export function isPublicAddress(address: string): boolean {
  return isIP(address) !== 0 && classifyAddress(address).ok;
}
