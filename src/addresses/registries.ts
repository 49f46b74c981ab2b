/** Why an address of a block is not that of a public server. */
export type AddressRefusal =
  | 'benchmarking'
  | 'broadcast'
  | 'compatibleIpv4'
  | 'deprecated'
  | 'discardOnly'
  | 'documentation'
  | 'identifier'
  | 'linkLocal'
  | 'loopback'
  | 'mappedIpv4'
  | 'multicast'
  | 'privateUse'
  | 'protocolAssignment'
  | 'reserved'
  | 'sharedAddress'
  | 'sharedService'
  | 'sixToFour'
  | 'teredo'
  | 'translatedIpv4'
  | 'unspecified';

/** Where an IPv6 address of a block keeps an IPv4 one. */
export type Embedding = 'low32' | 'sixToFour' | 'teredo';

/** One row of an IANA address registry. */
export interface AddressBlock {
  /** The block in CIDR notation, as the registry writes it. */
  readonly prefix: string;
  readonly name: string;
  /** The document that the registry names. */
  readonly source: string;
  /** The registry's column “Globally Reachable”; an open or ended entry counts as no. */
  readonly reachable: boolean;
  /** Why no server of ours is there; `undefined` where servers are. Some reachable blocks are never one server either. */
  readonly refused: AddressRefusal | undefined;
  readonly embeds?: Embedding;
}

const block = (
  prefix: string,
  name: string,
  source: string,
  reachable: boolean,
  refused: AddressRefusal | undefined,
  embeds?: Embedding,
): AddressBlock => ({ prefix, name, source, reachable, refused, ...(embeds && { embeds }) });

/** IANA IPv4 Special-Purpose Address Registry (RFC 6890), every row. */
export const ipv4SpecialPurpose: readonly AddressBlock[] = [
  block('0.0.0.0/8', 'This network', 'RFC 791', false, 'unspecified'),
  block('0.0.0.0/32', 'This host on this network', 'RFC 1122', false, 'unspecified'),
  block('10.0.0.0/8', 'Private-Use', 'RFC 1918', false, 'privateUse'),
  block('100.64.0.0/10', 'Shared Address Space', 'RFC 6598', false, 'sharedAddress'),
  block('127.0.0.0/8', 'Loopback', 'RFC 1122', false, 'loopback'),
  block('169.254.0.0/16', 'Link Local', 'RFC 3927', false, 'linkLocal'),
  block('172.16.0.0/12', 'Private-Use', 'RFC 1918', false, 'privateUse'),
  block('192.0.0.0/24', 'IETF Protocol Assignments', 'RFC 6890', false, 'protocolAssignment'),
  block('192.0.0.0/29', 'IPv4 Service Continuity Prefix', 'RFC 7335', false, 'protocolAssignment'),
  block('192.0.0.8/32', 'IPv4 dummy address', 'RFC 7600', false, 'discardOnly'),
  block('192.0.0.9/32', 'Port Control Protocol Anycast', 'RFC 7723', true, 'sharedService'),
  block('192.0.0.10/32', 'Traversal Using Relays around NAT Anycast', 'RFC 8155', true, 'sharedService'),
  block('192.0.0.170/32', 'NAT64/DNS64 Discovery', 'RFC 8880', false, 'protocolAssignment'),
  block('192.0.0.171/32', 'NAT64/DNS64 Discovery', 'RFC 8880', false, 'protocolAssignment'),
  block('192.0.2.0/24', 'Documentation (TEST-NET-1)', 'RFC 5737', false, 'documentation'),
  block('192.31.196.0/24', 'AS112-v4', 'RFC 7535', true, 'sharedService'),
  block('192.52.193.0/24', 'AMT', 'RFC 7450', true, 'sharedService'),
  block('192.88.99.0/24', 'Deprecated (6to4 Relay Anycast)', 'RFC 7526', false, 'deprecated'),
  block('192.88.99.2/32', '6a44-relay anycast address', 'RFC 6751', false, 'sharedService'),
  block('192.168.0.0/16', 'Private-Use', 'RFC 1918', false, 'privateUse'),
  block('192.175.48.0/24', 'Direct Delegation AS112 Service', 'RFC 7534', true, 'sharedService'),
  block('198.18.0.0/15', 'Benchmarking', 'RFC 2544', false, 'benchmarking'),
  block('198.51.100.0/24', 'Documentation (TEST-NET-2)', 'RFC 5737', false, 'documentation'),
  block('203.0.113.0/24', 'Documentation (TEST-NET-3)', 'RFC 5737', false, 'documentation'),
  block('240.0.0.0/4', 'Reserved', 'RFC 1112', false, 'reserved'),
  block('255.255.255.255/32', 'Limited Broadcast', 'RFC 8190', false, 'broadcast'),
];

/** IANA IPv4 Address Space Registry, as far as the special-purpose registry leaves it out; every other /8 is given out. */
export const ipv4AddressSpace: readonly AddressBlock[] = [
  block('224.0.0.0/4', 'Multicast', 'RFC 5771', false, 'multicast'),
];

/** IANA IPv6 Special-Purpose Address Registry (RFC 6890), every row. */
export const ipv6SpecialPurpose: readonly AddressBlock[] = [
  block('::1/128', 'Loopback Address', 'RFC 4291', false, 'loopback'),
  block('::/128', 'Unspecified Address', 'RFC 4291', false, 'unspecified'),
  block('::ffff:0:0/96', 'IPv4-mapped Address', 'RFC 4291', false, 'mappedIpv4', 'low32'),
  block('64:ff9b::/96', 'IPv4-IPv6 Translat.', 'RFC 6052', true, 'translatedIpv4', 'low32'),
  block('64:ff9b:1::/48', 'IPv4-IPv6 Translat.', 'RFC 8215', false, 'translatedIpv4', 'low32'),
  block('100::/64', 'Discard-Only Address Block', 'RFC 6666', false, 'discardOnly'),
  block('100:0:0:1::/64', 'Dummy IPv6 Prefix', 'RFC 9780', false, 'discardOnly'),
  block('2001::/23', 'IETF Protocol Assignments', 'RFC 2928', false, 'protocolAssignment'),
  block('2001::/32', 'TEREDO', 'RFC 4380', false, 'teredo', 'teredo'),
  block('2001:1::1/128', 'Port Control Protocol Anycast', 'RFC 7723', true, 'sharedService'),
  block('2001:1::2/128', 'Traversal Using Relays around NAT Anycast', 'RFC 8155', true, 'sharedService'),
  block('2001:1::3/128', 'DNS-SD Service Registration Protocol Anycast', 'RFC 9665', true, 'sharedService'),
  block('2001:2::/48', 'Benchmarking', 'RFC 5180', false, 'benchmarking'),
  block('2001:3::/32', 'AMT', 'RFC 7450', true, 'sharedService'),
  block('2001:4:112::/48', 'AS112-v6', 'RFC 7535', true, 'sharedService'),
  block('2001:10::/28', 'Deprecated (previously ORCHID)', 'RFC 4843', false, 'deprecated'),
  block('2001:20::/28', 'ORCHIDv2', 'RFC 7343', true, 'identifier'),
  block('2001:30::/28', 'Drone Remote ID Protocol Entity Tags (DETs) Prefix', 'RFC 9374', true, 'identifier'),
  block('2001:db8::/32', 'Documentation', 'RFC 3849', false, 'documentation'),
  block('2002::/16', '6to4', 'RFC 3056', false, 'sixToFour', 'sixToFour'),
  block('2620:4f:8000::/48', 'Direct Delegation AS112 Service', 'RFC 7534', true, 'sharedService'),
  block('3fff::/20', 'Documentation', 'RFC 9637', false, 'documentation'),
  block('5f00::/16', 'Segment Routing (SRv6) SIDs', 'RFC 9602', false, 'identifier'),
  block('fc00::/7', 'Unique-Local', 'RFC 4193', false, 'privateUse'),
  block('fe80::/10', 'Link-Local Unicast', 'RFC 4291', false, 'linkLocal'),
];

/**
 * IANA Internet Protocol Version 6 Address Space, without the two rows that the special-purpose registry repeats: with those
 * they are all of IPv6, and servers are in one of them. Two blocks that carry IPv4 and have no row anywhere stand first.
 */
export const ipv6AddressSpace: readonly AddressBlock[] = [
  block('::/96', 'IPv4-compatible Address', 'RFC 4291', false, 'compatibleIpv4', 'low32'),
  block('::ffff:0:0:0/96', 'IPv4-translated Address', 'RFC 2765', false, 'translatedIpv4', 'low32'),
  block('::/8', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('100::/8', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('200::/7', 'Reserved by IETF', 'RFC 4048', false, 'reserved'),
  block('400::/6', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('800::/5', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('1000::/4', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('2000::/3', 'Global Unicast', 'RFC 4291', true, undefined),
  block('4000::/3', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('6000::/3', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('8000::/3', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('a000::/3', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('c000::/3', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('e000::/4', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('f000::/5', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('f800::/6', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('fe00::/9', 'Reserved by IETF', 'RFC 4291', false, 'reserved'),
  block('fec0::/10', 'Site-Local Unicast, deprecated', 'RFC 3879', false, 'deprecated'),
  block('ff00::/8', 'Multicast', 'RFC 4291', false, 'multicast'),
];

/**
 * IANA IPv6 Global Unicast Address Assignments, the rows marked as reserved. Gaps between the assignments are let through:
 * the next assignment comes from one of them, and must not wait for a release of ours.
 */
export const ipv6UnicastReserved: readonly AddressBlock[] = [
  block('2d00::/8', 'Reserved by IANA', 'IPv6 Global Unicast Address Assignments', false, 'reserved'),
  block('2e00::/7', 'Reserved by IANA', 'IPv6 Global Unicast Address Assignments', false, 'reserved'),
  block('3000::/4', 'Reserved by IANA', 'IPv6 Global Unicast Address Assignments', false, 'reserved'),
];
