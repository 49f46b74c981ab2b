import { isIPv4, SocketAddress } from 'node:net';
import { type AddressBlock, embeddedIpv4, findBlock, isIsatap } from '../../addresses/index.ts';
import { type HostVerdict, refuse } from './refusals.ts';

/** Judges a text that `net.isIP` holds to be an address, by the IANA registries. */
export function classifyAddress(text: string): HostVerdict {
  if (text.includes('%')) return refuse('zoneId', text);
  return isIPv4(text) ? classifyIpv4(text) : classifyIpv6(text);
}

function classifyIpv4(name: string): HostVerdict {
  const block = findBlock(name);
  if (block?.refused) return refuse(block.refused, name, describeBlock(block));
  return { ok: true, host: { kind: 'ipv4', name, display: name, origin: `https://${name}` } };
}

function classifyIpv6(text: string): HostVerdict {
  const block = findBlock(text);
  if (block?.refused) {
    const carried = block.embeds ? `${embeddedIpv4(text, block.embeds)} in ` : '';
    return refuse(block.refused, text, `${carried}${describeBlock(block)}`);
  }
  if (isIsatap(text)) return refuse('isatap', text, `${embeddedIpv4(text, 'low32')} in ISATAP (RFC 5214)`);
  const name = new SocketAddress({ address: text, family: 'ipv6' }).address;
  return { ok: true, host: { kind: 'ipv6', name, display: name, origin: `https://[${name}]` } };
}

function describeBlock({ prefix, name, source }: AddressBlock): string {
  return `${prefix}, ${name} (${source})`;
}
