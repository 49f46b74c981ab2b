/** The document of the page: its manifest, for phones that deliver Web Push to installed pages only, and a browser without scripts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { contentSecurityPolicy } from '../../src/http/static-files.ts';

const source = join(import.meta.dirname, '..', '..', 'src', 'ui');
const publicFile = (address: string) => readFileSync(join(source, 'public', address));
const page = readFileSync(join(source, 'index.html'), 'utf8');
const hrefOf = (rel: string) => new RegExp(`<link rel="${rel}" href="(/assets/[^"]+)"`).exec(page)?.[1] ?? '';

/** Width and height, from the header of a PNG. */
function sizeOf(address: string): string {
  const bytes = publicFile(address);
  t.equal(bytes.subarray(1, 4).toString(), 'PNG', address);
  return `${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`;
}

t.test('the page names its manifest and icons, and its policy lets them load', async (t) => {
  const manifest = JSON.parse(publicFile(hrefOf('manifest')).toString());
  t.match(manifest, { id: '/', scope: '/', start_url: '/', display: 'standalone', name: 'Oratorio' });
  for (const { src, sizes, type } of manifest.icons) {
    t.equal(type, 'image/png');
    t.equal(sizeOf(src), sizes, src);
  }
  const purposes = manifest.icons.map(
    ({ sizes, purpose }: { sizes: string; purpose: string }) => `${sizes} ${purpose}`,
  );
  t.strictSame(purposes, ['512x512 any', '512x512 maskable'], 'a browser shrinks the icon');
  t.equal(sizeOf(hrefOf('apple-touch-icon')), '180x180');
  t.match(contentSecurityPolicy, /; manifest-src 'self';/);
});

t.test('without JavaScript the page says so, and where the same facts are', async (t) => {
  const [, sentence = ''] = /<noscript>([^<]+)<\/noscript>/.exec(page) ?? [];
  t.match(sentence, /needs JavaScript/);
  t.match(sentence, /oratorio list/);
});
