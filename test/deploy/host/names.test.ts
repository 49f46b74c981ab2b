import { domainToASCII, domainToUnicode } from 'node:url';
import t from 'tap';
import { classifyHost } from '../../../src/deploy/host/index.ts';
import { specialUseNames } from '../../../src/deploy/host/names.ts';
import { inAscii } from './spellings.ts';

const codeOf = (text: string, allowTestNames = false): string => {
  const verdict = classifyHost(text, { allowTestNames });
  return verdict.ok ? 'ok' : verdict.code;
};

/** IANA Special-Use Domain Names, as of 2025. */
const ianaSpecialUse = `alt 6tisch.arpa eap-noob.arpa home.arpa 10.in-addr.arpa 254.169.in-addr.arpa 16.172.in-addr.arpa
  17.172.in-addr.arpa 18.172.in-addr.arpa 19.172.in-addr.arpa 20.172.in-addr.arpa 21.172.in-addr.arpa 22.172.in-addr.arpa
  23.172.in-addr.arpa 24.172.in-addr.arpa 25.172.in-addr.arpa 26.172.in-addr.arpa 27.172.in-addr.arpa 28.172.in-addr.arpa
  29.172.in-addr.arpa 30.172.in-addr.arpa 31.172.in-addr.arpa 170.0.0.192.in-addr.arpa 171.0.0.192.in-addr.arpa
  168.192.in-addr.arpa 8.e.f.ip6.arpa 9.e.f.ip6.arpa a.e.f.ip6.arpa b.e.f.ip6.arpa ipv4only.arpa resolver.arpa service.arpa
  example example.com example.net example.org invalid local localhost onion test`.split(/\s+/);

t.test('a DNS name comes back in lower case, without its last dot', async (t) => {
  for (const [text, name] of [
    ['reviews.acme.dev', 'reviews.acme.dev'],
    ['Reviews.ACME.Dev', 'reviews.acme.dev'],
    ['reviews.acme.dev.', 'reviews.acme.dev'],
    ['a.b', 'a.b'],
    ['1.acme.dev', '1.acme.dev'],
    ['8.8.8.8.acme.dev', '8.8.8.8.acme.dev'],
    ['0x7f.dev', '0x7f.dev'],
    ['a--b.dev', 'a--b.dev'],
    ['a-b-c.co.uk', 'a-b-c.co.uk'],
    ['123.45a', '123.45a'],
    ['dead.beef', 'dead.beef'],
  ] as const) {
    t.strictSame(classifyHost(text), {
      ok: true,
      host: { kind: 'dns', name, display: name, origin: `https://${name}` },
    });
  }
});

t.test('an internationalised name is written in ASCII and shown in Unicode', async (t) => {
  for (const [text, name, display] of [
    ['bücher.de', 'xn--bcher-kva.de', 'bücher.de'],
    ['BÜCHER.DE', 'xn--bcher-kva.de', 'bücher.de'],
    ['bu\u0308cher.de', 'xn--bcher-kva.de', 'bücher.de'],
    ['XN--BCHER-KVA.de', 'xn--bcher-kva.de', 'bücher.de'],
    // Non-transitional: ß is a letter of its own, not ss.
    ['faß.de', 'xn--fa-hia.de', 'faß.de'],
    ['例え.jp', 'xn--r8jz45g.jp', '例え.jp'],
    ['xn--r8jz45g.bücher.de.', 'xn--r8jz45g.xn--bcher-kva.de', '例え.bücher.de'],
    ['ΟΔΟΣ.gr', 'xn--pxavbq.gr', 'οδοσ.gr'],
    ['col·legi.cat', 'xn--collegi-xma.cat', 'col·legi.cat'],
    ['דוגמה.co.il', domainToASCII('דוגמה.co.il'), 'דוגמה.co.il'],
  ] as const) {
    t.match(classifyHost(text), { ok: true, host: { kind: 'dns', name, display, origin: `https://${name}` } });
  }
});

t.test('Unicode that would not be typed back, or is not seen, is shown in ASCII', async (t) => {
  for (const name of ['xn--n3h.net', 'xn--ls8h.la', 'xn--example-2d7c.com', 'xn--mgba3gch31f060k.com']) {
    t.not(domainToUnicode(name), name);
    t.match(classifyHost(name), { ok: true, host: { name, display: name } });
  }
});

t.test('labels keep to RFC 1035, 1123 and 5890', async (t) => {
  const long = 'a'.repeat(63);
  const at253 = `${long}.${long}.${long}.${'a'.repeat(57)}.dev`;
  t.equal(at253.length, 253);
  for (const text of [`${long}.dev`, at253, `${at253}.`]) t.equal(codeOf(text), 'ok');
  for (const [text, code] of [
    [`${long}a.dev`, 'labelTooLong'],
    [`a${at253}`.replace('aa', 'a.'), 'tooLong'],
    ['a.'.repeat(127), 'ok'],
    ['a.'.repeat(2_000_000), 'tooLong'],
    [`${'ü'.repeat(60)}.dev`, 'labelTooLong'],
    [`${'ü'.repeat(50)}.`.repeat(5).concat('dev'), 'tooLong'],
    [`${'\u{20000}'.repeat(40)}.dev`, 'ok'],
    ['a..b', 'emptyLabel'],
    ['.acme.dev', 'emptyLabel'],
    ['acme.dev..', 'emptyLabel'],
    ['.', 'emptyLabel'],
    ['-a.dev', 'labelHyphen'],
    ['a-.dev', 'labelHyphen'],
    ['-ü.dev', 'labelHyphen'],
    ['a_b.dev', 'labelCharacter'],
    ['_dmarc.acme.dev', 'labelCharacter'],
    ['a,b.dev', 'labelCharacter'],
    ["a'b.dev", 'labelCharacter'],
    ['a`$(id)`.dev', 'labelCharacter'],
    ['{acme}.dev', 'labelCharacter'],
    ['ab--c.dev', 'reservedLabel'],
    ['r3---sn.dev', 'reservedLabel'],
    ['ü--ü.dev', 'ok'],
    ['acme', 'singleLabel'],
    ['acme.', 'singleLabel'],
    ['bücher', 'singleLabel'],
  ] as const) {
    t.equal(codeOf(text), code, text.slice(0, 80));
  }
});

t.test('a name that ends in a number is refused', async (t) => {
  for (const text of [
    'foo.1',
    'foo.0x1',
    'foo.0x',
    'foo.0X7F',
    'foo.08',
    '1.2.3.4.5',
    'foo.1.',
    'bücher.1',
    '1.2.3.4.5.',
    'a.256',
  ]) {
    t.equal(codeOf(text), 'numericName', text);
  }
});

t.test('xn-- labels are decoded and must come back the same', async (t) => {
  for (const text of ['xn--a.dev', 'xn--ab-m1t.dev', 'xn--xn---epa.com', 'xn--0.dev', 'xn--zzzzzzzz99999.dev']) {
    t.equal(codeOf(text), 'idn', text);
  }
  t.equal(codeOf('xn--ab-.dev'), 'labelHyphen', 'decodes to plain ASCII');
  t.equal(codeOf('xn--.dev'), 'labelHyphen', 'decodes to nothing');
});

t.test('every special-use name and each name below it is refused, and similar names are not', async (t) => {
  const listed = new Set(specialUseNames.map(({ domain }) => domain));
  t.strictSame(
    ianaSpecialUse.filter((domain) => !listed.has(domain)),
    [],
    'the whole registry is in the table',
  );
  for (const { domain, source } of specialUseNames) {
    for (const text of [domain, `${domain}.`, `a.${domain}`, `A.b.${domain.toUpperCase()}`]) {
      const verdict = classifyHost(text);
      t.match(verdict, { ok: false, code: 'specialUseName' }, text);
      t.ok(!verdict.ok && verdict.message.includes(`${domain} (${source})`), text);
    }
    if (!domain.endsWith('arpa')) t.equal(codeOf(`a.x${domain}`), 'ok', `a.x${domain}`);
    t.equal(codeOf(`${domain}.dev`), 'ok', `${domain}.dev`);
  }
  for (const domain of ['internal', 'lan', 'home', 'corp', 'arpa', 'in-addr.arpa', 'ip6.arpa']) {
    t.equal(codeOf(`a.${domain}`), 'specialUseName', domain);
  }
});

t.test('test names are let through when asked for, and nothing else is', async (t) => {
  for (const text of [
    'hooks.test',
    'a.b.test.',
    'stack.internal',
    'reviews.example',
    'example.com',
    'bücher.example',
  ]) {
    t.equal(codeOf(text), 'specialUseName', text);
    t.equal(codeOf(text, true), 'ok', text);
  }
  for (const text of [
    'a.localhost',
    'localhost',
    'a.local',
    'a.invalid',
    'a.onion',
    'a.alt',
    'a.home.arpa',
    'a.lan',
    'a.corp',
  ]) {
    t.equal(codeOf(text, true), 'specialUseName', text);
  }
  for (const [text, code] of [
    ['test', 'singleLabel'],
    ['10.0.0.1', 'privateUse'],
    ['127.0.0.1', 'loopback'],
    ['::1', 'loopback'],
    ['https://hooks.test/', 'urlShaped'],
    ['hooks.test:8443', 'port'],
    ['*.test', 'wildcard'],
  ] as const) {
    t.equal(codeOf(text, true), code, text);
  }
});

t.test('Unicode that stands for something else is refused', async (t) => {
  for (const [text, code] of [
    ['①.com', 'symbol'],
    ['１２７.０.０.１', 'legacyIpv4'],
    ['١٢٧.٠.٠.١', 'legacyIpv4'],
    ['acme.१', 'numericName'],
    ['１.com', 'notCanonical'],
    ['ａcme.dev', 'notCanonical'],
    ['ｘn--bcher-kva.de', 'reservedLabel'],
    ['xn\uff0d\uff0dbcher-kva.de', 'symbol'],
    ['ﬁn.dev', 'notCanonical'],
    ['\u212aelvin.dev', 'notCanonical'],
    ['\u017fecure.dev', 'notCanonical'],
    ['\u0130stanbul.dev', 'notCanonical'],
    ['ẞ.de', 'notCanonical'],
    ['ｶﾀｶﾅ.jp', 'notCanonical'],
    ['acme。dev', 'lookalikeDot'],
    ['acme．dev', 'lookalikeDot'],
    ['acme｡dev', 'lookalikeDot'],
    ['a\u00adcme.dev', 'invisible'],
    ['a\u200bcme.dev', 'invisible'],
    ['a\u200ccme.dev', 'invisible'],
    ['a\u2060cme.dev', 'invisible'],
    ['\u202eved.emca', 'invisible'],
    ['acme\u200f.dev', 'invisible'],
    ['acme.dev\ufe0f', 'invisible'],
    ['a\u3164b.dev', 'invisible'],
    ['\ufeffacme.dev', 'whitespace'],
    ['acme\u00a0.dev', 'whitespace'],
    ['acme.dev\u3000', 'whitespace'],
    ['acme.dev\u2028', 'whitespace'],
    ['acme\u0000.dev', 'control'],
    ['acme\u0085.dev', 'control'],
    ['acme\u2044path.dev', 'symbol'],
    ['acme／path.dev', 'symbol'],
    ['acme：443', 'symbol'],
    ['℀.dev', 'symbol'],
    ['☃.net', 'symbol'],
    ['💩.la', 'symbol'],
    ['a·b.dev', 'symbol'],
    ['\ud800.dev', 'symbol'],
    ['1נ.com', 'ok'],
    ['נ1a.com', 'idn'],
    ['\u0301a.dev', 'idn'],
  ] as const) {
    t.equal(codeOf(text), code, inAscii(text));
  }
});

t.test('no character above ASCII is taken for ASCII (every one up to U+1FFFF)', async (t) => {
  const points = Array.from({ length: 0x1ff80 }, (_, at) => at + 0x80).filter((at) => at < 0xd800 || at > 0xdfff);
  const mapped = points
    .map((point) => `a${String.fromCodePoint(point)}b.dev`)
    .filter((text) => {
      const ascii = domainToASCII(text);
      return ascii !== '' && !ascii.startsWith('xn--');
    });
  t.ok(mapped.length > 1_000, `${mapped.length} characters that the conversion turns into ASCII or drops`);
  t.strictSame(
    mapped.filter((text) => classifyHost(text).ok),
    [],
  );
});
