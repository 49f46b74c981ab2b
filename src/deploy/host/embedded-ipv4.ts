import type { Embedding } from './registries.ts';

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
