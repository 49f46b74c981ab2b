import { isIP } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { classifyHost, type HostRefusalCode } from '../../../src/deploy/host/index.ts';
import { refusalCodes } from '../../../src/deploy/host/refusals.ts';
import { inAscii } from './spellings.ts';

/** Texts that are refused, by the reason; every reason there is has some. */
const refused: Readonly<Record<HostRefusalCode, readonly string[]>> = {
  empty: [''],
  tooLong: ['a.'.repeat(300), 'x'.repeat(5_000_000), `${'a.'.repeat(127)}com`],
  whitespace: [' ', 'acme.dev ', ' acme.dev', 'acme.dev\n', 'ac me.dev', '8.8.8.8\n', '2600::1 ', '\t'],
  control: ['acme\u0000.dev', 'acme.dev\u0007', '\u001b[31macme.dev', '8.8.8.8\u0000'],
  invisible: ['a\u00adcme.dev', '\u202eacme.dev', '8.8.8.8\u200b'],
  urlShaped: [
    ...[
      'https://acme.dev',
      'http://acme.dev/',
      'HTTPS://ACME.DEV:443/x?y#z',
      '//acme.dev',
      'ftp://acme.dev',
      'x+y://a.b',
    ],
    ...[
      'https://8.8.8.8',
      'https://[2600::1]/',
      'https:acme.dev',
      'javascript:alert(1)',
      'file:///etc/passwd',
      'mailto:a@b.c',
    ],
  ],
  userinfo: ['git@acme.dev', 'user:pw@acme.dev', '@acme.dev', 'a@8.8.8.8', 'acme.dev@'],
  prefixLength: ['8.8.8.0/24', '2600::/12', '10.0.0.0/8', '8.8.8.8/32'],
  path: ['acme.dev/', 'acme.dev/api/v1', '/acme.dev', 'acme.dev/?x', '8.8.8.8/path', '/'],
  backslash: ['acme.dev\\', '\\\\acme.dev\\share', 'acme\\.dev'],
  query: ['acme.dev?x=1', '?', '8.8.8.8?'],
  fragment: ['acme.dev#x', '#', '2600::1#'],
  percent: ['a%2e.com', 'acme%2Edev', '%', '8.8.8.8%eth0', '%31.1.1.1'],
  wildcard: ['*.acme.dev', '*', 'a*.dev', 'acme.*'],
  port: [
    'acme.dev:443',
    'acme.dev:',
    '8.8.8.8:443',
    '[2600::1]:443',
    'localhost:80',
    'acme.dev:99999',
    ':80',
    'bücher.de:443',
  ],
  brackets: ['[8.8.8.8]', '[acme.dev]', '[2600::1', '2600::1]', '[[2600::1]]', '[]', '[::g]'],
  ipv6Syntax: [
    '2600:::1',
    '2600::1::2',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    '::g',
    '2600::1.2.3',
    '2600::01.2.3.4',
  ],
  zoneId: ['fe80::1%eth0', '2600::1%1', '[fe80::1%eth0]', 'fe80::1%25eth0', '2600::1%', '[2600::1%25en0]:443'],
  legacyIpv4: [
    '127.1',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '010.0.0.1',
    '1.2.3',
    '256.1.1.1',
    '1',
    '0',
    '8.8.8.8.',
  ],
  numericName: ['foo.0x1', 'foo.123', '1.2.3.4.5', 'acme.dev.1.'],
  emptyLabel: ['.', 'a..b', '.a.b', 'a.b..'],
  labelTooLong: [`${'a'.repeat(64)}.dev`, `${'ü'.repeat(63)}.dev`],
  labelHyphen: ['-a.dev', 'a-.dev', 'a.-.dev'],
  labelCharacter: [
    'a_b.dev',
    'a,b.dev',
    '$HOME.dev',
    'a;b.dev',
    '`id`.dev',
    '{$HOST}.dev',
    '"a".dev',
    '<a>.dev',
    'a|b.dev',
    'a+b.dev',
  ],
  reservedLabel: ['ab--c.dev', 'zz--a.dev'],
  lookalikeDot: ['acme\u3002dev', 'acme\uff0edev', 'acme\uff61dev'],
  symbol: ['①.com', '☃.net', 'acme\u2044x.dev', 'acme\uff1a443'],
  notCanonical: ['ａcme.dev', 'ﬁn.dev', 'ẞ.de'],
  idn: ['xn--a.dev', 'xn--xn---epa.com', '\u0301a.dev'],
  specialUseName: [
    'localhost',
    'a.localhost',
    'a.local',
    'a.test',
    'a.example',
    'example.com',
    'a.onion',
    'a.home.arpa',
    'a.internal',
  ],
  singleLabel: ['acme', 'acme.', 'xn--bcher-kva'],
  privateUse: ['10.0.0.1', '172.31.255.255', '192.168.1.1', 'fd00::1'],
  sharedAddress: ['100.64.0.1'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1', '[::1]', '0:0:0:0:0:0:0:1'],
  linkLocal: ['169.254.169.254', 'fe80::1', 'febf::1'],
  unspecified: ['0.0.0.0', '0.1.2.3', '::', '[::]'],
  broadcast: ['255.255.255.255'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  benchmarking: ['198.18.0.1', '2001:2::1'],
  protocolAssignment: ['192.0.0.1', '2001:1ff::1'],
  sharedService: ['192.31.196.1', '192.52.193.1', '192.175.48.1', '192.0.0.9', '2001:1::1', '2620:4f:8000::1'],
  identifier: ['2001:20::1', '2001:30::1', '5f00::1'],
  discardOnly: ['100::1', '100:0:0:1::1', '192.0.0.8'],
  deprecated: ['192.88.99.1', 'fec0::1', '2001:10::1'],
  reserved: ['240.0.0.1', '4000::1', 'e000::1', '3000::1', '200::1', '100:0:0:2::1'],
  mappedIpv4: ['::ffff:8.8.8.8', '::ffff:808:808', '[::ffff:10.0.0.1]'],
  compatibleIpv4: ['::8.8.8.8', '::2'],
  translatedIpv4: ['64:ff9b::808:808', '64:ff9b:1::1', '::ffff:0:8.8.8.8'],
  sixToFour: ['2002:808:808::1'],
  teredo: ['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  isatap: ['2600::5efe:8.8.8.8', '2600::200:5efe:8.8.8.8'],
};

const messageOf = (text: string): string => {
  const verdict = classifyHost(text);
  return verdict.ok ? '' : verdict.message;
};

t.test('every reason to refuse has its texts', async (t) => {
  t.strictSame(Object.keys(refused).sort(), [...refusalCodes].sort());
  for (const code of refusalCodes) {
    for (const text of refused[code]) {
      const verdict = classifyHost(text);
      t.equal(verdict.ok ? verdict.host.name : verdict.code, code, inAscii(text.slice(0, 60)));
    }
  }
});

t.test('a refusal names the input and the valid form, in printable text of bounded length', async (t) => {
  for (const text of Object.values(refused).flat()) {
    const message = messageOf(text);
    t.match(message, /(?:Give|give|Type|Write) /, message);
    t.ok(message.length < 500, `${message.length} characters`);
    t.notMatch(message, /[^\P{C}]|[\u2028\u2029]/u, 'nothing that moves a cursor or hides');
  }
});

t.test('a URL is answered with the host in it', async (t) => {
  for (const [text, host] of [
    ['https://acme.dev/api/v1/sources/github/webhook', 'acme.dev'],
    ['HTTPS://Acme.DEV:8443/x?y#z', 'acme.dev'],
    ['https://[2600::1]:443/', '2600::1'],
    ['https://8.8.8.8/', '8.8.8.8'],
    ['acme.dev:443', 'acme.dev'],
    ['[2600:0::1]:443', '2600::1'],
    ['*.acme.dev', 'acme.dev'],
    ['8.8.8.8/32', '8.8.8.8'],
    ['https://bücher.de/', 'bücher.de'],
  ] as const) {
    t.ok(messageOf(text).endsWith(`Give only “${host}”.`), messageOf(text));
  }
  for (const text of [
    'https://10.0.0.1/',
    'localhost:80',
    '*.local',
    '*',
    'https://user:a/b@acme.dev',
    '*.*.acme.dev',
  ]) {
    t.ok(messageOf(text).endsWith('Give only a DNS name or a public IP address.'), messageOf(text));
  }
});

t.test('no message repeats a password or a query', async (t) => {
  const secret = 'hunter2';
  for (const text of [
    `https://user:${secret}@acme.dev/`,
    `https://user:a#${secret}@acme.dev/`,
    `https://user:a?${secret}@acme.dev/`,
    `https://user:a/${secret}@acme.dev/`,
    `https://${secret}.dev#a@acme.dev/`,
    `https://user:${secret}@${'a'.repeat(2_000)}`,
    `user:${secret}@acme.dev`,
    `${secret}@acme.dev`,
    `${secret} @ acme.dev`,
    `https://acme.dev/?token=${secret}`,
    `acme.dev?token=${secret}`,
    `acme.dev#${secret}`,
  ]) {
    t.notMatch(messageOf(text), secret, text.slice(0, 80));
    t.not(messageOf(text), '');
  }
});

const pieces = fc.constantFrom(
  ...[
    'acme',
    'dev',
    '.',
    '..',
    '-',
    '--',
    'xn--',
    'bcher-kva',
    'ü',
    'u\u0308',
    'ß',
    'Σ',
    '1',
    '0x',
    '08',
    '255',
    ':',
    '::',
  ],
  ...[
    '2600',
    '[',
    ']',
    '%',
    'eth0',
    '/',
    '//',
    'https:',
    '@',
    '?',
    '#',
    '*',
    '\\',
    ' ',
    '\n',
    '\u0000',
    '\u200b',
    '\u200d',
  ],
  ...[
    '\u202e',
    '\u3002',
    '\uff0e',
    '①',
    '１',
    '١',
    'ａ',
    'ﬁ',
    '\u212a',
    '\u0130',
    'נ',
    'ا',
    '\u0301',
    '·',
    '💩',
    '\ud800',
  ],
  ...[
    'localhost',
    'test',
    'com',
    'ffff',
    '8.8.8.8',
    '127.0.0.1',
    '$',
    '`',
    "'",
    '"',
    '{',
    '}',
    '_',
    '=',
    'a'.repeat(63),
  ],
);
/** Any code points, lone surrogates too; not `fc.string` with its unit `binary`, which takes a second to make its tables. */
const point = fc.oneof(fc.nat(0x7f), fc.nat(0x2fff), fc.nat(0x10ffff)).map((value) => String.fromCodePoint(value));
const strange = fc.array(point, { maxLength: 12 }).map((points) => points.join(''));

const anyText = fc.oneof(
  fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join('')),
  fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join('.')),
  strange,
  strange.map((text) => `${text}.dev`),
  fc.domain(),
  fc.ipV4(),
  fc.ipV6(),
  fc.tuple(fc.domain(), pieces).map(([host, rest]) => `https://${host}/${rest}`),
);

t.test('a host from any text is canonical, and is classified as itself again (property)', async () => {
  fc.assert(
    fc.property(anyText, fc.boolean(), (text, allowTestNames) => {
      const verdict = classifyHost(text, { allowTestNames });
      if (!verdict.ok) return verdict.message.length > 0 && verdict.message.length < 600;
      const { kind, name, display, origin } = verdict.host;
      const again = classifyHost(name, { allowTestNames });
      const shown = classifyHost(display, { allowTestNames });
      return (
        (kind === 'dns'
          ? /^[a-z0-9.-]{3,253}$/.test(name) && isIP(name) === 0
          : isIP(name) === Number(kind.slice(3))) &&
        JSON.stringify(again) === JSON.stringify(verdict) &&
        JSON.stringify(shown) === JSON.stringify(verdict) &&
        new URL(origin).origin === origin
      );
    }),
    { numRuns: 4_000 },
  );
});

t.test('an ordinary name is taken unchanged (property)', async () => {
  const label = fc.stringMatching(/^[a-z](?:[a-z0-9]{0,10}|[a-z0-9]-[a-z0-9]{1,8})$/);
  fc.assert(
    fc.property(
      fc.array(label, { minLength: 1, maxLength: 6 }),
      fc.constantFrom('dev', 'com', 'co.uk', 'museum'),
      (labels, zone) => {
        const text = [...labels, zone].join('.');
        const verdict = classifyHost(text.toUpperCase());
        return verdict.ok ? verdict.host.name === text : verdict.code === 'specialUseName';
      },
    ),
    { numRuns: 300 },
  );
});

t.test('a name may come out only if its letters came in: never another host (property)', async () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const verdict = classifyHost(text);
      if (!verdict.ok || verdict.host.kind !== 'dns' || verdict.host.name.includes('xn--')) return true;
      return text.toLowerCase().replace(/\.$/, '') === verdict.host.name;
    }),
    { numRuns: 2_000 },
  );
});
