import fc from 'fast-check';
import t from 'tap';
import { isForeign } from '../../src/http/hosts.ts';
import { knownHosts, loopbackHosts } from '../../src/http/index.ts';

const allowed = loopbackHosts();

t.test('only loopback names with any port are accepted', async (t) => {
  const names = fc.constantFrom('localhost', '127.0.0.1', '127.0.0.2', '127.255.255.254', '[::1]');
  fc.assert(
    fc.property(
      names,
      fc.integer({ min: 0, max: 65_535 }),
      (name, port) => allowed(name) && allowed(`${name}:${port}`),
    ),
  );
  for (const host of [
    '',
    'localhost:',
    'localhost:80:80',
    'localhost:123456',
    'localhost.evil.example',
    'evil.example',
    'evil.example:80#localhost',
    'localhost@evil.example',
    '127.0.0.1.evil.example',
    '127.1',
    '128.0.0.1',
    '0.0.0.0',
    '::1',
    '[::1',
    '[::1].evil',
    ' localhost',
    'localhost\n',
    'localhost\nevil',
  ]) {
    t.notOk(allowed(host), JSON.stringify(host));
  }
});

t.test('the URL parser also reads each accepted name as a loopback name', async (t) => {
  const pieces = fc.constantFrom(
    'localhost',
    '127.0.0.1',
    '[::1]',
    '.',
    ':',
    '80',
    '@',
    'evil',
    '/',
    '#',
    '[',
    ']',
    ' ',
    '%',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(pieces, { maxLength: 5 }).map((parts) => parts.join('')),
      ),
      (host) => {
        if (!allowed(host.toLowerCase())) return true;
        if (Number(/:(\d+)$/.exec(host)?.[1] ?? 0) > 65_535) return true;
        const { hostname } = new URL(`http://${host}/`);
        return hostname.startsWith('127.') || ['localhost', 'localhost.', '[::1]'].includes(hostname);
      },
    ),
    { numRuns: 2_000 },
  );
  t.pass('held');
});

t.test('a request is foreign unless the browser or its origin names the same host', async (t) => {
  const host = '127.0.0.1:4000';
  t.notOk(isForeign(host, undefined, undefined), 'no browser');
  t.notOk(isForeign(host, 'same-origin', 'http://gateway.example'), 'the browser says it itself');
  t.notOk(isForeign(host, 'none', undefined));
  t.ok(isForeign(host, 'cross-site', `http://${host}`));
  t.ok(isForeign(host, 'same-site', undefined), 'another port of this machine');
  t.ok(isForeign(host, 'anything new', undefined));
  t.notOk(isForeign(host, undefined, `http://${host}`));
  t.notOk(isForeign('Example.org', undefined, 'HTTPS://example.ORG'));
  for (const origin of [
    'null',
    '',
    'http://127.0.0.1',
    'http://127.0.0.1:4001',
    `ftp://${host}`,
    `http://x@${host}`,
    `http://${host}/`,
  ]) {
    t.ok(isForeign(host, undefined, origin), origin);
  }
});

t.test('accepted hosts are loopback, listed names, and plain addresses where other machines can connect', async (t) => {
  const own = knownHosts({ isPublic: false, names: ['Box.Example', 'proxy.internal.'] });
  const open = knownHosts({ isPublic: true, names: ['box.example'] });
  for (const host of ['localhost', 'localhost.', 'localhost:80', '127.0.0.1', '127.8.9.1:8080', '[::1]', '[::1]:1']) {
    t.ok(own(host) && open(host), host);
  }
  for (const host of ['box.example', 'box.example.:443', 'proxy.internal']) t.ok(own(host), host);
  for (const host of ['192.168.0.2', '10.1.2.3:8080', '255.255.255.255', '[2001:db8::1]:443', '[::ffff:1.2.3.4]']) {
    t.notOk(own(host), host);
    t.ok(open(host), host);
  }
  for (const host of [
    '',
    '.',
    ':80',
    'localhost:',
    'localhost..',
    'localhost:123456',
    'localhost, box.example',
    'a@localhost',
    'localhost/',
    'localhost#',
    'evil.example',
    'sub.box.example',
    '256.1.1.1',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.4.evil',
    '127.0.0.1.evil.example',
    '::1',
    '[::1',
    '[::zz]',
    '[]',
    '[1.2.3.4]',
    'localhost\n',
  ]) {
    t.notOk(own(host), JSON.stringify(host));
    t.notOk(open(host), JSON.stringify(host));
  }
});
