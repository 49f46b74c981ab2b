import { isIPv4, SocketAddress } from 'node:net';
import { embeddedIpv4 } from './embedded-ipv4.ts';
import { findBlock } from './find-block.ts';
import type { HostVerdict } from './host.ts';
import { ipv6Groups } from './ipv6-groups.ts';
import { refuse } from './refusals.ts';
import type { AddressBlock } from './registries.ts';

/** Judges a text that `net.isIP` holds to be an address, by the IANA registries. */
export function classifyAddress(text: string): HostVerdict {
  if (text.includes('%')) return refuse('zoneId', text);
  return isIPv4(text) ? classifyIpv4(text) : classifyIpv6(text);
}

function classifyIpv4(name: string): HostVerdict {
  const block = findBlock(name, 'ipv4');
  if (block?.refused) return refuse(block.refused, name, entry(block));
  return { ok: true, host: { kind: 'ipv4', name, display: name, origin: `https://${name}` } };
}

function classifyIpv6(text: string): HostVerdict {
  const block = findBlock(text, 'ipv6');
  const groups = ipv6Groups(text);
  if (block?.refused) {
    const carried = block.embeds ? `${embeddedIpv4(groups, block.embeds)} in ` : '';
    return refuse(block.refused, text, `${carried}${entry(block)}`);
  }
  if (isIsatap(groups)) return refuse('isatap', text, `${embeddedIpv4(groups, 'low32')} in ISATAP (RFC 5214)`);
  const name = new SocketAddress({ address: text, family: 'ipv6' }).address;
  return { ok: true, host: { kind: 'ipv6', name, display: name, origin: `https://[${name}]` } };
}

/** The interface identifier of RFC 5214, section 6.1: 00-00-5E-FE before an IPv4 address, with or without the universal bit. */
function isIsatap(groups: readonly number[]): boolean {
  return groups[5] === 0x5efe && (groups[4] === 0 || groups[4] === 0x0200);
}

function entry({ prefix, name, source }: AddressBlock): string {
  return `${prefix}, ${name} (${source})`;
}
