import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import t from 'tap';
import { isPublicAddress as isPublic } from '../../../src/addresses/index.ts';
import {
  ipv4AddressSpace,
  ipv4SpecialPurpose,
  ipv6AddressSpace,
  ipv6SpecialPurpose,
  ipv6UnicastReserved,
} from '../../../src/addresses/registries.ts';
import { classifyHost } from '../../../src/deploy/host/index.ts';
import {
  addressOf,
  ipv4Multicast,
  ipv4Special,
  ipv6Carrying,
  ipv6Kept,
  ipv6Outside,
  ipv6Special,
  isHostable,
  isInside,
  type Range,
  rangeOf,
  refusedRanges,
} from './iana.ts';

const isPublicAddress = (address: string): boolean => isPublic(address, { embedded: 'refuse' });

const codeOf = (text: string): string => {
  const verdict = classifyHost(text);
  return verdict.ok ? 'ok' : verdict.code;
};
const messageOf = (text: string): string => {
  const verdict = classifyHost(text);
  return verdict.ok ? '' : verdict.message;
};

/** First, last, two in the middle, and the neighbours on both sides. */
function samples({ bits, first, last }: Range): bigint[] {
  const size = last - first;
  const inside = [first, first + size / 2n, first + size / 3n, last];
  return [...inside, first - 1n, last + 1n].filter((value) => value >= 0n && value < 2n ** BigInt(bits));
}

t.test('the tables are the registries, row by row', async (t) => {
  const rows = (blocks: typeof ipv4SpecialPurpose) =>
    blocks.map(({ prefix, name, source, reachable }) => ({ prefix, name, source, reachable }));
  t.strictSame(rows(ipv4SpecialPurpose), ipv4Special);
  t.strictSame(rows(ipv6SpecialPurpose), ipv6Special);
  t.strictSame(
    ipv4AddressSpace.map(({ prefix }) => prefix),
    [ipv4Multicast],
  );
  t.strictSame(
    ipv6UnicastReserved.map(({ prefix }) => prefix),
    ipv6Kept,
  );
  const space = ipv6AddressSpace.map(({ prefix }) => prefix);
  const repeated = ['fc00::/7', 'fe80::/10'];
  t.strictSame([...space, ...repeated].sort(), ['2000::/3', ...ipv6Outside, ...ipv6Carrying].sort());
});

t.test('the rows of the IPv6 address space are the whole of it, without gap or overlap', async (t) => {
  const ranges = [...ipv6Outside, '2000::/3'].map(rangeOf).sort((a, b) => (a.first < b.first ? -1 : 1));
  t.equal(ranges[0]?.first, 0n);
  t.equal(ranges.at(-1)?.last, 2n ** 128n - 1n);
  for (const [at, range] of ranges.slice(1).entries()) t.equal(range.first, (ranges[at]?.last ?? 0n) + 1n);
});

t.test('first, last, middle and neighbours of each block are judged by the blocks that contain them', async (t) => {
  for (const range of refusedRanges) {
    const wrong = samples(range).filter((value) => {
      const address = addressOf(value, range.bits);
      return (codeOf(address) === 'ok') !== isHostable(value, range.bits);
    });
    const prefix = `${addressOf(range.first, range.bits)}/${range.length}`;
    t.strictSame(
      wrong.map((value) => addressOf(value, range.bits)),
      [],
      prefix,
    );
  }
});

t.test('a refusal names the most specific entry and its document', async (t) => {
  const entries = [...ipv4SpecialPurpose, ...ipv4AddressSpace, ...ipv6SpecialPurpose, ...ipv6AddressSpace];
  for (const { prefix, name, source, refused } of [...entries, ...ipv6UnicastReserved]) {
    if (!refused) continue;
    const { bits, first, last } = rangeOf(prefix);
    // Most blocks begin with a smaller one: the network with its last bit set, in the middle, is in none.
    const middle = addressOf(prefix === '::/8' ? last : first + (last - first) / 2n, bits);
    t.equal(codeOf(middle), refused, `${middle} of ${prefix}`);
    t.ok(messageOf(middle).includes(`${prefix}, ${name} (${source})`), messageOf(middle));
  }
  t.match(messageOf('10.0.0.1'), '10.0.0.0/8, Private-Use (RFC 1918)');
  t.match(messageOf('192.0.0.1'), '192.0.0.0/29, IPv4 Service Continuity Prefix (RFC 7335)');
  t.match(messageOf('192.0.0.100'), '192.0.0.0/24, IETF Protocol Assignments (RFC 6890)');
});

t.test('an IPv4 address inside an IPv6 one is refused and named', async (t) => {
  for (const [text, code, carried] of [
    ['::ffff:8.8.8.8', 'mappedIpv4', '8.8.8.8'],
    ['::ffff:a00:1', 'mappedIpv4', '10.0.0.1'],
    ['::8.8.8.8', 'compatibleIpv4', '8.8.8.8'],
    ['::ffff:0:8.8.8.8', 'translatedIpv4', '8.8.8.8'],
    ['64:ff9b::8.8.8.8', 'translatedIpv4', '8.8.8.8'],
    ['64:ff9b:1::192.168.0.1', 'translatedIpv4', '192.168.0.1'],
    ['2002:c0a8:101::1', 'sixToFour', '192.168.1.1'],
    // The example of RFC 4380, section 4: the client is 192.0.2.45.
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'teredo', '192.0.2.45'],
    ['2600::5efe:8.8.4.4', 'isatap', '8.8.4.4'],
    ['2600::200:5efe:808:404', 'isatap', '8.8.4.4'],
  ] as const) {
    t.equal(codeOf(text), code, text);
    t.ok(messageOf(text).includes(`${carried} in `), messageOf(text));
  }
});

t.test('a public address is taken unchanged, IPv6 as RFC 5952 writes it', async (t) => {
  t.strictSame(classifyHost('8.8.8.8'), {
    ok: true,
    host: { kind: 'ipv4', name: '8.8.8.8', display: '8.8.8.8', origin: 'https://8.8.8.8' },
  });
  for (const text of ['2606:4700:0:0:0:0:0:AB', '[2606:4700::00ab]', '2606:4700::ab', '2606:4700::0.0.0.171']) {
    t.strictSame(classifyHost(text), {
      ok: true,
      host: { kind: 'ipv6', name: '2606:4700::ab', display: '2606:4700::ab', origin: 'https://[2606:4700::ab]' },
    });
  }
  for (const [text, name] of [
    ['2600:0:0:1:0:0:0:1', '2600:0:0:1::1'],
    ['2600:0:0:1:1:0:0:1', '2600::1:1:0:0:1'],
    ['2600:0:1:1:1:1:1:1', '2600:0:1:1:1:1:1:1'],
    ['2600:1:1:1:1:1::1', '2600:1:1:1:1:1:0:1'],
  ] as const) {
    t.match(classifyHost(text), { ok: true, host: { name } });
  }
});

t.test('any IPv4 address is judged as the registries say (property)', async () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }), (value) => {
      const address = addressOf(value, 32);
      return (codeOf(address) === 'ok') === isHostable(value, 32) && isPublicAddress(address) === isHostable(value, 32);
    }),
    { numRuns: 1_000 },
  );
});

t.test('any IPv6 address is judged as the registries say, near every block above all (property)', async () => {
  const near = fc
    .tuple(fc.constantFrom(...refusedRanges.filter(({ bits }) => bits === 128)), fc.bigInt(-300n, 300n), fc.boolean())
    .map(([{ first, last }, distance, atFirst]) => BigInt.asUintN(128, (atFirst ? first : last) + distance));
  const unicast = fc.bigInt({ min: 2n ** 125n, max: 2n ** 126n - 1n });
  fc.assert(
    fc.property(fc.oneof(near, unicast, fc.bigInt({ min: 0n, max: 2n ** 128n - 1n })), (value) => {
      const address = addressOf(value, 128);
      const verdict = classifyHost(address);
      const canonical = ipaddr.IPv6.parse(address).toRFC5952String();
      return verdict.ok === isHostable(value, 128) && (!verdict.ok || verdict.host.name === canonical);
    }),
    { numRuns: 1_000 },
  );
});

t.test('ipaddr.js, which keeps tables of its own, holds the same addresses to be unicast (property)', async () => {
  const kept = ipv6Kept.map(rangeOf);
  fc.assert(
    fc.property(fc.ipV4(), (address) => (codeOf(address) === 'ok') === (ipaddr.parse(address).range() === 'unicast')),
    { numRuns: 500 },
  );
  fc.assert(
    fc.property(fc.bigInt({ min: 2n ** 125n, max: 2n ** 126n - 1n }), (value) => {
      const address = addressOf(value, 128);
      const isUnicast = ipaddr.parse(address).range() === 'unicast';
      return kept.some((range) => isInside(value, 128, range)) || isPublicAddress(address) === isUnicast;
    }),
    { numRuns: 500 },
  );
});

t.test('a text that is not an address is not public', async (t) => {
  for (const text of [
    '',
    'acme.dev',
    '8.8.8',
    '08.8.8.8',
    '[2600::1]',
    '2600::1%eth0',
    '8.8.8.8/32',
    '8.8.8.8:53',
    '::g',
  ]) {
    t.equal(isPublicAddress(text), false, text);
  }
  t.equal(isPublicAddress('8.8.8.8'), true);
  t.equal(isPublicAddress('2606:4700:4700::1111'), true);
});
