import { isIP } from 'node:net';
import { classifyAddress } from './classify-address.ts';

/**
 * For doctor: whether an address that a name resolves to can be a server on the Internet; by the registries, without asking
 * the network. What is no address is not public, nor is what a DNS64 made of an IPv4 address (RFC 6147).
 */
export function isPublicAddress(address: string): boolean {
  return isIP(address) !== 0 && classifyAddress(address).ok;
}
