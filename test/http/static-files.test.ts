import { symlinkSync } from 'node:fs';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import t from 'tap';
import { staticFiles } from '../../src/http/index.ts';
import { exchange, rawRequest, start } from './support.ts';

const script = `export const text = ${JSON.stringify('x'.repeat(5_000))};\n`;

for (const adapter of ['uws', 'node'] as const) {
  t.test(`a built page on ${adapter}`, async (t) => {
    const directory = t.testdir({
      'index.html': '<!doctype html><title>x</title>',
      'not a url.txt': 'spaced',
      assets: { 'index-B3xT9k2Q.js': script, 'plain.css': 'a{}', 'pic.png': 'png', 'app-settings.js': 'x' },
      secret: 'type unknown',
    });
    symlinkSync('/etc/passwd', `${directory}/passwd`);
    const { url, port } = await start(t, adapter, { routes: staticFiles(directory) });
    const get = (path: string, headers: Record<string, string> = {}) => fetch(url + path, { headers });

    const page = await get('/');
    t.equal(await page.text(), '<!doctype html><title>x</title>');
    t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
    t.match(
      page.headers.get('content-security-policy'),
      /^default-src 'none'; script-src 'self';.* frame-ancestors 'none'; require-trusted-types-for 'script'$/,
    );
    t.equal(page.headers.get('x-content-type-options'), 'nosniff');
    t.equal(page.headers.get('referrer-policy'), 'no-referrer');
    t.equal(page.headers.get('cache-control'), 'no-cache');
    t.equal((await get('/index.html')).status, 200);

    const asset = await get('/assets/index-B3xT9k2Q.js', { 'accept-encoding': 'identity' });
    t.equal(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    t.equal(asset.headers.get('content-type'), 'text/javascript; charset=utf-8');
    t.equal(await asset.text(), script);
    t.equal((await get('/assets/plain.css')).headers.get('content-type'), 'text/css; charset=utf-8');
    t.equal((await get('/assets/plain.css')).headers.get('cache-control'), 'no-cache');
    t.equal((await get('/assets/app-settings.js')).headers.get('cache-control'), 'no-cache', 'a word is no hash');
    t.equal((await get('/secret')).headers.get('content-type'), 'application/octet-stream');
    t.equal(await (await get('/not%20a%20url.txt')).text(), 'spaced');

    const etag = page.headers.get('etag') ?? '';
    const unchanged = await get('/', { 'if-none-match': etag });
    t.equal(unchanged.status, 304);
    t.equal(unchanged.headers.get('etag'), etag);
    t.equal((await get('/', { 'if-none-match': '"other"' })).status, 200);

    for (const [accept, coding, decode] of [
      ['gzip', 'gzip', gunzipSync],
      ['gzip, br', 'br', brotliDecompressSync],
      ['br;q=0, gzip;q=0.5', 'gzip', gunzipSync],
    ] as const) {
      const raw = await exchange(port, rawRequest('GET', '/assets/index-B3xT9k2Q.js', { 'Accept-Encoding': accept }));
      t.match(raw.head, new RegExp(`content-encoding: ${coding}`, 'i'));
      t.equal(decode(Buffer.from(raw.body, 'latin1')).toString(), script);
    }
    t.notMatch((await exchange(port, rawRequest('GET', '/assets/index-B3xT9k2Q.js'))).head, /content-encoding/i);

    for (const path of [
      '/../package.json',
      '/%2e%2e/package.json',
      '/assets/../secret',
      '/assets%2fplain.css',
      '/passwd',
      '/assets',
      '/assets/',
      '//secret',
      '/index.html%00',
    ]) {
      t.equal((await exchange(port, rawRequest('GET', path))).status, 404, path);
    }
  });
}

t.test('a directory that is not there is an error at start', async (t) => {
  t.throws(() => staticFiles('/does/not/exist'), { code: 'ENOENT' });
});
