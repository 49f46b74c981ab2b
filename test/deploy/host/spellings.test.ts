import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import t from 'tap';
import { classifyHost } from '../../../src/deploy/host/index.ts';
import { dressedIpv4, dressedIpv6, ipv6Spellings, legacySpellings } from './spellings.ts';

const publicIpv4 =
  `1.1.1.1 8.8.8.8 9.9.9.9 93.184.215.14 100.63.255.255 100.128.0.0 128.0.0.1 140.82.112.3 172.15.255.255
  172.32.0.1 185.199.108.153 191.255.255.255 192.0.1.0 192.0.3.0 198.17.255.255 198.20.0.0 203.0.112.255 208.67.222.222
  217.0.0.10 223.255.255.255`.split(/\s+/);
const otherIpv4 = '0.0.0.0 10.0.0.1 127.0.0.1 169.254.169.254 172.16.0.1 192.168.0.1 224.0.0.1 255.255.255.255'.split(
  ' ',
);
const publicIpv6 = `2001:4860:4860::8888 2003::1 2400:cb00:2048:1::c629:d7a2 2600::1 2606:4700:4700::1111 2620:fe::fe
  2800:3f0:4001:81a::200e 2a00:1450:4001:810::200e 2a00::a00:0:0:b 2a01:4f8::2 2a01:0:0:1:0:0:0:1 2a04:4e42:0:1:2:3:4:5
  2a0a:0:0:2:3:0:0:4 2a10::0:abcd:0:0:1 2c0f:fb50:4002:803::200e 240e:1:2:3:4:5:6:7 2a02:ab:cd:ef:0:0:0:0`.split(/\s+/);
const otherIpv6 = '::1 fe80::1 fc00::1 fd12:3456:789a::1 ff02::1 2001:db8::1 3fff::1 100::1 5f00::1 4000::1'.split(' ');

const bytesOf = (address: string): number[] => ipaddr.parse(address).toByteArray();
const groupsOf = (address: string): number[] => ipaddr.IPv6.parse(address).parts;

/** Host that a text is read as, or the code of its refusal in brackets. */
const outcome = (text: string): string => {
  const verdict = classifyHost(text);
  return verdict.ok ? verdict.host.name : `<${verdict.code}>`;
};
const isRefused = (text: string): boolean => !classifyHost(text).ok;
const seen = new Set<string>();
const wrongOnes = (texts: readonly string[], isRight: (text: string) => boolean) =>
  texts
    .filter((text) => {
      seen.add(text);
      return !isRight(text);
    })
    .map((text) => `${JSON.stringify(text)}: ${outcome(text)}`);

t.test('of all spellings of an IPv4 address only the dotted one is taken', async (t) => {
  for (const address of publicIpv4) {
    const texts = [...legacySpellings(bytesOf(address)), ...dressedIpv4(bytesOf(address))];
    t.strictSame(
      wrongOnes(texts, (text) => (text === address ? outcome(text) === address : isRefused(text))),
      [],
      address,
    );
  }
});

t.test('no spelling makes a special address public', async (t) => {
  for (const address of otherIpv4) {
    t.strictSame(
      wrongOnes([...legacySpellings(bytesOf(address)), ...dressedIpv4(bytesOf(address))], isRefused),
      [],
      address,
    );
  }
  for (const address of otherIpv6) {
    const spelled = ipv6Spellings(groupsOf(address));
    t.strictSame(wrongOnes([...spelled, ...dressedIpv6(address)], isRefused), [], address);
  }
});

t.test('every notation of an IPv6 address is taken as the one of RFC 5952', async (t) => {
  for (const address of publicIpv6) {
    const canonical = ipaddr.IPv6.parse(address).toRFC5952String();
    t.strictSame(
      wrongOnes(ipv6Spellings(groupsOf(address)), (text) => outcome(text) === canonical),
      [],
      address,
    );
    const plain = ipv6Spellings(groupsOf(address)).filter((text) => !text.startsWith('['));
    const dressed = plain.slice(0, 12).flatMap(dressedIpv6);
    t.strictSame(
      wrongOnes(dressed, (text) => isRefused(text)),
      [],
      `${address}, dressed up`,
    );
  }
});

t.test('all this was more than 10 000 spellings', async (t) => {
  t.ok(seen.size > 10_000, `${seen.size} different spellings`);
});

t.test('a refused old spelling names the address that programs read there', async (t) => {
  for (const address of [...publicIpv4, ...otherIpv4]) {
    const wrong = legacySpellings(bytesOf(address)).filter((text) => {
      const verdict = classifyHost(text);
      return (
        !verdict.ok &&
        verdict.code === 'legacyIpv4' &&
        !verdict.message.includes(`some programs read it as ${address}.`)
      );
    });
    t.strictSame(wrong, []);
  }
  for (const text of [
    '1.2.3.4.5',
    '256.1.1.1',
    '1.2.3.256',
    '4294967296',
    '0x100000000',
    '1.2.65536',
    '08.1.1.1',
    '0xg.1',
  ]) {
    const verdict = classifyHost(text);
    t.equal(verdict.ok, false, text);
    t.notMatch(verdict, { message: /read it as/ }, text);
  }
  t.match(classifyHost('1.2.3'), { code: 'legacyIpv4', message: /1\.2\.0\.3/ });
  t.match(classifyHost('0x7f.1'), { code: 'legacyIpv4', message: /127\.0\.0\.1/ });
  t.match(classifyHost('2130706433'), { code: 'legacyIpv4', message: /127\.0\.0\.1/ });
  t.match(classifyHost('010.0.0.1'), { code: 'legacyIpv4', message: /8\.0\.0\.1/ });
  t.match(classifyHost('0x.0x.0x.0x'), { code: 'legacyIpv4', message: /0\.0\.0\.0/ });
});

t.test('any text of numbers and dots is the dotted address it is, or refused (property)', async () => {
  const part = fc.oneof(
    fc.nat(300).map(String),
    fc.nat().map((value) => `0x${value.toString(16)}`),
    fc.nat(300).map((value) => `0${value.toString(8)}`),
    fc.constantFrom('', '0x', '00', '4294967295', '١', '１'),
  );
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) => {
      const text = parts.join('.');
      return isRefused(text) || (outcome(text) === text && ipaddr.IPv4.isValidFourPartDecimal(text));
    }),
    { numRuns: 1_000 },
  );
});

t.test('any text of groups and colons is the IPv6 address that ipaddr.js reads, or refused (property)', async () => {
  const part = fc.oneof(
    fc.nat(0xffff).map((value) => value.toString(16)),
    fc.constantFrom('', '', '0', '00', '12345', 'g', '1.2.3.4'),
  );
  fc.assert(
    fc.property(fc.array(part, { minLength: 2, maxLength: 9 }), (parts) => {
      const text = `26${parts.join(':')}`;
      return isRefused(text) || outcome(text) === ipaddr.IPv6.parse(text).toRFC5952String();
    }),
    { numRuns: 1_000 },
  );
});
