/** Sends raw requests to each library that loads here. `docs/design.md` shows the table. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { text } from '../../src/http/index.ts';
import { type Adapter, exchange, RawClient, rawRequest, start } from './support.ts';

const get = (headers = 'Host: 127.0.0.1\r\n') => `GET /x HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`;
const post = (headers: string, body: string) =>
  `POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n${headers}\r\n${body}`;
const chunked = 'Transfer-Encoding: chunked\r\n';

/** Statuses of uWebSockets.js 20.57.0, of the build for older systems, and of `node:http`. */
type Row = readonly [title: string, request: string, status: readonly [newer: number, older: number, node: number]];

const rows: readonly Row[] = [
  ['a plain request', get(), [200, 200, 200]],
  ['no `Host`', get(''), [400, 400, 403]],
  ['two `Host` fields', get('Host: 127.0.0.1\r\nHost: 127.0.0.1\r\n'), [400, 400, 400]],
  ['HTTP/1.0', 'GET /x HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n', [505, 505, 200]],
  [
    'an absolute target',
    `GET http://127.0.0.1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`,
    [505, 505, 200],
  ],
  ['a chunked body', post(chunked, '2\r\nhi\r\n0\r\n\r\n'), [200, 200, 200]],
  ['a chunked body with a trailer', post(chunked, '2\r\nhi\r\n0\r\nX-End: 1\r\n\r\n'), [505, 505, 200]],
  ['two equal `Content-Length`', post('Content-Length: 2\r\nContent-Length: 2\r\n', 'hi'), [400, 400, 400]],
  ['two different `Content-Length`', post('Content-Length: 2\r\nContent-Length: 3\r\n', 'hi!'), [400, 400, 400]],
  [
    '`Content-Length` and `Transfer-Encoding`',
    post(`Content-Length: 2\r\n${chunked}`, '2\r\nhi\r\n0\r\n\r\n'),
    [400, 400, 400],
  ],
];

/** Breaks of a request line in two pieces, after so many bytes. */
const breaks = Array.from({ length: 16 }, (_, index) => index + 1);

/** Status of a request that is sent in pieces. The server has read a piece when it has answered a later request of another client. */
async function statusOf(t: Test, port: number, pieces: readonly string[]): Promise<number> {
  const client = await RawClient.connect(t, port);
  for (const piece of pieces) {
    client.send(piece);
    if (piece !== pieces.at(-1)) await exchange(port, rawRequest('GET', '/x'));
  }
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(await client.untilClosed())?.[1] ?? 0);
}

const libraries: readonly (readonly [Adapter, RegExp, column: 0 | 1 | 2])[] = [
  ['uws', /20\.57/, 0],
  ['uws-old', /uws-pack/, 1],
  ['node', /node:http/, 2],
];

for (const [adapter, library, column] of libraries) {
  t.test(`${adapter}: raw requests get the statuses of the table`, async (t) => {
    const route = (method: 'GET' | 'POST') => ({ method, path: '/x', handler: () => text(200, 'fine') }) as const;
    const { port, server } = await start(t, adapter, { routes: [route('GET'), route('POST')] });
    // An older glibc does not load the newer build: this system then serves with the other.
    const found = column === 0 && !library.test(server.library) ? 1 : column;
    for (const [title, request, status] of rows) t.equal(await statusOf(t, port, [request]), status[found], title);
    const broken = await Promise.all(breaks.map((at) => statusOf(t, port, [get().slice(0, at), get().slice(at)])));
    if (found === 1) t.ok(broken.includes(505), 'the older build refuses some breaks');
    else t.strictSame(new Set(broken), new Set([200]));
  });
}

t.test('docs/design.md has the table', async (t) => {
  const page = readFileSync(join(root, 'docs/design.md'), 'utf8');
  for (const [title, , status] of rows) t.ok(page.includes(`| ${title} | ${status.join(' | ')} |`), title);
});
