import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import t from 'tap';
import { isPublicAddress as isPublic } from '../../src/addresses/index.ts';

const isPublicAddress = (address: string): boolean => isPublic(address, { embedded: 'judge' });

/** IANA IPv4 Special-Purpose Address Registry, and multicast (224.0.0.0/4 has a registry of its own). */
const specialIpv4 = `
  0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29
  192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24
  192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
  255.255.255.255/32`;

/** IANA IPv6 Special-Purpose Address Registry, multicast, and all addresses that are not global unicast. */
const specialIpv6 = `
  ::1/128 ::/128 ::/96 ::ffff:0:0:0/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128
  2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28
  2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8 4000::/2
  8000::/1`;

const ranges = (list: string): string[] => list.trim().split(/\s+/);

/** First and last address of a range, and one in between. */
function samples(range: string): string[] {
  const [network, bits] = ipaddr.parseCIDR(range);
  const first = network.toByteArray();
  const fill = (value: number): number[] =>
    first.map((byte, at) => {
      const free = Math.min(Math.max((at + 1) * 8 - bits, 0), 8);
      return byte | (value & ((1 << free) - 1));
    });
  return [first, fill(0xff), fill(0x5a)].map((bytes) => ipaddr.fromByteArray(bytes).toString());
}

const embedded = (address: string): string[] => {
  const hex = ipaddr.IPv4.parse(address)
    .toByteArray()
    .map((byte) => byte.toString(16).padStart(2, '0'));
  const low = `${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`;
  return [`::ffff:${low}`, `64:ff9b::${low}`, `2002:${low}::1`, `::${low}`, `::ffff:0:${low}`, `64:ff9b:1::${low}`];
};

t.test('no address of the IANA special-purpose registries is public', async (t) => {
  for (const range of [...ranges(specialIpv4), ...ranges(specialIpv6)]) {
    for (const address of samples(range)) t.equal(isPublicAddress(address), false, `${address} of ${range}`);
  }
});

t.test('nor is one that stands for such an IPv4 address', async (t) => {
  for (const address of ranges(specialIpv4).flatMap(samples).flatMap(embedded)) {
    t.equal(isPublicAddress(address), false, address);
  }
});

t.test('nor the metadata services of clouds, in any disguise', async (t) => {
  const services = ['169.254.169.254', '169.254.170.2', '100.100.100.200', '192.0.0.192', '168.63.129.16'];
  for (const address of [
    ...services,
    ...services.flatMap(embedded),
    'fd00:ec2::254',
    'fd20:ce::254',
    'fe80::a9fe:a9fe',
  ]) {
    t.equal(isPublicAddress(address), false, address);
  }
});

t.test('a text that is not an address is not public', async (t) => {
  for (const text of ['', 'localhost', '1.2.3.4.5', '::g', 'fe80::1%eth0', '[::1]', '1.1.1.1/32']) {
    t.equal(isPublicAddress(text), false, text);
  }
});

t.test('ordinary addresses are public, through NAT64 as well', async (t) => {
  const open = ['1.1.1.1', '8.8.8.8', '93.184.215.14', '172.15.255.255', '172.32.0.0', '100.63.255.255', '100.128.0.0'];
  const open6 = ['2606:4700:4700::1111', '2a00:1450:4001:810::200e', '2001:4860:4860::8888', '::ffff:8.8.8.8'];
  for (const address of [...open, ...open6, '64:ff9b::808:808', '198.17.255.255', '198.20.0.0', '223.255.255.255']) {
    t.equal(isPublicAddress(address), true, address);
  }
});

t.test('an IPv4 address is judged the same in every spelling of it (property)', async () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [mapped = '', nat64 = '', sixToFour = '', ...others] = embedded(address);
      const isPublic = isPublicAddress(address);
      return (
        isPublicAddress(mapped) === isPublic &&
        isPublicAddress(nat64) === isPublic &&
        ![sixToFour, ...others].some(isPublicAddress)
      );
    }),
  );
});

t.test('a public address is in no special range (property)', async () => {
  const special = ranges(specialIpv6).map((range) => ipaddr.IPv6.parseCIDR(range));
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const parsed = ipaddr.IPv6.parse(address);
      return !(isPublicAddress(address) && special.some((range) => parsed.match(range)));
    }),
  );
});
