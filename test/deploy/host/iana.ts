/**
 * The IANA registries as text, kept apart from the tables of the program so that one checks the other, and arithmetic on
 * addresses as whole numbers: nothing here uses `node:net`.
 */
import ipaddr from 'ipaddr.js';

export interface Row {
  readonly prefix: string;
  readonly name: string;
  readonly source: string;
  readonly reachable: boolean;
}

export interface Range {
  readonly bits: 32 | 128;
  readonly length: number;
  readonly first: bigint;
  readonly last: bigint;
}

/** “Globally Reachable” as of 2025: yes where the registry says True; no where it says False, N/A or nothing. */
const parse = (table: string): Row[] =>
  table
    .trim()
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([prefix = '', name = '', source = '', reachable]) => ({
      prefix,
      name,
      source,
      reachable: reachable === 'yes',
    }));

export const ipv4Special = parse(`
  0.0.0.0/8          | This network                              | RFC 791  | no
  0.0.0.0/32         | This host on this network                 | RFC 1122 | no
  10.0.0.0/8         | Private-Use                               | RFC 1918 | no
  100.64.0.0/10      | Shared Address Space                      | RFC 6598 | no
  127.0.0.0/8        | Loopback                                  | RFC 1122 | no
  169.254.0.0/16     | Link Local                                | RFC 3927 | no
  172.16.0.0/12      | Private-Use                               | RFC 1918 | no
  192.0.0.0/24       | IETF Protocol Assignments                 | RFC 6890 | no
  192.0.0.0/29       | IPv4 Service Continuity Prefix            | RFC 7335 | no
  192.0.0.8/32       | IPv4 dummy address                        | RFC 7600 | no
  192.0.0.9/32       | Port Control Protocol Anycast             | RFC 7723 | yes
  192.0.0.10/32      | Traversal Using Relays around NAT Anycast | RFC 8155 | yes
  192.0.0.170/32     | NAT64/DNS64 Discovery                     | RFC 8880 | no
  192.0.0.171/32     | NAT64/DNS64 Discovery                     | RFC 8880 | no
  192.0.2.0/24       | Documentation (TEST-NET-1)                | RFC 5737 | no
  192.31.196.0/24    | AS112-v4                                  | RFC 7535 | yes
  192.52.193.0/24    | AMT                                       | RFC 7450 | yes
  192.88.99.0/24     | Deprecated (6to4 Relay Anycast)           | RFC 7526 |
  192.88.99.2/32     | 6a44-relay anycast address                | RFC 6751 | no
  192.168.0.0/16     | Private-Use                               | RFC 1918 | no
  192.175.48.0/24    | Direct Delegation AS112 Service           | RFC 7534 | yes
  198.18.0.0/15      | Benchmarking                              | RFC 2544 | no
  198.51.100.0/24    | Documentation (TEST-NET-2)                | RFC 5737 | no
  203.0.113.0/24     | Documentation (TEST-NET-3)                | RFC 5737 | no
  240.0.0.0/4        | Reserved                                  | RFC 1112 | no
  255.255.255.255/32 | Limited Broadcast                         | RFC 8190 | no
`);

export const ipv6Special = parse(`
  ::1/128           | Loopback Address                                   | RFC 4291 | no
  ::/128            | Unspecified Address                                | RFC 4291 | no
  ::ffff:0:0/96     | IPv4-mapped Address                                | RFC 4291 | no
  64:ff9b::/96      | IPv4-IPv6 Translat.                                | RFC 6052 | yes
  64:ff9b:1::/48    | IPv4-IPv6 Translat.                                | RFC 8215 | no
  100::/64          | Discard-Only Address Block                         | RFC 6666 | no
  100:0:0:1::/64    | Dummy IPv6 Prefix                                  | RFC 9780 | no
  2001::/23         | IETF Protocol Assignments                          | RFC 2928 | no
  2001::/32         | TEREDO                                             | RFC 4380 | N/A
  2001:1::1/128     | Port Control Protocol Anycast                      | RFC 7723 | yes
  2001:1::2/128     | Traversal Using Relays around NAT Anycast          | RFC 8155 | yes
  2001:1::3/128     | DNS-SD Service Registration Protocol Anycast       | RFC 9665 | yes
  2001:2::/48       | Benchmarking                                       | RFC 5180 | no
  2001:3::/32       | AMT                                                | RFC 7450 | yes
  2001:4:112::/48   | AS112-v6                                           | RFC 7535 | yes
  2001:10::/28      | Deprecated (previously ORCHID)                     | RFC 4843 |
  2001:20::/28      | ORCHIDv2                                           | RFC 7343 | yes
  2001:30::/28      | Drone Remote ID Protocol Entity Tags (DETs) Prefix | RFC 9374 | yes
  2001:db8::/32     | Documentation                                      | RFC 3849 | no
  2002::/16         | 6to4                                               | RFC 3056 | N/A
  2620:4f:8000::/48 | Direct Delegation AS112 Service                    | RFC 7534 | yes
  3fff::/20         | Documentation                                      | RFC 9637 | no
  5f00::/16         | Segment Routing (SRv6) SIDs                        | RFC 9602 | no
  fc00::/7          | Unique-Local                                       | RFC 4193 | no
  fe80::/10         | Link-Local Unicast                                 | RFC 4291 | no
`);

/** Multicast of the IPv4 Address Space registry. */
export const ipv4Multicast = '224.0.0.0/4';

/** The IPv6 Address Space registry without 2000::/3, the only part that is global unicast. */
export const ipv6Outside =
  `::/8 100::/8 200::/7 400::/6 800::/5 1000::/4 4000::/3 6000::/3 8000::/3 a000::/3 c000::/3 e000::/4
  f000::/5 f800::/6 fc00::/7 fe00::/9 fe80::/10 fec0::/10 ff00::/8`.split(/\s+/);

/** Blocks of 2000::/3 that IANA reserves. */
export const ipv6Kept = ['2d00::/8', '2e00::/7', '3000::/4'];

/** Blocks that carry an IPv4 address and have no row in a registry: compatible (RFC 4291) and translated (RFC 2765). */
export const ipv6Carrying = ['::/96', '::ffff:0:0:0/96'];

export function rangeOf(prefix: string): Range {
  const [network, length] = ipaddr.parseCIDR(prefix);
  const bits = network.kind() === 'ipv4' ? 32 : 128;
  const first = network.toByteArray().reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  return { bits, length, first, last: first + 2n ** BigInt(bits - length) - 1n };
}

/** A whole number as an address in its plainest notation: dotted, or eight hexadecimal groups. */
export function addressOf(value: bigint, bits: 32 | 128): string {
  const size = bits === 32 ? 8 : 16;
  const parts = Array.from({ length: bits / size }, (_, at) =>
    Number((value >> BigInt(bits - size * (at + 1))) & (2n ** BigInt(size) - 1n)),
  );
  return bits === 32 ? parts.join('.') : parts.map((part) => part.toString(16)).join(':');
}

/** Everything where no server of ours can be, as ranges. */
export const refusedRanges: readonly Range[] = [
  ...ipv4Special.map(({ prefix }) => prefix),
  ipv4Multicast,
  ...ipv6Special.map(({ prefix }) => prefix),
  ...ipv6Outside,
  ...ipv6Kept,
  ...ipv6Carrying,
].map(rangeOf);

export function isInside(value: bigint, bits: 32 | 128, range: Range): boolean {
  return range.bits === bits && range.first <= value && value <= range.last;
}

/** RFC 5214, section 6.1, on the last 64 bits. */
export function isIsatap(value: bigint, bits: 32 | 128): boolean {
  const identifier = (value >> 32n) & 0xffffffffn;
  return bits === 128 && (identifier === 0x00005efen || identifier === 0x02005efen);
}

/** What the registries say of an address: may a public host be there? */
export function isHostable(value: bigint, bits: 32 | 128): boolean {
  return !refusedRanges.some((range) => isInside(value, bits, range)) && !isIsatap(value, bits);
}
