/** Servers that send only interim answers, switch protocols or redirect: each client reports its typed error. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import t, { type Test } from 'tap';
import { OpenAiProvider } from '../../src/agent/providers/openai.ts';
import { createTransport } from '../../src/github/index.ts';
import { createForwarder } from '../../src/hub/pages/forward.ts';
import { askLocal } from '../../src/lib/index.ts';
import { boundedFetch } from '../../src/mcp/bounded-fetch.ts';
import { MessagePace } from '../../src/mcp/message-pace.ts';
import { defaults } from '../../src/protocol/index.ts';

interface RawServer {
  readonly url: string;
  readonly port: number;
  /** Requests that arrived, as text. */
  readonly received: string[];
  /** Settles when the client has closed its connection. */
  readonly closed: Promise<unknown>;
}

/** Sends one of `answers` for each request, in order; repeats the last one for further requests. */
async function answering(t: Test, ...answers: readonly string[]): Promise<RawServer> {
  const received: string[] = [];
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    t.teardown(() => socket.destroy());
    socket.on('error', () => {});
    socket.once('close', resolve);
    socket.on('data', (chunk) => {
      received.push(String(chunk));
      socket.write(answers[Math.min(received.length, answers.length) - 1] ?? '');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, received, closed };
}

const switched = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n';
const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
const empty = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}';
const completion = JSON.stringify({ choices: [{ message: { content: 'hello' }, finish_reason: 'stop' }] });
const complete = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${completion.length}\r\n\r\n${completion}`;

function asking(t: Test, base: string, signal = new AbortController().signal): Promise<void> {
  const provider = new OpenAiProvider({ endPoint: `${base}/v1`, apiKey: 'key', model: 'm', proxy: '' });
  t.teardown(() => provider.close());
  return provider.stream({ messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] }, () => {}, signal);
}

const mcp = (url: string) => boundedFetch(1_000, new MessagePace())(`${url}/mcp`, post);
const github = (url: string, init: RequestInit = {}) =>
  createTransport(url, { requestTimeoutMs: 60_000, answerBytes: 1_000 })(`${url}/a`, init);
const post = { method: 'POST', body: '{"id":1}', headers: { 'x-api-key': 'secret' } };

t.test('a model server that switches protocols is a typed error, and its connection is closed', async (t) => {
  const server = await answering(t, switched);
  await t.rejects(asking(t, server.url), { code: 'upstreamProtocol', isRetryable: false, message: /\(101\)/ });
  await server.closed;
});

t.test('endless interim answers are a typed error, and a few before the final answer are accepted', async (t) => {
  const { interimAnswers } = defaults.upstream;
  const flood = await answering(t, hints.repeat(interimAnswers + 1));
  await t.rejects(asking(t, flood.url), { code: 'upstreamProtocol', message: /interim answers/ });
  await flood.closed;
  const patient = await answering(t, hints.repeat(interimAnswers) + complete);
  await t.resolves(asking(t, patient.url));
});

t.test('a local server that switches protocols causes an error in every client', async (t) => {
  const server = await answering(t, switched);
  await t.rejects(askLocal(server.url), { message: 'the server switched to another protocol' });
  await server.closed;
  await t.rejects(github(server.url), { code: 'connectionFailed' });
  await t.rejects(mcp(server.url), TypeError);
  const forwarder = createForwarder();
  t.teardown(() => forwarder.close());
  const inner = await answering(t, switched);
  const context = {
    method: 'GET',
    signal: new AbortController().signal,
    headers: new Headers(),
    header: () => undefined,
  };
  const target = { host: '127.0.0.1', port: inner.port, token: 't', confirm() {}, doubt() {} };
  await t.rejects(forwarder.forward(context as never, target as never, '/'), {
    code: 'badGateway',
    message: /switched to another protocol/,
  });
  await inner.closed;
});

const redirect = (status: number, location: string) =>
  `HTTP/1.1 ${status} Elsewhere\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`;

t.test('a redirect of GitHub to another host is refused, and the host gets no request', async (t) => {
  for (const status of [301, 302, 307, 308]) {
    const other = await answering(t, empty);
    const server = await answering(t, redirect(status, `${other.url}/a`));
    await t.rejects(
      github(server.url),
      { code: 'invalidAnswer', message: 'GitHub names another host' },
      String(status),
    );
    t.same(other.received, []);
  }
  await t.rejects(github((await answering(t, redirect(307, 'file:///etc/passwd'))).url), { code: 'invalidAnswer' });
  await t.rejects(github((await answering(t, redirect(307, '/a'))).url), { message: 'GitHub redirects too often' });
});

t.test('a redirect of GitHub to the same host keeps method, body and headers', async (t) => {
  for (const status of [301, 302, 307, 308]) {
    const server = await answering(t, redirect(status, '/b'), empty);
    t.equal((await github(server.url, post)).status, 200);
    t.match(server.received[1], /^POST \/b HTTP[\s\S]*x-api-key: secret[\s\S]*\{"id":1\}$/);
  }
});

t.test('a status beyond 599 is an error that names it', async (t) => {
  const odd = 'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n';
  await t.rejects(mcp((await answering(t, odd)).url), { message: 'it answers with HTTP 999' });
  await t.rejects(github((await answering(t, odd)).url), { code: 'invalidAnswer', message: 'GitHub answered 999' });
});
