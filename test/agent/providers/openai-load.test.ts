/** Answers that are compressed, or sent without an end. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { defaults } from '../../../src/protocol/index.ts';
import { service, settings, talk } from '../helpers.ts';
import { answerOf, collect, openAi, rejection } from './helpers.ts';

async function upstream(t: Test, answer: (response: ServerResponse, encodings: string | undefined) => void) {
  const server = createServer((request, response) => {
    request.resume();
    answer(response, request.headers['accept-encoding']);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const provider = openAi(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
  t.teardown(() => provider.close());
  return provider;
}

const event = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ delta, finish_reason: finish }] })}\n\n`;
const stream = `${event({ content: 'hello' })}${event({}, 'stop')}data: [DONE]\n\n`;

t.test('an answer is asked for uncompressed, and read compressed', async (t) => {
  const forms = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, 'x-gzip': gzipSync };
  for (const [encoding, compress] of Object.entries(forms)) {
    let accepted: string | undefined;
    const provider = await upstream(t, (response, encodings) => {
      accepted = encodings;
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': encoding });
      response.end(compress(Buffer.from(stream)));
    });
    t.match(answerOf(await collect(provider)), { text: 'hello', finish: 'stop' }, encoding);
    t.equal(accepted, 'identity');
  }
  const both = await upstream(t, (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'deflate, gzip' });
    response.end(gzipSync(deflateSync(stream)));
  });
  t.match(answerOf(await collect(both)), { text: 'hello' });
});

t.test('compressed pieces are emitted as they arrive, and a cut one is reported', async (t) => {
  const { createGzip } = await import('node:zlib');
  const gzip = createGzip();
  const provider = await upstream(t, (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
    gzip.pipe(response);
    gzip.write(event({ content: 'first' }));
    gzip.flush();
  });
  const texts: string[] = [];
  const asked = provider.stream(
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] },
    (each) => {
      if (each.type !== 'text') return;
      texts.push(each.text);
      // Only now, so that a reader that waits for the end hangs.
      gzip.unpipe().destroy();
      provider.close();
    },
    new AbortController().signal,
  );
  await t.rejects(asked, { name: 'ModelError' });
  t.same(texts, ['first']);
});

t.test('an unknown or damaged encoding is reported', async (t) => {
  for (const [encoding, code] of [
    ['zip', 'upstreamProtocol'],
    ['gzip', 'upstreamUnreachable'],
  ] as const) {
    const provider = await upstream(t, (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': encoding });
      response.end('this is not compressed');
    });
    t.match(await rejection(collect(provider)), { name: 'ModelError', code: encoding === 'zip' ? code : /^upstream/ });
  }
});

/** Sends pieces for as long as the connection takes them. */
function flood(response: ServerResponse, piece: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', send);
  send();
}

t.test('an answer without an end fails the turn, ends its connection, and other work has its turn', async (t) => {
  const floods: Readonly<Record<string, string>> = {
    text: event({ content: 'x'.repeat(2_000) }).repeat(20),
    calls: Array.from({ length: 50 }, () =>
      event({ tool_calls: [{ function: { name: 'Exec', arguments: '{}' } }] }),
    ).join(''),
  };
  for (const [kind, piece] of Object.entries(floods)) {
    let closed: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const provider = await upstream(t, (response) => {
      response.on('close', () => closed());
      flood(response, piece);
    });
    const { runtime } = service(provider, { settings });
    let turns = 0;
    const witness = setInterval(() => {
      turns += 1;
    }, 1);
    const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'go');
    clearInterval(witness);
    t.match(turn, { status: 'failed', error: { code: 'answerTooLong' } }, kind);
    t.ok(turns > 0, 'other work had its turn');
    await ended;
  }
  t.ok(defaults.reading.busyMs < 300);
});
