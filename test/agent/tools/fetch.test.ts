import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createRawServer } from 'node:net';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import type { Resolver } from '../../../src/agent/tools/web/destination.ts';
import { redirectTarget } from '../../../src/agent/tools/web/follow.ts';
import { send } from '../../../src/agent/tools/web/http.ts';
import { createWebFetch, type WebFetchSettings } from '../../../src/agent/tools/web/web-fetch.ts';
import { outgoingFetch } from '../../../src/http/index.ts';
import { call, problemOf, serve } from './run-tool.ts';

/** A public address without an allocation (in 2000::/3): no test reaches a host there. */
const unreachable = '2a10:ffff:ffff:ffff::1';

/** Names as a test wants them. Every question is remembered. */
function names(table: Readonly<Record<string, readonly string[]>>): Resolver & { readonly asked: string[] } {
  const asked: string[] = [];
  const resolve: Resolver = async (hostname) => {
    asked.push(hostname);
    const found = table[hostname];
    if (!found) throw new Error(`ENOTFOUND ${hostname}`);
    return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  };
  return Object.assign(resolve, { asked });
}

function webFetch(overrides: Partial<WebFetchSettings> = {}) {
  return createWebFetch({
    maxBytes: 100_000,
    maxChars: 5_000,
    timeoutMs: 60_000,
    allowedHosts: [],
    secrets: ['sk-0123456789abcdef'],
    resolve: names({}),
    ...overrides,
  });
}

/** Fetches from `answer`, through an entry in `AllowedHosts`. */
async function fetched(
  t: Test,
  answer: RequestListener,
  args: Record<string, unknown> = {},
  settings: Partial<WebFetchSettings> = {},
) {
  const host = await serve(t, answer);
  const result = await call(webFetch({ allowedHosts: [host], ...settings }), { url: `http://${host}/`, ...args });
  return { host, ...result };
}

const answerWith =
  (body: string | Buffer, headers: Record<string, string> = {}, status = 200): RequestListener =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'text/plain', ...headers });
    response.end(body);
  };

const html = { 'content-type': 'text/html; charset=utf-8' };

/** A server that must not be talked to. */
async function innerServer(t: Test): Promise<{ host: string; port: string; requests: () => number }> {
  let count = 0;
  const host = await serve(t, (_, response) => {
    count++;
    response.end('INNER SECRET');
  });
  return { host, port: host.split(':')[1] ?? '', requests: () => count };
}

t.test('a page becomes Markdown, with its address, status and title before it', async (t) => {
  const page = `<!doctype html><html><head><title>  A &amp; B </title><style>p{}</style></head><body>
    <script>alert(1)</script><h1>Hello</h1><p>See <a href="/x?y=1">this <b>link</b></a>, not <a href="javascript:x()">that</a>.</p>
    <table><tr><th>Name</th><th>Size</th></tr><tr><td>a|b</td><td>1</td></tr></table>
    <pre><code>let a = 1;\n  b();</code></pre><img src="data:image/png;base64,AAAA" alt="A chart"></body></html>`;
  const { host, text, isError } = await fetched(t, answerWith(page, html));
  t.equal(isError, false);
  const expected = [
    `URL: http://${host}/`,
    'Status: 200 OK',
    'Title: A & B',
    '',
    '# Hello',
    '',
    `See [this **link**](http://${host}/x?y=1), not that.`,
    '',
    '| Name | Size |',
    '| --- | --- |',
    '| a\\|b | 1 |',
    '',
    '```',
    'let a = 1;',
    '  b();',
    '```',
    '',
    'A chart',
  ];
  t.strictSame(text.split('\n'), expected);
});

t.test('as text, or as its source, when asked', async (t) => {
  const page = '<h1>Hello</h1><p>a_b <a href="/x">c</a> <em>d</em></p>';
  t.match((await fetched(t, answerWith(page, html), { extractMode: 'text' })).text, /\n\nHello\n\na_b c d$/);
  t.ok((await fetched(t, answerWith(page, html), { mode: 'raw' })).text.endsWith(page));
});

t.test('text, JSON and XML are shown unchanged', async (t) => {
  for (const type of [
    'text/plain',
    'application/json',
    'application/problem+json',
    'application/xml',
    'text/csv',
    '',
  ]) {
    const answer: RequestListener = (_, response) => {
      if (type !== '') response.setHeader('content-type', type);
      response.end('{"a": "<b>"}');
    };
    t.match((await fetched(t, answer)).text, /\n\n\{"a": "<b>"\}$/, type);
  }
});

t.test('a response that is not text is refused with its type and size, unread', async (t) => {
  const pdf = await fetched(t, answerWith('%PDF', { 'content-type': 'application/pdf', 'content-length': '4' }));
  t.match(pdf.text, /^Error: WebFetch: .*application\/pdf \(4 bytes\)/);
  t.equal(pdf.isError, true);
  const unnamed: RequestListener = (_, response) => response.end(Buffer.from([1, 0, 2]));
  t.match((await fetched(t, unnamed)).text, /no text type/);
});

t.test('the charset comes from the header, the page or the byte order mark; an unknown one is UTF-8', async (t) => {
  const umlaut = Buffer.from('gr\xfc\xdfe', 'latin1');
  t.match((await fetched(t, answerWith(umlaut, { 'content-type': 'text/plain; charset="ISO-8859-1"' }))).text, /grüße/);
  const meta = Buffer.concat([Buffer.from('<meta charset=windows-1252><p>'), umlaut]);
  t.match((await fetched(t, answerWith(meta, { 'content-type': 'text/html' }))).text, /grüße/);
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('grüße', 'utf16le')]);
  t.match((await fetched(t, answerWith(utf16))).text, /\n\ngrüße$/);
  t.match((await fetched(t, answerWith('grüße', { 'content-type': 'text/plain; charset=klingon' }))).text, /grüße/);
});

t.test('a long page is cut, and says how to get more', async (t) => {
  const { text } = await fetched(t, answerWith('x'.repeat(9_000)));
  t.match(text, /\[Showing characters 1-5000 of 9000\. Fetch a more specific address for the rest\.\]$/);
  const short = await fetched(t, answerWith('x'.repeat(9_000)), { maxChars: 600 });
  t.match(short.text, /\[Showing characters 1-600 of 9000\. Ask with a larger maxChars \(at most 5000\) for more\.\]$/);
});

t.test('an error of the server is returned with the beginning of its body', async (t) => {
  const { text, isError } = await fetched(t, answerWith('no such thing '.repeat(500), {}, 404));
  t.match(
    text,
    /^Error: WebFetch: the server answered 404 Not Found\.\nURL: .*\nStatus: 404 Not Found\n\nno such thing/,
  );
  t.ok(text.length < 1_500);
  t.equal(isError, true);
});

t.test('an empty response is reported as empty', async (t) => {
  const { text, isError } = await fetched(t, answerWith('', {}, 204));
  t.match(text, /Status: 204 No Content\n\n\(no content\)$/);
  t.equal(isError, false);
});

t.test('sends no cookies, no credentials, and says who asks', async (t) => {
  let headers: IncomingMessage['headers'] = {};
  await fetched(t, (request, response) => {
    headers = request.headers;
    response.end();
  });
  t.match(headers['user-agent'], /^oratorio\//);
  t.equal(headers['accept-encoding'], 'gzip, br');
  t.strictSame([headers.cookie, headers.authorization, headers.referer], [undefined, undefined, undefined]);
});

t.test('only http and https, without credentials, and no secret of ours', async (t) => {
  const tool = webFetch();
  const cases: [string, RegExp][] = [
    ['file:///etc/passwd', /refused: only http and https/],
    ['ftp://example.com/', /refused: only http and https/],
    ['data:text/plain,x', /refused: only http and https/],
    ['http://user:pass@example.com/', /refused: a URL with a user name or password/],
    ['http://user@example.com/', /refused: a URL with a user name/],
    ['not a url', /not a valid URL/],
    ['http://example.com/?key=sk-0123456789abcdef', /refused: the address holds a secret/],
    ['http://example.com/?key=sk%2D0123456789abcdef', /refused: the address holds a secret/],
  ];
  for (const [url, expected] of cases) {
    const { text, isError } = await call(tool, { url });
    t.match(text, expected, url);
    t.equal(isError, true);
    t.notMatch(text, /abcdef|pass@/);
  }
  t.match(problemOf(tool, { url: '' }), /url must be an http or https URL/);
  t.match(problemOf(tool, {}), /url is missing/);
  t.match(problemOf(tool, { url: 'http://x', extractMode: 'pdf' }), /extractMode must be/);
});

t.test('no spelling of a private address gets through', async (t) => {
  const { port, requests } = await innerServer(t);
  const resolve = names({
    'inner.example': ['127.0.0.1'],
    'mixed.example': [unreachable, '10.0.0.1'],
    'empty.example': [],
  });
  const hosts = [
    ...[
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '0x7f.1',
      '127.0.0.1.',
      '127.0.0.2',
      '0.0.0.0',
      '0',
    ],
    ...[
      '[::1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
      '[::127.0.0.1]',
    ],
    ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'inner.example', 'INNER.example.', 'mixed.example'],
    ...[
      '169.254.169.254',
      '[fd00:ec2::254]',
      '10.0.0.1',
      '192.168.1.1',
      '172.16.0.1',
      '100.64.0.1',
      '[fe80::1]',
      '224.0.0.1',
    ],
    ...['１２７.0.0.1', '127。0。0。1', '①②⑦.0.0.1'],
  ];
  for (const host of hosts) {
    const { text, isError } = await call(webFetch({ resolve }), { url: `http://${host}:${port}/` });
    t.match(text, /^Error: refused: .* is not on the public internet\. .*AllowedHosts/, host);
    t.equal(isError, true);
  }
  t.equal(requests(), 0);
  t.match((await call(webFetch({ resolve }), { url: 'http://empty.example/' })).text, /has no address/);
  t.match(
    (await call(webFetch({ resolve }), { url: 'http://absent.example/' })).text,
    /absent\.example cannot be resolved/,
  );
});

t.test('a name is asked for once: a second, private answer is never seen', async (t) => {
  const { port, requests } = await innerServer(t);
  let asked = 0;
  const rebinding: Resolver = async () =>
    asked++ === 0 ? [{ address: unreachable, family: 6 }] : [{ address: '127.0.0.1', family: 4 }];
  const tool = webFetch({ resolve: rebinding, timeoutMs: 1_000 });
  const { text } = await call(tool, { url: `http://rebind.example:${port}/` });
  t.match(text, /^Error: WebFetch: (rebind\.example:\d+ cannot be reached|it took longer)/);
  t.equal(asked, 1);
  t.equal(requests(), 0);
});

t.test('the connection goes to the address that was judged, under the name that was asked for', async (t) => {
  let seen: string | undefined;
  const host = await serve(t, (request, response) => {
    seen = request.headers.host;
    response.end('x');
  });
  const port = host.split(':')[1];
  const url = new URL(`http://no-such-name.invalid:${port}/`);
  const response = await send({ url, addresses: [{ address: '127.0.0.1', family: 4 }] }, new AbortController().signal);
  response.resume();
  t.equal(response.statusCode, 200);
  t.equal(seen, `no-such-name.invalid:${port}`);
});

t.test('hosts that the user allows may be private: by name, by name and port, as IPv6', async (t) => {
  const host = await serve(t, answerWith('inside'));
  const port = host.split(':')[1];
  const resolve = names({ 'docs.internal': ['127.0.0.1'] });
  const get = async (url: string, allowedHosts: string[]) =>
    (await call(webFetch({ allowedHosts, resolve }), { url })).text;
  t.match(await get(`http://docs.internal:${port}/`, ['Docs.Internal']), /inside$/);
  t.match(await get(`http://docs.internal:${port}/`, [`docs.internal:${port}`]), /inside$/);
  t.match(await get(`http://docs.internal:${port}/`, ['docs.internal:1']), /refused/);
  t.match(await get(`http://docs.internal:${port}/`, ['internal', '127.0.0.1']), /refused/);
  t.match(await get(`http://127.0.0.1:${port}/`, ['docs.internal']), /refused/);
  for (const entry of ['::1', '[::1]', '[::1]:9']) {
    const { text } = await call(webFetch({ allowedHosts: [entry], resolve }), { url: 'http://[::1]:9/' });
    t.notMatch(text, /refused/, entry);
  }
  t.match(await get('http://[::1]:9/', ['[::1]:8']), /refused/);
});

t.test('no proxy of the environment is used', async (t) => {
  const proxy = await innerServer(t);
  const host = await serve(t, answerWith('direct'));
  const variables = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'];
  const before = variables.map((name) => process.env[name]);
  for (const name of variables) process.env[name] = `http://${proxy.host}`;
  t.teardown(() => {
    for (const [at, name] of variables.entries()) {
      if (before[at] === undefined) delete process.env[name];
      else process.env[name] = before[at];
    }
  });
  const at = `docs.internal:${host.split(':')[1]}`;
  const tool = webFetch({ allowedHosts: [at], resolve: names({ 'docs.internal': ['127.0.0.1'] }) });
  t.match(await call(tool, { url: `http://${at}/` }), { isError: false, text: /direct$/ });
  t.equal(proxy.requests(), 0);
  t.match(
    await (await outgoingFetch(`http://${at}/`)).text(),
    'INNER SECRET',
    'positive control: other requests use the proxy',
  );
});

t.test('redirects are followed by hand, each one judged like the first', async (t) => {
  const { host: inner, requests } = await innerServer(t);
  const targets: Record<string, string> = {
    '/ok': '/end',
    '/inner': `http://${inner}/`,
    '/metadata': 'http://169.254.169.254/latest/meta-data/',
    '/name': 'http://inner.example/',
    '/file': 'file:///etc/passwd',
    '/user': '//user:pass@example.com/',
    '/broken': 'http://[',
    '/loop': '/loop',
  };
  const host = await serve(t, (request, response) => {
    const location = targets[request.url ?? ''];
    response.writeHead(location ? 302 : 200, { 'content-type': 'text/plain', ...(location && { location }) });
    response.end('the end');
  });
  const resolve = names({ 'inner.example': ['127.0.0.1'] });
  const get = async (path: string) =>
    (await call(webFetch({ allowedHosts: [host], resolve }), { url: `http://${host}${path}` })).text;
  t.match(await get('/ok'), new RegExp(`^URL: http://${host}/end\n.*\n\nthe end$`));
  t.match(await get('/inner'), /refused: 127\.0\.0\.1 is not on the public internet/);
  t.match(await get('/metadata'), /refused: 169\.254\.169\.254 is not/);
  t.match(await get('/name'), /refused: inner\.example is not/);
  t.match(await get('/file'), /refused: only http and https/);
  t.match(await get('/user'), /refused: a URL with a user name/);
  t.match(await get('/broken'), /not a valid URL/);
  t.match(await get('/loop'), /more than 5 redirects/);
  t.equal(requests(), 0);
});

t.test('a redirect may not leave https', async (t) => {
  const base = new URL('https://example.com/a/b');
  t.throws(() => redirectTarget(base, 'http://example.com/'), { isRefusal: true, message: /from https to http/ });
  t.equal(redirectTarget(base, '../c').href, 'https://example.com/c');
  t.equal(redirectTarget(base, '//other.example/').href, 'https://other.example/');
  t.equal(redirectTarget(new URL('http://example.com/'), 'https://example.com/').href, 'https://example.com/');
});

t.test('with TLS, too, the server receives the host name', async (t) => {
  const hello = Promise.withResolvers<string>();
  const server = createRawServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (bytes) => {
      hello.resolve(bytes.toString('latin1'));
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const url = `https://inside.example:${(server.address() as AddressInfo).port}/`;
  const resolve = names({ 'inside.example': ['127.0.0.1'] });
  const { text } = await call(webFetch({ allowedHosts: ['inside.example'], resolve }), { url });
  t.match(text, /inside\.example:\d+ cannot be reached/);
  t.match(await hello.promise, /inside\.example/);
});

t.test('a body is cut at the limit, as sent and decompressed', async (t) => {
  const plain = await fetched(t, answerWith('x'.repeat(300_000)), { maxChars: 500 });
  t.match(plain.text, /\[Only the first 98 KB of the page were read\.\]/);
  t.match(plain.text, /1-500 of 100000/);
  const large = Buffer.alloc(50_000_000, 'x');
  const bombs: [string, Buffer][] = [
    ['gzip', gzipSync(large)],
    ['br', brotliCompressSync(large, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })],
  ];
  for (const [encoding, body] of bombs) {
    const { text, isError } = await fetched(t, answerWith(body, { 'content-encoding': encoding }));
    t.match(text, /of 100000\. /, encoding);
    t.equal(isError, false);
  }
});

t.test('compressed answers of ordinary size are read whole', async (t) => {
  const body = 'hello '.repeat(500);
  for (const [encoding, bytes] of [
    ['gzip', gzipSync(body)],
    ['x-gzip', gzipSync(body)],
    ['br', brotliCompressSync(body)],
  ] as const) {
    t.ok((await fetched(t, answerWith(bytes, { 'content-encoding': encoding }))).text.endsWith(body), encoding);
  }
});

t.test('a body that cannot be decompressed is an error', async (t) => {
  const damaged = await fetched(t, answerWith('not gzip at all', { 'content-encoding': 'gzip' }));
  t.match(damaged.text, /^Error: WebFetch: the answer broke off or is damaged/);
  const unknown = await fetched(t, answerWith('x', { 'content-encoding': 'zstd' }));
  t.match(unknown.text, /encoded in a way that cannot be read \(zstd\)/);
});

t.test('an endless body ends at the limit, and so does its connection', async (t) => {
  let closed: Promise<unknown> = Promise.resolve();
  const endless: RequestListener = (_, response) => {
    closed = once(response, 'close');
    response.writeHead(200, { 'content-type': 'text/plain' });
    const more = (): void => {
      while (!response.destroyed && response.write('x'.repeat(10_000)));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  };
  const { text } = await fetched(t, endless);
  t.match(text, /Only the first 98 KB/);
  await closed;
  t.pass('the server saw the end');
});

/** Begins an answer and then drips; resolves when the client has gone. */
function dripping() {
  const gone = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const answer = (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    const timer = setInterval(() => {
      response.write('.');
      begun.resolve();
    }, 20);
    response.once('close', () => {
      clearInterval(timer);
      gone.resolve();
    });
  };
  return { answer, gone: gone.promise, begun: begun.promise };
}

t.test('a slow drip, a silent server and a resolver that never answers end at the timeout', async (t) => {
  const { answer, gone } = dripping();
  // The server must have got the request by then, else it sees no disconnect.
  const { text } = await fetched(t, answer, {}, { timeoutMs: 5_000 });
  t.match(text, /^Error: WebFetch: it took longer than 5000 ms\.$/);
  await gone;
  const slow = { timeoutMs: 400 };
  t.match((await fetched(t, () => {}, {}, slow)).text, /took longer/);
  const never = webFetch({ resolve: () => new Promise(() => {}), ...slow });
  t.match((await call(never, { url: 'http://example.com/' })).text, /took longer/);
});

t.test('an interrupted turn hangs up and rejects', async (t) => {
  const { answer, gone, begun } = dripping();
  const host = await serve(t, answer);
  const controller = new AbortController();
  const reason = new Error('interrupted');
  const running = call(webFetch({ allowedHosts: [host] }), { url: `http://${host}/` }, { signal: controller.signal });
  begun.then(() => controller.abort(reason));
  await t.rejects(running, reason);
  await gone;
  await t.rejects(call(webFetch(), { url: 'http://example.com/' }, { signal: controller.signal }), reason);
});

t.test('a page made to keep its reader busy ends at the timeout', async (t) => {
  const deep = '<div>'.repeat(20_000);
  const { text } = await fetched(t, answerWith(deep, html), {}, { maxBytes: 1_000_000, timeoutMs: 700 });
  t.match(text, /took longer than 700 ms|cannot be converted/);
});

t.test('servers that break the protocol are errors like any other', async (t) => {
  const answers = [
    '',
    'garbage\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: text/plain\r\n\r\nshort',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\nzz\r\n',
    `HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\n`,
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
  ];
  for (const answer of answers) {
    const server = createRawServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { text, isError } = await call(webFetch({ allowedHosts: [host] }), { url: `http://${host}/` });
    t.match(text, /^Error: WebFetch: .*(cannot be reached|broke off|without an answer)/, answer.slice(0, 40));
    t.equal(isError, true);
    await new Promise((resolve) => server.close(resolve));
  }
  const closed = await call(webFetch({ allowedHosts: ['127.0.0.1'] }), { url: 'http://127.0.0.1:1/' });
  t.match(closed.text, /cannot be reached \(ECONNREFUSED\)/);
});

t.test('changes nothing, and needs an approval per scheme, host and port', async (t) => {
  const tool = webFetch({ allowedHosts: ['docs.example', '[::1]:8000'] });
  t.equal(tool.isReadOnly, true);
  const scopeOf = async (url: string) => (await tool.approvalFor({ url }, { workspacePath: '/ws' }))?.scopeKey;
  t.equal(await scopeOf('http://Example.com./a?b'), 'web:http://example.com:80');
  t.equal(await scopeOf('https://example.com/'), 'web:https://example.com:443');
  t.equal(await scopeOf('https://[::1]:8001/'), 'web:https://[::1]:8001');
  for (const allowed of ['https://docs.example/x', 'http://[::1]:8000/']) t.equal(await scopeOf(allowed), undefined);
  for (const refused of [
    'file:///etc/passwd',
    'nonsense',
    'http://user:word@example.com/',
    'http://x/sk-0123456789abcdef',
  ]) {
    t.equal(await scopeOf(refused), undefined, 'run refuses it, nothing is asked');
    t.match(await call(tool, { url: refused }), { isError: true });
  }
});
