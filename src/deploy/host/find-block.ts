import { BlockList, SocketAddress } from 'node:net';
import {
  type AddressBlock,
  ipv4AddressSpace,
  ipv4SpecialPurpose,
  ipv6AddressSpace,
  ipv6SpecialPurpose,
  ipv6UnicastReserved,
} from './registries.ts';

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
