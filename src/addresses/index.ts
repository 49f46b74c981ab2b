/**
 * Public and other Internet addresses, by the registries of IANA: the one place that decides whether an address belongs to a public
 * server. For tools that fetch from the web and for the host of a review server. Never here: names, the network, `new URL()`,
 * which reads `010.0.0.1` as 8.0.0.1.
 */
export { embeddedIpv4, findBlock, isIsatap, isPublicAddress, type PublicAddressOptions } from './public-address.ts';
export type { AddressBlock, AddressRefusal, Embedding } from './registries.ts';
