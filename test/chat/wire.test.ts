/** The wire by a bare socket: headers, framing, slow and stalled readers, on both HTTP adapters. */
import t from 'tap';
import type { ModelProvider } from '../../src/agent/index.ts';
import { gate, say, script, usage } from '../agent/scripted-provider.ts';
import { RawClient, rawRequest } from '../http/support.ts';
import { chat, eventually, user } from './harness.ts';

const request = (body: object, headers: Record<string, string> = {}) => {
  const text = JSON.stringify(body);
  const length = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) };
  return rawRequest('POST', '/v1/chat/completions', { ...length, ...headers }, text);
};

/** The payload of a chunked answer. */
function payloadOf(received: string): string {
  let at = received.indexOf('\r\n\r\n') + 4;
  let payload = '';
  for (;;) {
    const lineEnd = received.indexOf('\r\n', at);
    const size = Number.parseInt(received.slice(at, lineEnd), 16);
    if (!(size > 0)) return payload;
    payload += received.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
}

for (const adapter of ['uws', 'node'] as const) {
  t.test(`answers over a socket on ${adapter}`, async (t) => {
    const before = process.env['ORATORIO_HTTP_ADAPTER'];
    process.env['ORATORIO_HTTP_ADAPTER'] = adapter;
    t.teardown(() => {
      if (before === undefined) delete process.env['ORATORIO_HTTP_ADAPTER'];
      else process.env['ORATORIO_HTTP_ADAPTER'] = before;
    });

    t.test('a small stream has exactly the expected bytes', async (t) => {
      const { port, server } = await chat(t, script([say('Hällo'), usage(3, 1)]));
      t.equal(server.adapter, adapter);
      const client = await RawClient.connect(t, port);
      client.send(request({ messages: [user('hi')], stream: true, stream_options: { include_usage: true } }));
      const received = await client.until(/\r\n0\r\n\r\n$/);
      const head = received.slice(0, received.indexOf('\r\n\r\n')).toLowerCase();
      t.match(head, /^http\/1\.1 200 ok\r\n/);
      for (const line of [
        'content-type: text/event-stream; charset=utf-8',
        'cache-control: no-cache',
        'x-accel-buffering: no',
        'transfer-encoding: chunked',
      ]) {
        t.ok(head.includes(`\r\n${line}`), line);
      }
      t.notMatch(head, /content-length|content-encoding|access-control/);
      const payload = Buffer.from(payloadOf(received), 'latin1').toString();
      const base =
        /^data: (\{"id":"chatcmpl-[0-9a-f]{32}","object":"chat\.completion\.chunk","created":\d{10},"model":"scripted","choices":\[)/.exec(
          payload,
        )?.[1];
      t.equal(
        payload,
        [
          `${base}{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
          `${base}{"index":0,"delta":{"content":"Hällo"},"finish_reason":null}]}`,
          `${base}{"index":0,"delta":{},"finish_reason":"stop"}]}`,
          `${base}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`,
          '[DONE]',
        ]
          .map((frame) => `data: ${frame}\n\n`)
          .join(''),
      );
    });

    t.test('consecutive streams share one connection', async (t) => {
      const { port } = await chat(t, script(say('one'), say('two')));
      const client = await RawClient.connect(t, port);
      for (const word of ['one', 'two']) {
        client.received = '';
        client.send(request({ messages: [user('hi')], stream: true }));
        t.match(payloadOf(await client.until(/\r\n0\r\n\r\n$/)), word);
      }
    });

    t.test('a stalled reader is disconnected and its turn ended', async (t) => {
      let pieces = 0;
      const flood: ModelProvider = {
        listModels: async () => [],
        close: () => undefined,
        name: 'flood',
        model: 'flood',
        async stream(_, emit, signal) {
          for (; !signal.aborted && pieces < 10_000; pieces += 1) {
            emit({ type: 'text', text: 'x'.repeat(65_536) });
            await new Promise((resolve) => setImmediate(resolve));
          }
          emit({ type: 'finish', reason: 'stop' });
        },
      };
      const { port, runtime, server } = await chat(t, flood);
      const client = await RawClient.connect(t, port);
      client.socket.pause();
      client.send(request({ messages: [user('hi')], stream: true }));
      await eventually(() => pieces > 0, 'the flood begins');
      await eventually(() => runtime.turns.count === 0, 'the turn is ended');
      t.ok(pieces < 10_000, `after ${pieces * 64} KiB`);
      client.socket.destroy();
      await eventually(() => server.stats().connections === 0, 'nothing is left');
    });

    t.test('closing the server ends a running stream properly', async (t) => {
      const { port, runtime, server } = await chat(t, script([say('begun'), gate()]));
      const client = await RawClient.connect(t, port);
      client.send(request({ messages: [user('hi')], stream: true }));
      await client.until(/begun/);
      await runtime.close();
      await server.close(10_000);
      t.match(await client.untilClosed(), /"code":"shutting_down"\}\}\n\n\r\n0\r\n\r\n$/);
    });
  });
}
