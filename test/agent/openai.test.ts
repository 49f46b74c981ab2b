import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import fc from 'fast-check';
import t from 'tap';
import { type ModelEvent, providerSource } from '../../src/agent/index.ts';
import { DemoProvider } from '../../src/agent/providers/demo.ts';
import { OpenAiProvider } from '../../src/agent/providers/openai.ts';
import { sseData } from '../../src/agent/providers/sse-lines.ts';

interface Teardown {
  teardown(work: () => unknown): void;
}

function deferred<T>() {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** An upstream that answers as the test says; gives its base URL. */
async function upstream(
  t: Teardown,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

const apiKey = 'sk-very-secret';
const provider = (endPoint: string, idleMs = 30_000) => new OpenAiProvider({ endPoint, apiKey, model: 'm', idleMs });
const question = { messages: [{ role: 'user' as const, text: 'hi' }] };

async function collect(stream: AsyncIterable<ModelEvent>): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

const ask = (endPoint: string, idleMs?: number) =>
  collect(provider(endPoint, idleMs).stream(question, new AbortController().signal));

function streamed(response: ServerResponse, chunks: readonly unknown[], end = 'data: [DONE]\n\n'): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const chunk of chunks) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  response.end(end);
}

const word = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});

t.test('streams text, thoughts and usage', async (t) => {
  const asked = deferred<[IncomingMessage, unknown]>();
  const endPoint = await upstream(t, async (request, response) => {
    asked.resolve([request, await json(request)]);
    streamed(response, [
      word({ role: 'assistant', content: '' }),
      word({ reasoning_content: 'hm' }),
      word({ content: 'Grüß ' }),
      word({ content: 'dich' }),
      word({}, 'stop'),
      { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } },
    ]);
  });
  t.same(await ask(`${endPoint}/`), [
    { type: 'thinking', text: 'hm' },
    { type: 'text', text: 'Grüß ' },
    { type: 'text', text: 'dich' },
    { type: 'usage', inputTokens: 3, outputTokens: 4 },
  ]);
  const [request, body] = await asked.promise;
  t.equal(request.url, '/v1/chat/completions');
  t.equal(request.headers.authorization, `Bearer ${apiKey}`);
  t.match(body, { model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] });
});

t.test('an upstream that does not stream is understood too', async (t) => {
  const endPoint = await upstream(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
    response.end(
      JSON.stringify({
        choices: [{ message: { content: 'whole' } }],
        usage: { prompt_tokens: 1, completion_tokens: 2 },
      }),
    );
  });
  t.same(await ask(endPoint), [
    { type: 'text', text: 'whole' },
    { type: 'usage', inputTokens: 1, outputTokens: 2 },
  ]);
});

t.test('refusals and faults are typed and never show the key', async (t) => {
  const error = (status: number, message: string) => (_: unknown, response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message } }));
  };
  const cases: [(request: IncomingMessage, response: ServerResponse) => void, string, RegExp][] = [
    [
      error(401, `Incorrect API key provided: ${apiKey}.`),
      'upstreamUnauthorized',
      /401: Incorrect API key provided: \[redacted\]\.$/,
    ],
    [error(404, 'no such model'), 'upstreamRejected', /404: no such model\.$/],
    [error(503, 'busy'), 'upstreamFailed', /503: busy/],
    [(_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), 'upstreamRejected', /302/],
    [(_, response) => response.writeHead(500).end('<html>'), 'upstreamFailed', /answered 500\.$/],
    [(_, response) => streamed(response, [word({ content: 'half' })], ''), 'upstreamProtocol', /broke off/],
    [(_, response) => streamed(response, [{ error: { message: 'overloaded' } }]), 'upstreamFailed', /overloaded/],
    [(_, response) => streamed(response, [{ choices: 'no' }]), 'upstreamProtocol', /no chat completion/],
    [(_, response) => streamed(response, [], 'data: {"cho\n\n'), 'upstreamProtocol', /no chat completion/],
    [(request) => request.socket.destroy(), 'upstreamUnreachable', /cannot be reached/],
    [
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(`data: ${JSON.stringify(word({ content: 'x' }))}\n\n`, () => response.destroy());
      },
      'upstreamUnreachable',
      /broke off/,
    ],
  ];
  for (const [handle, code, message] of cases) {
    const reason = await ask(await upstream(t, handle)).then(
      () => undefined,
      (thrown) => thrown,
    );
    t.match(reason, { name: 'ModelError', code, message }, `${code} ${message}`);
    t.notMatch(JSON.stringify(reason?.message), /very-secret/);
  }
});

t.test('nobody listens, and somebody listens and says nothing', async (t) => {
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
  const { port } = gone.address() as AddressInfo;
  await new Promise((resolve) => gone.close(resolve));
  await t.rejects(ask(`http://127.0.0.1:${port}`), { code: 'upstreamUnreachable' });
  await t.rejects(ask(await upstream(t, () => {}), 100), { code: 'upstreamUnreachable', message: /silent for 100 ms/ });
});

t.test('an abort ends the request', async (t) => {
  const closed = deferred<void>();
  const endPoint = await upstream(t, (_, response) => {
    response.on('close', () => closed.resolve());
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`data: ${JSON.stringify(word({ content: 'x' }))}\n\n`);
  });
  const abort = new AbortController();
  await t.rejects(async () => {
    for await (const _ of provider(endPoint).stream(question, abort.signal)) abort.abort();
  });
  await closed.promise;
});

t.test('models', async (t) => {
  const endPoint = await upstream(t, (request, response) => {
    t.equal(request.url, '/v1/models');
    response.end(JSON.stringify({ data: [{ id: 'a', owned_by: 'x', created: 0 }, { id: 'b' }] }));
  });
  t.same(await provider(endPoint).listModels(new AbortController().signal), [
    { id: 'a', ownedBy: 'x', createdAt: '1970-01-01T00:00:00.000Z' },
    { id: 'b', ownedBy: '' },
  ]);
});

t.test('the demo model is chosen only when nothing is configured', async (t) => {
  const nothing = { endPoint: '', apiKey: '', model: '' };
  t.ok((await providerSource(nothing)()) instanceof DemoProvider);
  t.ok((await providerSource({ ...nothing, model: 'gpt' })()) instanceof DemoProvider);
  for (const settings of [
    { ...nothing, apiKey: 'k' },
    { ...nothing, endPoint: 'http://127.0.0.1:1' },
  ]) {
    const source = providerSource(settings);
    const chosen = await source();
    t.ok(chosen instanceof OpenAiProvider);
    t.equal(await source(), chosen, 'one for all');
    t.equal(chosen.model, 'gpt-4o-mini');
  }
});

/** `bytes` in pieces that end at these places. */
async function* inPieces(bytes: Uint8Array, cuts: readonly number[]): AsyncIterable<Uint8Array> {
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    yield bytes.subarray(from, cut);
    from = cut;
  }
}

t.test('events survive every way of cutting their bytes', async (t) => {
  const stream =
    ': connected\r\n\r\ndata: eins\n\nevent: x\rdata:zwei\rdata:  drei €\r\rid: 1\r\n\r\ndata\n\ndata: 🎼\r\n\r\ndata: unfinished';
  const bytes = Buffer.from(stream);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(), { maxLength: 30 }), async (cuts) => {
      const found: string[] = [];
      for await (const data of sseData(inPieces(bytes, cuts))) found.push(data);
      return JSON.stringify(found) === JSON.stringify(['eins', 'zwei\n drei €', '🎼']);
    }),
  );
  await t.rejects(
    async () => {
      for await (const _ of sseData(inPieces(Buffer.alloc(5 * 1_048_576, 'x'), [])));
    },
    { name: 'RangeError' },
  );
});
