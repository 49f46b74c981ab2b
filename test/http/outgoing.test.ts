import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { OpenAiProvider } from '../../src/agent/providers/openai.ts';
import { outgoingFetch, ProxyError, proxyFor } from '../../src/http/index.ts';

const proxy = 'http://user:secret@proxy.test:3128';
const choose = (url: string, env: Record<string, string>, setting = '') => proxyFor(new URL(url), { env, setting });

t.test('variables are read as curl reads them', async (t) => {
  const cases: readonly (readonly [string, Record<string, string>, string | undefined])[] = [
    ['https://a.test/', { HTTPS_PROXY: proxy }, 'HTTPS_PROXY'],
    ['https://a.test/', { HTTPS_PROXY: 'http://upper.test', https_proxy: proxy }, 'https_proxy'],
    ['https://a.test/', { ALL_PROXY: proxy }, 'ALL_PROXY'],
    ['https://a.test/', { HTTP_PROXY: proxy }, undefined],
    ['http://a.test/', { HTTP_PROXY: proxy }, 'HTTP_PROXY'],
    ['http://a.test/', { HTTP_PROXY: proxy, REQUEST_METHOD: 'GET' }, undefined],
    ['http://a.test/', { http_proxy: proxy, REQUEST_METHOD: 'GET' }, 'http_proxy'],
    ['http://a.test/', { HTTPS_PROXY: proxy }, undefined],
    ['http://a.test/', { http_proxy: '', HTTP_PROXY: proxy }, 'HTTP_PROXY'],
    ['http://a.test/', {}, undefined],
  ];
  for (const [url, env, source] of cases) {
    const found = choose(url, env);
    t.equal(found?.shown, source && `proxy.test:3128 (${source})`, `${url} ${JSON.stringify(env)}`);
    if (found) t.equal(found.url, `${proxy}/`);
  }
});

t.test('NO_PROXY excepts names, addresses, networks and ports', async (t) => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['http://a.example.com/', 'example.com', true],
    ['http://a.example.com/', '.example.com', true],
    ['http://a.example.com/', '*.example.com', true],
    ['http://example.com/', '.example.com', true],
    ['http://EXAMPLE.com./', 'example.COM', true],
    ['http://notexample.com/', 'example.com', false],
    ['http://example.com.evil.test/', 'example.com', false],
    ['http://a.test/', 'b.test, a.test', true],
    ['http://a.test/', 'b.test a.test', true],
    ['http://a.test:8080/', 'a.test:8080', true],
    ['http://a.test/', 'a.test:8080', false],
    ['https://a.test/', 'a.test:443', true],
    ['http://a.test/', '*', true],
    ['http://10.1.2.3/', '10.0.0.0/8', true],
    ['http://11.1.2.3/', '10.0.0.0/8', false],
    ['http://10.1.2.3/', '10.1.2.3', true],
    ['http://10.1.2.3/', '1.2.3', false],
    ['http://10.1.2.3:81/', '10.1.2.3:81', true],
    ['http://10.1.2.3/', '10.0.0.0/99', false],
    ['http://[fd00::1]/', 'fd00::/8', true],
    ['http://[fd00::1]:81/', '[fd00::1]:81', true],
    ['http://[fd00::1]/', '[fd00::1]:81', false],
    ['http://a.test/', '10.0.0.0/8', false],
    ['http://a.test/', '', false],
  ];
  for (const name of ['NO_PROXY', 'no_proxy'])
    for (const [url, list, isExcepted] of cases)
      t.equal(
        choose(url, { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, [name]: list }) === undefined,
        isExcepted,
        `${url} ${list}`,
      );
  t.ok(choose('http://a.test/', { HTTP_PROXY: proxy, no_proxy: 'b.test', NO_PROXY: 'a.test' }), 'lower case wins');
});

t.test('regression: H45 connections to this machine use no proxy of the environment', async (t) => {
  const env = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy };
  for (const host of ['localhost', 'app.localhost', '127.0.0.1', '127.9.9.9', '[::1]', '0.0.0.0', '[::ffff:127.0.0.1]'])
    t.equal(choose(`http://${host}:1/`, env), undefined, host);
  t.ok(choose('http://128.0.0.1/', env));
});

t.test('a setting overrides the environment', async (t) => {
  t.equal(choose('http://a.test/', { HTTP_PROXY: proxy }, 'none'), undefined);
  t.equal(
    choose('http://a.test/', { HTTP_PROXY: proxy, NO_PROXY: '*' }, 'http://own.test:1')?.url,
    'http://own.test:1/',
  );
});

t.test('a proxy that cannot be used is refused without its credentials', async (t) => {
  for (const address of ['socks5://user:secret@h:1', 'http://user:secret@:1', 'http://user:secret@h:99999']) {
    t.throws(() => choose('http://a.test/', { HTTP_PROXY: address }), ProxyError, address);
    try {
      choose('http://a.test/', { HTTP_PROXY: address });
    } catch (error) {
      t.match(String(error), 'HTTP_PROXY');
      t.notMatch(String(error), 'secret');
    }
  }
});

t.test('any list of exceptions is read', async (t) => {
  const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_128 };
  const list = fc.string({ unit: fc.constantFrom('a', '.', '1', ':', '/', '*', '[', ']', ',', ' ', '-') });
  fc.assert(
    fc.property(list, (text) => {
      for (const host of ['a.test', '10.1.2.3', '[fd00::1]'])
        choose(`http://${host}/`, { HTTP_PROXY: proxy, NO_PROXY: text });
      return (
        choose('http://z.test/', { HTTP_PROXY: proxy, NO_PROXY: text }) !== undefined || /(^|[ ,])\*([ ,]|$)/.test(text)
      );
    }),
    seed,
  );
  t.pass();
});

/** A proxy that answers requests itself, and refuses tunnels. */
async function startProxy(t: Test, answer: string, status = 200) {
  const seen: { method: string; target: string; authorization: string | undefined }[] = [];
  const note = ({ method = '', url = '', headers }: IncomingMessage) =>
    seen.push({ method, target: url, authorization: headers['proxy-authorization'] });
  const server = createServer((request, response) => {
    note(request);
    request.resume();
    response.writeHead(status, { 'content-type': 'application/json' }).end(answer);
  });
  server.on('connect', (request, socket) => {
    note(request);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://user:secret@127.0.0.1:${port}`, shown: `127.0.0.1:${port}`, seen };
}

/** Sets variables of this process for one test. */
function setEnv(t: Test, variables: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(variables)) {
    const before = process.env[name];
    process.env[name] = value;
    t.teardown(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
}

const completion = JSON.stringify({ choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }] });
const basic = `Basic ${Buffer.from('user:secret').toString('base64')}`;

async function ask(t: Test, endPoint: string, setting = '') {
  const provider = new OpenAiProvider({ endPoint, apiKey: 'key', model: 'm', proxy: setting });
  t.teardown(() => provider.close());
  let text = '';
  await provider.stream(
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] },
    (event) => {
      if (event.type === 'text') text += event.text;
    },
    new AbortController().signal,
  );
  return text;
}

t.test('a provider whose name only the proxy resolves is reached through it', async (t) => {
  const running = await startProxy(t, completion);
  setEnv(t, { HTTP_PROXY: running.url, HTTPS_PROXY: running.url });
  t.equal(await ask(t, 'http://models.example.test/v1'), 'hi');
  const target = 'http://models.example.test/v1/chat/completions';
  t.same(running.seen, [{ method: 'POST', target, authorization: basic }]);
  await t.rejects(ask(t, 'https://models.example.test/v1'), {
    code: 'upstreamUnreachable',
    message: new RegExp(`^The proxy ${running.shown} \\(HTTPS_PROXY\\) answered 403 for models.example.test:443`),
  });
  t.match(running.seen[1], { method: 'CONNECT', target: 'models.example.test:443', authorization: basic });
  await t.rejects(ask(t, 'http://models.example.test/v1', 'none'), { message: /ENOTFOUND|EAI_AGAIN/ }, 'directly');
  t.equal(await ask(t, 'http://other.example.test/v1', running.url), 'hi', 'by the setting');
});

t.test('regression: H45 errors name the proxy, and never its credentials', async (t) => {
  const refusing = await startProxy(t, '', 407);
  setEnv(t, { HTTP_PROXY: refusing.url });
  for (const attempt of [
    () => ask(t, 'http://models.example.test/v1'),
    () => ask(t, 'http://models.example.test/v1', 'http://user:secret@127.0.0.1:1'),
  ]) {
    const error: unknown = await attempt().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    t.match(String(error), /proxy 127\.0\.0\.1:\d+/i);
    t.notMatch(String(error), 'secret');
  }
});

t.test('other clients use the proxy, also after a redirect, and this machine is asked directly', async (t) => {
  const running = await startProxy(t, '{"through":"proxy"}');
  const own = createServer((_, response) => response.writeHead(302, { location: 'http://far.example.test/' }).end());
  await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve));
  t.teardown(() => own.close());
  setEnv(t, { HTTP_PROXY: running.url, HTTPS_PROXY: 'http://user:secret@127.0.0.1:1' });
  t.same(await (await outgoingFetch('http://catalogue.example.test/api.json')).json(), { through: 'proxy' });
  const { port } = own.address() as AddressInfo;
  const answer = await outgoingFetch(`http://127.0.0.1:${port}/`, { redirect: 'manual' });
  t.equal(answer.status, 302);
  t.equal(running.seen.length, 1);
  const error: unknown = await outgoingFetch('https://catalogue.example.test/').catch((reason: unknown) => reason);
  t.match(String(error), /through the proxy 127\.0\.0\.1:1 \(HTTPS_PROXY\)/);
  t.notMatch(String(error), 'secret');
});
