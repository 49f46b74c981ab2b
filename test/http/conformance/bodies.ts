/** Bodies: limits, pace, JSON, clients that go away. */
import type { Test } from 'tap';
import * as v from 'valibot';
import { type BodyGate, HttpError, json, type Route, text } from '../../../src/http/index.ts';
import { type Adapter, codeOf, eventually, exchange, RawClient, rawRequest, start } from '../support.ts';

const echo: Route<undefined> = {
  method: 'POST',
  path: '/echo',
  handler: async (context) => json(200, await context.json(v.looseObject({ name: v.string() }))),
};
const size: Route<undefined> = {
  method: 'POST',
  path: '/size',
  handler: async (context) => text(200, String((await context.bytes()).byteLength)),
};
const chunk = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n`;

export function bodies(t: Test, adapter: Adapter): void {
  t.test('a JSON body is parsed, and an invalid, empty or wrongly encoded one is refused', async (t) => {
    const { url } = await start(t, adapter, { routes: [echo] });
    const post = async (body: string | Uint8Array<ArrayBuffer> | undefined, type = 'application/json') => {
      const answer = await fetch(`${url}/echo`, {
        method: 'POST',
        headers: { 'content-type': type },
        body: body ?? null,
      });
      return { status: answer.status, body: await answer.text() };
    };
    t.strictSame(await post('{"name":"x","more":[1]}'), { status: 200, body: '{"name":"x","more":[1]}' });
    t.equal((await post('{"name":"x"}', 'text/plain')).status, 200, 'the content type is tolerated');
    t.equal(
      (await post(new Uint8Array([0xef, 0xbb, 0xbf, ...Buffer.from('{"name":"x"}')]))).status,
      200,
      'so is a BOM',
    );
    for (const bad of ['{"name":', '', 'null', '[]', '"x"', new Uint8Array([0x22, 0xff, 0x22]), '['.repeat(900)]) {
      const answer = await post(bad);
      t.equal(answer.status, 400, String(bad).slice(0, 20));
      t.equal(codeOf(answer.body), 'invalidRequest');
    }
    const wrong = await post('{"name":"", "token":"hunter2"}'.replace('""', '1234567'));
    t.match(wrong.body, /"path":"name"/);
    t.notMatch(wrong.body, /1234567|hunter2/, 'what was received is not repeated');
    t.equal((await post(undefined)).status, 400);
  });

  t.test('__proto__ keys are removed in any spelling and pollute no prototype', async (t) => {
    const { url } = await start(t, adapter, { routes: [echo] });
    for (const key of ['__proto__', '\\u005f_proto__', '__pr\\u006fto__']) {
      const body = `{"name":"x","${key}":{"polluted":true},"deep":{"${key}" : {"polluted":true}}}`;
      const answer = await fetch(`${url}/echo`, { method: 'POST', body });
      t.strictSame(await answer.json(), { name: 'x', deep: {} });
    }
    t.equal(Object.hasOwn(Object.prototype, 'polluted'), false);
  });

  t.test('a handler that reads late gets the whole body', async (t) => {
    const { port } = await start(t, adapter, {
      routes: [
        {
          method: 'POST',
          path: '/late',
          handler: async (context: Parameters<typeof size.handler>[0]) => {
            await new Promise((resolve) => setTimeout(resolve, 20));
            const [first, second] = await Promise.all([context.bytes(), context.bytes()]);
            return text(200, `${Buffer.from(first).toString()}|${first === second}`);
          },
        },
      ],
    });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('POST', '/late', { 'Content-Length': '6' }, 'abc'));
    client.send('def');
    await client.until(/abcdef\|true/);
  });

  t.test('chunked bodies and Expect: 100-continue are supported', async (t) => {
    const { port } = await start(t, adapter, { routes: [size] });
    const chunked = await RawClient.connect(t, port);
    chunked.send(rawRequest('POST', '/size', { 'Transfer-Encoding': 'chunked' }, chunk('hello')));
    chunked.send(`${chunk(' world')}0\r\n\r\n`);
    t.match(await chunked.until(/\r\n\r\n11$/), /^HTTP\/1\.1 200 /);
    const expecting = await RawClient.connect(t, port);
    expecting.send(rawRequest('POST', '/size', { 'Content-Length': '5', Expect: '100-continue' }));
    await expecting.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
    expecting.send('hello');
    t.match(await expecting.until(/\r\n\r\n5$/), /HTTP\/1\.1 200 /);
  });

  t.test('a body beyond the limit is refused by its declared length at once, or by the received bytes', async (t) => {
    const { port, url } = await start(t, adapter, { routes: [size, { ...size, path: '/small', bodyLimit: 4 }] });
    const declared = await RawClient.connect(t, port);
    declared.send(rawRequest('POST', '/size', { 'Content-Length': '1001' }));
    t.match(
      await declared.until(/payloadTooLarge/),
      /^HTTP\/1\.1 413 [\s\S]*connection: close/i,
      'no byte of the body was needed',
    );

    const arriving = await RawClient.connect(t, port);
    arriving.send(rawRequest('POST', '/size', { 'Transfer-Encoding': 'chunked' }, chunk('x'.repeat(600))));
    arriving.send(chunk('x'.repeat(600)));
    t.match(await arriving.until(/payloadTooLarge/), /^HTTP\/1\.1 413 /);

    const fits = await fetch(`${url}/size`, { method: 'POST', body: 'x'.repeat(1000) });
    t.equal(await fits.text(), '1000');
    const limited = await fetch(`${url}/small`, { method: 'POST', body: '12345' });
    t.equal(limited.status, 413);
    t.equal(codeOf(await limited.text()), 'payloadTooLarge');
  });

  t.test('a client that sends far too much receives its 413', async (t) => {
    const { url } = await start(t, adapter, { routes: [size] });
    for (let round = 0; round < 10; round += 1) {
      const answer = await fetch(`${url}/size`, { method: 'POST', body: Buffer.alloc(2_000_000) });
      t.equal(answer.status, 413);
      t.equal(codeOf(await answer.text()), 'payloadTooLarge');
    }
  });

  t.test('a body that stalls is 408', async (t) => {
    const { port } = await start(t, adapter, { routes: [size], limits: { bodyWindowMs: 100 } });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('POST', '/size', { 'Content-Length': '10' }, 'abc'));
    t.match(await client.until(/requestTimeout/), /^HTTP\/1\.1 408 /);
    await client.untilClosed();
  });

  t.test('regression: M5 a gate counts received bytes, ends a body that does not begin, and refuses one', async (t) => {
    const calls: string[] = [];
    const refusals: ((error: HttpError) => void)[] = [];
    const bodyGate: BodyGate = {
      firstByteMs: 100,
      open(_, refuse) {
        refusals.push(refuse);
        return {
          received: (bytes) => calls.push(`received ${bytes}`),
          complete: () => calls.push('complete'),
          close: () => calls.push('close'),
        };
      },
    };
    const { port } = await start(t, adapter, {
      limits: { bodyBytes: 30_000_000 },
      routes: [
        {
          ...{ method: 'POST', path: '/', bodyGate },
          handler: async (context) => json(200, (await context.bytes()).length),
        },
      ],
    });
    const announced = { 'Content-Length': '20000000' };
    const silent = await RawClient.connect(t, port);
    silent.send(rawRequest('POST', '/', announced));
    t.match(await silent.untilClosed(), /^HTTP\/1\.1 408 [\s\S]*requestTimeout/);
    t.same(calls.splice(0), ['close'], 'nothing was counted');

    const refused = await RawClient.connect(t, port);
    refused.send(rawRequest('POST', '/', announced, 'abc'));
    await eventually(() => calls.includes('received 3'), 'the first bytes are counted');
    refusals.at(-1)?.(new HttpError(503, 'intakeUnavailable', 'Full.'));
    t.match(await refused.until(/intakeUnavailable/), /^HTTP\/1\.1 503 /);
    t.same(calls.splice(0), ['received 3', 'close']);
    refused.socket.destroy();

    const gone = await RawClient.connect(t, port);
    gone.send(rawRequest('POST', '/', announced, 'ab'));
    await eventually(() => calls.includes('received 2'), 'the first bytes are counted');
    gone.socket.destroy();
    await eventually(() => calls.includes('close'), 'a client that goes frees its bytes');
    calls.splice(0);

    // Control: a whole body is taken, and counted once.
    t.equal((await exchange(port, rawRequest('POST', '/', { 'Content-Length': '3' }, 'abc'))).body, '3');
    t.same(calls.splice(0), ['received 3', 'complete', 'close']);
  });

  t.test('a disconnect within the body ends the handler', async (t) => {
    let outcome = '';
    const { port, bugs, url } = await start(t, adapter, {
      routes: [
        {
          method: 'POST',
          path: '/wait',
          handler: async (context: Parameters<typeof size.handler>[0]) => {
            outcome = 'waiting';
            await context.bytes().catch((error: unknown) => {
              outcome = String(error);
              throw error;
            });
            return text(200, 'never');
          },
        },
      ],
    });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('POST', '/wait', { 'Content-Length': '10' }, 'abc'));
    await eventually(() => outcome === 'waiting', 'the handler waits');
    client.socket.destroy();
    await eventually(() => /closed the connection/.test(outcome), 'the wait ends');
    t.equal((await fetch(`${url}/nothing`)).status, 404);
    t.equal(bugs.length, 0);
  });

  t.test('an unread body does not affect the next request', async (t) => {
    const { port } = await start(t, adapter, {
      routes: [{ method: 'POST', path: '/deaf', handler: () => text(200, 'deaf;') }],
    });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('POST', '/deaf', { 'Content-Length': '9' }, 'GET / HTT'));
    await client.until(/deaf;/);
    client.send(rawRequest('POST', '/deaf', { 'Content-Length': '1' }, 'x'));
    await client.until(/deaf;[\s\S]*deaf;/);
  });

  t.test('GET with a body is answered', async (t) => {
    const { port } = await start(t, adapter, { routes: [{ ...size, method: 'GET' }] });
    t.equal((await exchange(port, rawRequest('GET', '/size', { 'Content-Length': '3' }, 'abc'))).body, '3');
  });
}
