import fc from 'fast-check';
import t from 'tap';
import * as v from 'valibot';
import { rpcErrors, rpcMethods } from '../../src/protocol/index.ts';
import { readMessage } from '../../src/rpc/index.ts';
import { says } from '../agent/helpers.ts';
import { Client, RpcFailure, RpcSuccess, startServer } from './harness.ts';

const methods = fc.oneof(fc.constantFrom(...Object.keys(rpcMethods), 'initialized', '__proto__'), fc.string());
const ids = fc.oneof(fc.integer(), fc.string(), fc.double(), fc.constant(null), fc.boolean(), fc.object());
const params = fc.oneof(
  fc.jsonValue(),
  fc.record(
    {
      threadId: fc.jsonValue(),
      turnId: fc.jsonValue(),
      input: fc.oneof(
        fc.jsonValue(),
        fc.array(fc.record({ type: fc.constantFrom('text', 'image', 'x'), text: fc.jsonValue() })),
      ),
      identity: fc.jsonValue(),
      config: fc.jsonValue(),
      displayName: fc.jsonValue(),
    },
    { requiredKeys: [] },
  ),
);
const messages = fc.record(
  {
    jsonrpc: fc.oneof({ weight: 9, arbitrary: fc.constant('2.0') }, { weight: 1, arbitrary: fc.jsonValue() }),
    id: ids,
    method: methods,
    params,
    result: fc.jsonValue(),
    error: fc.jsonValue(),
  },
  { requiredKeys: ['jsonrpc'] },
);
/** Texts of every degree of brokenness. Lone surrogates cannot be sent: a text frame is UTF-8. */
const frames = fc.oneof(
  { weight: 6, arbitrary: messages.map((message) => JSON.stringify(message)) },
  { weight: 1, arbitrary: fc.array(messages).map((message) => JSON.stringify(message)) },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme' }) },
  {
    weight: 1,
    arbitrary: fc.tuple(messages, fc.nat()).map(([message, at]) => JSON.stringify(message).slice(0, at % 60)),
  },
);

const codes = new Set<number>(Object.values(rpcErrors).map(({ code }) => code));

/** Answer that the protocol requires for a frame, computed without the server's parser except for responses. */
function expectation(text: string): { answered: boolean; id?: unknown; error?: number } {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch {
    return { answered: true, id: null, error: rpcErrors.parseError.code };
  }
  if (typeof frame !== 'object' || frame === null || Array.isArray(frame))
    return { answered: true, id: null, error: rpcErrors.invalidRequest.code };
  const { jsonrpc, id, method, params: given } = frame as Record<string, unknown>;
  const isId = typeof id === 'string' || Number.isSafeInteger(id);
  const isCall =
    jsonrpc === '2.0' &&
    typeof method === 'string' &&
    (given === undefined || (typeof given === 'object' && given !== null));
  if (isCall && id === undefined) return { answered: false };
  if (isCall && isId) return { answered: true, id };
  if (method === undefined && readMessage(text).kind === 'response') return { answered: false };
  return { answered: true, id: isId ? id : null, error: rpcErrors.invalidRequest.code };
}

t.test('every text is classified as one kind of frame without an exception', async () => {
  fc.assert(
    fc.property(frames, (text) => {
      const frame = readMessage(text);
      const { answered, error } = expectation(text);
      if (frame.kind === 'invalid') return answered && error === rpcErrors[frame.error].code;
      return answered === (frame.kind === 'request');
    }),
    { numRuns: 2_000 },
  );
});

t.test('a random frame gets its exact error, a valid answer, or no answer if it is not a request', async (t) => {
  const { server, log } = await startServer(t, says('x'));
  const client = await Client.ready(t, server.webSocketUrl);
  let round = 0;
  await fc.assert(
    fc.asyncProperty(frames, async (text) => {
      const from = client.messages.length;
      client.send(text);
      round += 1;
      const sentinel = `sentinel ${round}`;
      client.send({ jsonrpc: '2.0', id: sentinel, method: 'thread/read', params: { threadId: sentinel } });
      await client.until((message) => message.id === sentinel, 'the connection lives');
      const { answered, id, error } = expectation(text);
      // Messages of turns from earlier rounds have no id.
      const answers = client.messages
        .slice(from)
        .filter((message) => message.method === undefined && message.id !== sentinel);
      if (!answered) return answers.length === 0;
      // `model/list` is the only method that may be answered after a later request.
      const answer =
        answers[0] ??
        (await client.until(
          (message) => client.messages.indexOf(message) >= from && message.id === id,
          'a late answer',
        ));
      if (answer.id !== id) return false;
      if (error !== undefined) return answer.error?.code === error;
      if (answer.error)
        return (
          v.is(RpcFailure, answer) && codes.has(answer.error.code) && answer.error.code !== rpcErrors.internalError.code
        );
      return v.is(RpcSuccess, answer);
    }),
    { numRuns: 500 },
  );
  t.same(
    log.filter((line) => line.includes('"error"')),
    [],
    'no bug was logged',
  );
});

t.test('a frame at the size limit is answered, and a larger one closes the connection with 1009', async (t) => {
  const { server } = await startServer(t, says('x'));
  const limit = 4 * 1_048_576;
  const client = await Client.ready(t, server.webSocketUrl);
  const frameOf = (size: number) => {
    const head = '{"jsonrpc":"2.0","id":"big","method":"thread/read","params":{"threadId":"';
    return `${head}${'x'.repeat(size - head.length - 3)}"}}`;
  };
  client.send(frameOf(limit));
  const answer = await client.until(({ id }) => id === 'big', 'an answer to a frame of exactly the limit');
  t.equal(answer.error.code, rpcErrors.threadNotFound.code);
  const other = await Client.ready(t, server.webSocketUrl);
  client.send(frameOf(limit + 1));
  const { code } = await client.closed;
  t.ok(code === 1009 || code === 1006, `closed with ${code}`);
  await other.call('thread/list');
});
