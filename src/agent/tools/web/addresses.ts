import ipaddr from 'ipaddr.js';

/** Of the whole IPv6 space only this block is given out for global use (IANA, IPv6 global unicast assignments). */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');
/** The well-known prefix of NAT64 (RFC 6052): the last 32 bits are an IPv4 address, and that is who answers. */
const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/** Metadata services of clouds at addresses that no registry calls special. Those of the others are link-local, private or shared. */
const metadataServices: ReadonlySet<string> = new Set(['168.63.129.16']);

/**
 * Whether an address belongs to the public internet. Everything that the IANA special-purpose registries (RFC 6890) list
 * is not: this machine, private and shared networks, link-local, multicast, documentation, benchmarking, tunnels, reserved
 * space. An IPv6 address that stands for an IPv4 one is judged by that. What is no address is not public.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  return parsed.kind() === 'ipv4' ? isPublicIpv4(parsed as ipaddr.IPv4) : isPublicIpv6(parsed as ipaddr.IPv6);
}

function isPublicIpv4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && !metadataServices.has(address.toString());
}

function isPublicIpv6(address: ipaddr.IPv6): boolean {
  if (address.isIPv4MappedAddress()) return isPublicIpv4(address.toIPv4Address());
  if (address.match(nat64)) return isPublicIpv4(new ipaddr.IPv4(address.toByteArray().slice(12)));
  return address.range() === 'unicast' && address.match(globalUnicast);
}
