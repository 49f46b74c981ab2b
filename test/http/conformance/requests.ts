/** Checks and routing of a request, equal on both adapters. */
import type { Test } from 'tap';
import * as v from 'valibot';
import { bearer, HttpError, json, jsonBytes, type Route, text } from '../../../src/http/index.ts';
import { type Adapter, codeOf, eventually, exchange, RawClient, rawRequest, start } from '../support.ts';

const constant = jsonBytes(200, Buffer.from('{"ok":true}'));
const open = (method: Route['method'], path: string, handler: Route<undefined>['handler']): Route<undefined> => ({
  method,
  path,
  handler,
});

export function requests(t: Test, adapter: Adapter): void {
  t.test('checks apply in the order host, route, method, auth, origin, length', async (t) => {
    let handled = 0;
    const auth = bearer('secret');
    const { port } = await start(t, adapter, {
      routes: [
        {
          method: 'POST',
          path: '/guarded',
          auth,
          handler: async (context) => {
            handled += 1;
            return json(200, await context.json(v.unknown()));
          },
        },
      ],
    });
    const body = '{"a":1}';
    const length = { 'Content-Length': String(body.length) };
    const good = { ...length, Authorization: 'Bearer secret' };
    const ask = (method: string, path: string, headers: Record<string, string>) =>
      exchange(port, rawRequest(method, path, headers, body));

    const foreignHost = await ask('POST', '/nowhere', { ...length, Host: 'evil.example' });
    t.equal(foreignHost.status, 403);
    t.equal(codeOf(foreignHost.body), 'hostNotAllowed');
    const unknown = await ask('POST', '/nowhere', length);
    t.equal(unknown.status, 404);
    t.equal(codeOf(unknown.body), 'notFound');
    t.match(unknown.head, /content-type: application\/json/i);
    const wrongMethod = await ask('PUT', '/guarded', length);
    t.equal(wrongMethod.status, 405);
    t.match(wrongMethod.head, /^allow: POST\r$/im);
    const noToken = await ask('POST', '/guarded', { ...length, 'Sec-Fetch-Site': 'cross-site' });
    t.equal(noToken.status, 401);
    t.match(noToken.head, /^www-authenticate: Bearer\r$/im);
    const wrongToken = await ask('POST', '/guarded', { ...length, Authorization: 'Bearer secreT' });
    t.equal(wrongToken.status, 401);
    t.match(wrongToken.head, /invalid_token/);
    for (const site of ['cross-site', 'same-site']) {
      const foreign = await ask('POST', '/guarded', { ...good, 'Sec-Fetch-Site': site, 'Content-Length': '99999' });
      t.equal(foreign.status, 403, site);
      t.match(foreign.body, 'originNotAllowed');
    }
    const foreignOrigin = await ask('POST', '/guarded', { ...good, Origin: 'http://evil.example' });
    t.equal(foreignOrigin.status, 403);
    const long = await ask('POST', '/guarded', { ...good, 'Content-Length': '99999' });
    t.equal(long.status, 413);
    t.equal(handled, 0);

    for (const extra of [{}, { 'Sec-Fetch-Site': 'same-origin' }, { Origin: 'http://127.0.0.1' }]) {
      const fine = await ask('POST', '/guarded', { ...good, ...extra });
      t.equal(fine.status, 200);
      t.equal(fine.body, body);
    }
    t.equal((await ask('POST', '/guarded', { ...length, Authorization: 'bEARER secret' })).status, 200);
  });

  t.test('a wrong token is refused before the body arrives', async (t) => {
    const { port } = await start(t, adapter, {
      routes: [{ method: 'POST', path: '/guarded', auth: bearer('secret'), handler: () => constant }],
    });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('POST', '/guarded', { 'Content-Length': '500' }));
    t.match(await client.until(/unauthorized/), /^HTTP\/1\.1 401 /);
  });

  t.test('HEAD has no body, OPTIONS lists the methods, and unknown methods are refused', async (t) => {
    const { port } = await start(t, adapter, {
      routes: [open('GET', '/thing', () => constant), open('DELETE', '/thing', () => constant)],
    });
    const head = await exchange(port, rawRequest('HEAD', '/thing'));
    t.equal(head.status, 200);
    t.match(head.head, /^content-length: 11\r$/im);
    t.equal(head.body, '');
    for (const method of ['OPTIONS', 'POST', 'TRACE', 'PROPFIND']) {
      const refused = await exchange(port, rawRequest(method, '/thing'));
      t.equal(refused.status, 405, method);
      t.match(refused.head, /^allow: DELETE, GET, HEAD\r$/im);
      t.equal(codeOf(refused.body), 'methodNotAllowed');
    }
    t.equal((await exchange(port, rawRequest('OPTIONS', '/nothing'))).status, 404);
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('HEAD', '/thing') + rawRequest('GET', '/thing'));
    t.match(
      await client.until(/\{"ok":true\}/),
      /content-length: 11[\s\S]*\r\n\r\nHTTP\/1\.1 200 /i,
      'HEAD leaves the connection usable',
    );
  });

  t.test('a path matches the most exact pattern, and bad encoding is refused', async (t) => {
    const seen: Record<string, string>[] = [];
    const remember: Route<undefined>['handler'] = ({ params }) => {
      seen.push({ ...params });
      return constant;
    };
    const { url, port } = await start(t, adapter, {
      routes: [
        open('GET', '/v1/*', remember),
        open('GET', '/v1/things/:id', remember),
        open('GET', '/v1/things/:id/parts/:part', remember),
        open('POST', '/v1/things/own', () => constant),
      ],
    });
    await fetch(`${url}/v1/things/a%20b%2Fc?x=1`);
    await fetch(`${url}/v1/things/1/parts/%C3%A9`);
    await fetch(`${url}/v1/else/where`);
    t.strictSame(seen, [{ id: 'a b/c' }, { id: '1', part: 'é' }, { '*': 'else/where' }]);
    t.equal((await fetch(`${url}/v1/things/own`)).status, 405);
    t.equal((await fetch(`${url}/v1/`)).status, 200);
    t.equal((await fetch(`${url}/v1`)).status, 404);
    const bad = await exchange(port, rawRequest('GET', '/v1/things/%zz'));
    t.equal(bad.status, 400);
    t.equal(codeOf(bad.body), 'invalidRequest');
  });

  t.test('a context stays valid after an await', async (t) => {
    const { port } = await start(t, adapter, {
      routes: [
        open('GET', '/late', async (context) => {
          await new Promise((resolve) => setImmediate(resolve));
          return json(200, {
            header: context.header('x-custom'),
            absent: context.header('x-absent') ?? null,
            path: context.path,
            q: context.query.get('q'),
            remote: context.remoteAddress,
          });
        }),
        open('GET', '/now', (context) =>
          json(200, { header: context.header('x-custom'), q: context.query.get('q'), remote: context.remoteAddress }),
        ),
      ],
    });
    const late = await exchange(port, rawRequest('GET', '/late?q=a%26b', { 'X-Custom': 'Value' }));
    t.strictSame(JSON.parse(late.body), {
      header: 'Value',
      absent: null,
      path: '/late',
      q: 'a&b',
      remote: '127.0.0.1',
    });
    const now = await exchange(port, rawRequest('GET', '/now?q=1', { 'X-Custom': 'Value' }));
    t.strictSame(JSON.parse(now.body), { header: 'Value', q: '1', remote: '127.0.0.1' });
  });

  t.test('a throwing handler is a 500 with an id, and the server keeps serving', async (t) => {
    const { url, bugs } = await start(t, adapter, {
      routes: [
        open('GET', '/sync', () => {
          throw new TypeError('secret detail');
        }),
        open('GET', '/async', async () => {
          await new Promise((resolve) => setImmediate(resolve));
          throw new TypeError('secret detail');
        }),
        open('GET', '/nothing', () => undefined as never),
        open('GET', '/refused', () => {
          throw new HttpError(409, 'taken', 'Taken.', { by: 'me' }, [['retry-after', '1']]);
        }),
        open('GET', '/fine', () => text(200, 'fine')),
      ],
    });
    for (const path of ['/sync', '/async', '/nothing']) {
      const answer = await fetch(url + path);
      t.equal(answer.status, 500, path);
      const body = await answer.text();
      t.match(body, /"errorId":"[0-9a-f]{16}"/);
      t.notMatch(body, 'secret detail');
    }
    t.equal(bugs.length, 3);
    const refused = await fetch(`${url}/refused`);
    t.equal(refused.status, 409);
    t.equal(refused.headers.get('retry-after'), '1');
    t.strictSame(await refused.json(), { error: { code: 'taken', message: 'Taken.', details: { by: 'me' } } });
    t.equal(await (await fetch(`${url}/fine`)).text(), 'fine');
    t.equal(bugs.length, 3, 'a refusal is no bug');
  });

  t.test('an error body or a bug reporter that throws does not hang the request', async (t) => {
    const { url } = await start(t, adapter, {
      routes: [],
      errorBody: () => {
        throw new Error('broken contract');
      },
      onBug: () => {
        throw new Error('broken reporter');
      },
    });
    const answer = await fetch(`${url}/x`);
    t.equal(answer.status, 500);
    t.match(await answer.text(), 'internalError');
  });

  t.test('the deadline answers 503, aborts the signal and drops the late reply', async (t) => {
    let aborted = false;
    let finish = () => {};
    const { url, bugs } = await start(t, adapter, {
      routes: [
        {
          method: 'GET',
          path: '/slow',
          deadlineMs: 40,
          handler: async ({ signal }: { signal: AbortSignal }) => {
            signal.addEventListener('abort', () => {
              aborted = true;
            });
            await new Promise<void>((resolve) => {
              finish = resolve;
            });
            return constant;
          },
        },
      ],
    });
    const answer = await fetch(`${url}/slow`);
    t.equal(answer.status, 503);
    t.match(await answer.text(), 'deadlineExceeded');
    t.ok(aborted);
    finish();
    t.equal((await fetch(`${url}/nothing`)).status, 404);
    t.equal(bugs.length, 0);
  });

  t.test('a disconnect aborts the signal, and the late reply is dropped', async (t) => {
    let signal: AbortSignal | undefined;
    let finish = () => {};
    const { port, url, bugs } = await start(t, adapter, {
      routes: [
        open('GET', '/slow', async (context) => {
          signal = context.signal;
          await new Promise<void>((resolve) => {
            finish = resolve;
          });
          return constant;
        }),
      ],
    });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/slow'));
    await eventually(() => signal !== undefined, 'the handler runs');
    client.socket.destroy();
    await eventually(() => signal?.aborted === true, 'the signal aborts');
    finish();
    t.equal((await fetch(`${url}/nothing`)).status, 404);
    t.equal(bugs.length, 0);
  });

  t.test('pipelined requests with synchronous answers come back in order', async (t) => {
    const { port } = await start(t, adapter, {
      routes: [open('GET', '/n/:n', ({ params }) => text(200, `answer ${params['n']};`))],
    });
    const client = await RawClient.connect(t, port);
    client.send([1, 2, 3].map((n) => rawRequest('GET', `/n/${n}`)).join(''));
    t.match(await client.until(/answer 3;/), /answer 1;[\s\S]*answer 2;[\s\S]*answer 3;/);
  });

  t.test('204 and 304 have neither body nor length', async (t) => {
    const { port } = await start(t, adapter, {
      routes: [open('DELETE', '/thing', () => ({ kind: 'bytes', status: 204, headers: [], body: '' }))],
    });
    const answer = await exchange(port, rawRequest('DELETE', '/thing'));
    t.equal(answer.status, 204);
    t.notMatch(answer.head, /content-length/i);
    t.notMatch(answer.head, /transfer-encoding/i);
  });

  t.test('headers up to the limit are accepted, and larger ones do not crash the server', async (t) => {
    const { port, url } = await start(t, adapter, {
      routes: [open('GET', '/size', (context) => text(200, String(context.header('x-long')?.length)))],
    });
    const taken = await exchange(port, rawRequest('GET', '/size', { 'X-Long': 'a'.repeat(15_000) }));
    t.equal(taken.body, '15000');
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/size', { 'X-Long': 'a'.repeat(20_000) }));
    t.match(await client.untilClosed(), /^HTTP\/1\.1 431 /);
    t.equal((await fetch(`${url}/size`, { headers: { 'x-long': 'abc' } })).status, 200);
  });

  t.test('regression: edge 10 too long headers and malformed lengths get the JSON error object', async (t) => {
    const { port } = await start(t, adapter, {
      routes: [
        open('GET', '/', () => constant),
        { ...open('POST', '/', async (context) => json(200, (await context.bytes()).length)) },
      ],
    });
    const cases: [string, number, string][] = [
      [rawRequest('GET', '/', { 'X-Long': 'a'.repeat(20_000) }), 431, 'headersTooLarge'],
      [rawRequest('GET', `/?${'a'.repeat(20_000)}`), 431, 'headersTooLarge'],
      [rawRequest('GET', `/nowhere/${'a'.repeat(20_000)}`), 431, 'headersTooLarge'],
      [rawRequest('POST', '/', { 'X-Long': 'a'.repeat(20_000), 'Content-Length': '2' }, '{}'), 431, 'headersTooLarge'],
      [rawRequest('OPTIONS', '/', { 'X-Long': 'a'.repeat(20_000) }), 431, 'headersTooLarge'],
      [rawRequest('POST', '/', { 'Content-Length': 'abc' }), 400, 'invalidRequest'],
      [rawRequest('GET', '/', { 'Content-Length': '-1' }), 400, 'invalidRequest'],
    ];
    for (const [request, status, code] of cases) {
      const client = await RawClient.connect(t, port);
      client.send(request);
      const answer = await client.untilClosed();
      const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
      t.equal(Number(answer.slice(9, 12)), status, request.slice(0, 30));
      t.equal(codeOf(body), code);
      t.match(answer, /^content-type: application\/json/im);
    }
    // Control: the same routes with headers below the limit.
    t.equal((await exchange(port, rawRequest('GET', '/', { 'X-Long': 'a'.repeat(15_000) }))).status, 200);
    t.equal((await exchange(port, rawRequest('POST', '/', { 'Content-Length': '2' }, '{}'))).body, '2');
  });

  t.test(
    'regression: L4 a request with ambiguous framing is refused, and the bytes after it are not served',
    async (t) => {
      const served: string[] = [];
      const seen: Route<undefined>['handler'] = (context) => {
        served.push(context.path);
        return constant;
      };
      const read: Route<undefined>['handler'] = async (context) => json(200, (await context.bytes()).toString());
      const { port } = await start(t, adapter, {
        routes: [open('GET', '/', seen), open('GET', '/second', seen), open('POST', '/', read)],
      });
      const second = rawRequest('GET', '/second');
      const post = (headers: string, body: string) => `POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n${body}`;
      const chunked = '0\r\n\r\n';
      const bad = [
        post('Content-Length: 3\r\nContent-Length: 60\r\n', 'abc'),
        post('Content-Length: 60\r\nContent-Length: 3\r\n', 'abc'),
        post('Content-Length: 3\r\nContent-Length: 3\r\n', 'abc'),
        post('Content-Length: \r\nContent-Length: 3\r\n', 'abc'),
        post('Content-Length: 3, 3\r\n', 'abc'),
        post('Content-Length: \r\n', ''),
        post('Content-Length: +3\r\n', 'abc'),
        post('Content-Length: 3\r\nTransfer-Encoding: chunked\r\n', chunked),
        post('Content-Length: \r\nTransfer-Encoding: chunked\r\n', chunked),
        post('Transfer-Encoding: chunked\r\nContent-Length: 3\r\n', chunked),
        post('Transfer-Encoding: gzip\r\n', chunked),
        post('Transfer-Encoding: gzip, chunked\r\n', chunked),
        post('Transfer-Encoding: xchunked\r\n', chunked),
        post('Transfer-Encoding: identity\r\n', chunked),
        post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', chunked),
        post('Transfer-Encoding: \r\n', chunked),
        'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nContent-Length: 50\r\n\r\n',
        'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n',
        'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: localhost\r\n\r\n',
        'GET / HTTP/1.1\r\nHost: \r\nHost: localhost\r\n\r\n',
        'BREW / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nContent-Length: 50\r\n\r\n',
      ];
      for (const request of bad) {
        const client = await RawClient.connect(t, port);
        client.send(request + second);
        const answer = await client.untilClosed();
        t.match(answer, /^HTTP\/1\.1 400 /, request);
        t.equal(answer.match(/HTTP\/1\.1 \d/g)?.length, 1, 'one answer');
      }
      t.same(served, [], 'no handler ran');
      const named = { constructor: 'x', hasownproperty: 'y', 'Content-Length': '0' };
      t.equal((await exchange(port, rawRequest('POST', '/', named))).status, 200, 'names of properties are headers');
      // Control: the same bytes with one clear length are two requests.
      const client = await RawClient.connect(t, port);
      client.send(rawRequest('GET', '/', { 'Content-Length': '3' }, 'abc') + second);
      await client.until(/200 OK[\s\S]*200 OK/);
      t.same(served, ['/', '/second']);
      const coded = await exchange(port, post('Transfer-Encoding: Chunked\r\n', '3\r\nabc\r\n0\r\n\r\n'));
      t.equal(coded.body, '"abc"');
    },
  );

  t.test('a malformed request is answered 400, and its connection closed', async (t) => {
    const { port, url } = await start(t, adapter, { routes: [open('GET', '/', () => constant)] });
    for (const bad of [
      'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: abc\r\n\r\n',
      'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ]) {
      const client = await RawClient.connect(t, port);
      client.send(bad);
      t.match(await client.untilClosed(), /^HTTP\/1\.1 400 /, bad.split('\r\n')[2] ?? '');
    }
    t.equal((await fetch(url)).status, 200);
  });
}
