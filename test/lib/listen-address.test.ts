import { globSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { hostAndPort, httpBase, isLoopback, plainHost } from '../../src/lib/index.ts';

t.test(
  'one address in several spellings becomes one host, with brackets in a URL and without for a socket',
  async (t) => {
    for (const [spelling, plain, shown] of [
      ['127.0.0.1', '127.0.0.1', '127.0.0.1:80'],
      [' 127.1 ', '127.0.0.1', '127.0.0.1:80'],
      ['::1', '::1', '[::1]:80'],
      ['[::1]', '::1', '[::1]:80'],
      ['0:0:0:0:0:0:0:1', '::1', '[::1]:80'],
      ['2001:DB8::0:5', '2001:db8::5', '[2001:db8::5]:80'],
      ['LocalHost', 'localhost', 'localhost:80'],
      ['0.0.0.0', '0.0.0.0', '0.0.0.0:80'],
      ['::', '::', '[::]:80'],
      ['a.example/evil', 'a.example/evil', 'a.example/evil:80'],
    ] as const) {
      t.equal(plainHost(spelling), plain, spelling);
      t.equal(hostAndPort({ host: spelling, port: 80 }), shown, spelling);
    }
  },
);

t.test('every host and port makes a URL that leads to them', async () => {
  const hosts = fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain(), fc.constantFrom('localhost', '::1', '[::1]', '127.0.0.2'));
  fc.assert(
    fc.property(hosts, fc.integer({ min: 81, max: 65_535 }), (host, port) => {
      const url = new URL(httpBase({ host, port }));
      return url.host === hostAndPort({ host, port }) && plainHost(url.hostname) === plainHost(host);
    }),
  );
});

t.test('only addresses of this machine are loopback', async (t) => {
  for (const host of ['localhost', 'LOCALHOST', '127.0.0.1', '127.0.0.2', '127.255.0.9', '::1', '[::1]', '0:0::1'])
    t.ok(isLoopback(host), host);
  for (const host of [
    '',
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '128.0.0.1',
    'localhost.evil',
    '127.0.0.1.evil',
    '::2',
    '::ffff:10.0.0.1',
  ])
    t.notOk(isLoopback(host), host);
});

/** Files whose `host:port` is not an address of a server of ours: port mappings of Compose. */
const otherFormats = ['src/deploy/files/composition.ts', 'src/cli/commands/server-status.ts'];
const joined = /(?:host|address|name)[^{}]*\}:\$\{[^}]*port\b/i;

t.test('no source file joins the host and the port of a listener by itself', async (t) => {
  for (const text of ['{host}:${port}', '{bound.host}:${bound.port}', '{host}]` : host}:${Port}'])
    t.match(text, joined, 'the rule finds this form');
  const files = globSync('{src,machines,scripts}/**/*.{ts,tsx,mjs}', { cwd: root });
  t.ok(files.length > 500, 'the sources are there');
  for (const file of files) {
    if (otherFormats.includes(file) || file === 'src/lib/listen-address.ts') continue;
    const lines = readFileSync(`${root}/${file}`, 'utf8').split('\n');
    for (const [at, line] of lines.entries())
      if (joined.test(line)) t.fail(`${file}:${at + 1} must use hostAndPort: ${line.trim()}`);
  }
});
