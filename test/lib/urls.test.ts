import fc from 'fast-check';
import t from 'tap';
import { isHttpUrl, maskedAddress, passwordIn, withoutUserInfo } from '../../src/lib/index.ts';

t.test('an address is shown without its user name and password, whether it is valid or not', async (t) => {
  for (const [address, shown] of [
    ['https://u:SECRET@h.example/v1', 'https://…:…@h.example/v1'],
    ['https://SECRET@h.example/v1', 'https://…@h.example/v1'],
    ['http:/u:SECRET@h.example/', 'http://…:…@h.example/'],
    ['postgres://u:SECRET@h/d', 'postgres://…:…@h/d'],
    ['postgres:/u:SECRET@h/d', 'postgres:/…@h/d'],
    ['http://u:SECRET@h:99999/v1', 'http://…@h:99999/v1'],
    ['http://u:SEC@RET@h e/v1', 'http://…@h e/v1'],
    ['htp:/u:SECRET@h', 'htp:/…@h'],
  ] as const)
    t.equal(maskedAddress(address), shown);
  for (const text of ['https://h.example/v1?x=1', 'ada@example.com', 'run a:b @c', '', 'file:///srv/a'])
    t.equal(maskedAddress(text), text, 'positive control: other texts stay');
  t.equal(withoutUserInfo('u:SECRET@h'), 'u:…@h');
});

t.test('the password of an address is decoded, and an address with a malformed one is not an http URL', async (t) => {
  for (const [address, password, isUsable] of [
    ['http://u:p%40ss@h/v1', 'p@ss', true],
    ['https://h/v1', '', true],
    ['http://u:100%@h/v1', '100%', false],
    ['ftp://u:SECRET@h', 'SECRET', false],
    ['u:SECRET@h:1:2', '', false],
  ] as const)
    t.same([passwordIn(address), isHttpUrl(address)], [password, isUsable], address);
});

t.test('no spelling of an address shows its password', async () => {
  const odd = fc.string({ unit: fc.constantFrom('a', ':', '/', '@', '[', '%', ' ', '?', '#'), maxLength: 12 });
  fc.assert(
    fc.property(
      fc.constantFrom('http', 'postgres', 'ws'),
      fc.constantFrom(':/', '://', ':///'),
      odd,
      (scheme, slashes, end) => !maskedAddress(`${scheme}${slashes}u:SECRET@h${end}`).includes('SECRET'),
    ),
    { seed: 20_261_128 },
  );
});
