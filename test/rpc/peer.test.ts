/** The JSON-RPC peer by itself: two of them, joined by arrays. */
import fc from 'fast-check';
import t from 'tap';
import { JsonRpcError, Peer, type PeerOptions, type Reply, readMessage, rpcCodes } from '../../src/rpc/index.ts';

/** A peer whose sent messages are collected. */
function peerOf(options: Omit<PeerOptions, 'send'> = {}) {
  const sent: Record<string, unknown>[] = [];
  const peer = new Peer({ send: (text) => void sent.push(JSON.parse(text)), ...options });
  const take = (message: object) => peer.receive(JSON.stringify({ jsonrpc: '2.0', ...message }));
  return { peer, sent, take };
}

const turns = () => new Promise((resolve) => setImmediate(resolve));

t.test('requests get their own answers in any order, and unknown answers are ignored', async (t) => {
  const { peer, sent, take } = peerOf({ idOf: (number) => `ours-${number}` });
  const [one, two] = [peer.request('a', { x: 1 }), peer.request('b', undefined)];
  t.strictSame(sent, [
    { jsonrpc: '2.0', id: 'ours-0', method: 'a', params: { x: 1 } },
    { jsonrpc: '2.0', id: 'ours-1', method: 'b' },
  ]);
  t.equal(peer.pending, 2);
  for (const id of [7, null, 'ours-9']) take({ id, result: 'stray' });
  take({ id: 'ours-1', error: { code: -1, message: 'no', data: { a: 1 } } });
  take({ id: 'ours-0', result: 'yes' });
  t.equal(await one, 'yes');
  await t.rejects(two, { name: 'JsonRpcError', code: -1, message: 'no', data: { a: 1 } });
  take({ id: 'ours-0', result: 'again' });
  t.equal(peer.pending, 0);
});

t.test('an error answer of another shape still ends the request', async (t) => {
  for (const error of ['words', 7, [], { code: 'x' }]) {
    const { peer, take } = peerOf();
    const request = peer.request('a', {});
    take({ id: 0, error });
    await t.rejects(request, { code: rpcCodes.internalError, message: 'The error has no message.' });
  }
  const { peer, take } = peerOf({ errorOf: (error) => new TypeError(String(error)) });
  const request = peer.request('a', {});
  take({ id: 0, error: 'words' });
  await t.rejects(request, { name: 'TypeError', message: 'words' });
});

t.test('an abort and a deadline withdraw a request, and its late answer is ignored', async (t) => {
  const { peer, sent, take } = peerOf({ cancel: { method: 'cancelled' } });
  const stop = new AbortController();
  const aborted = peer.request('a', {}, { signal: stop.signal });
  const late = peer.request('b', {}, { deadline: { ms: 1, error: () => new Error('too late') } });
  stop.abort(new Error('stopped'));
  await t.rejects(aborted, { message: 'stopped' });
  await t.rejects(late, { message: 'too late' });
  take({ id: 0, result: 1 });
  take({ id: 1, result: 1 });
  t.match(sent.slice(2), [
    { method: 'cancelled', params: { requestId: 0 } },
    { method: 'cancelled', params: { requestId: 1 } },
  ]);
  await t.rejects(peer.request('c', {}, { signal: stop.signal }), { message: 'stopped' });
  t.equal(sent.length, 4, 'a request that was aborted before is not sent');
});

t.test('a withdrawn request aborts its handler and gets the answer of its protocol', async (t) => {
  const wait = ({ signal }: { readonly signal: AbortSignal }) =>
    new Promise<Reply>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  for (const answer of [{ code: -32_800, message: 'Request cancelled' }, undefined]) {
    const { peer, sent, take } = peerOf({
      onRequest: wait,
      cancel: { method: 'cancelled', ...(answer && { answer }) },
    });
    take({ id: 'x', method: 'wait' });
    take({ id: 'y', method: 'wait' });
    t.same([peer.answering, peer.isAnswering('x'), peer.isAnswering('z')], [2, true, false]);
    for (const requestId of ['z', {}, 'x']) take({ method: 'cancelled', params: { requestId } });
    await turns();
    t.strictSame(sent, answer ? [{ jsonrpc: '2.0', id: 'x', error: answer }] : []);
    t.equal(peer.answering, 1);
    peer.close(new Error('gone'));
    await turns();
    t.equal(peer.answering, 0, 'closing aborts the rest');
    t.equal(sent.length, answer ? 1 : 0, 'and sends nothing');
  }
});

t.test('a handler answers at once, later, with an error, or not at all', async (t) => {
  const order: string[] = [];
  const { sent, take } = peerOf({
    onRequest: ({ method }) => {
      if (method === 'silent') return undefined;
      if (method === 'refused') throw new JsonRpcError({ code: 5, message: 'refused', data: [1] });
      if (method === 'broken') throw new Error('secret');
      const reply = { result: method, after: () => void order.push(`${method} after ${sent.length}`) };
      return method === 'later' ? Promise.resolve(reply) : reply;
    },
  });
  for (const [id, method] of ['later', 'now', 'silent', 'refused', 'broken'].entries()) take({ id, method });
  t.match(sent, [
    { id: 1, result: 'now' },
    { id: 3, error: { code: 5, message: 'refused', data: [1] } },
    { id: 4, error: { code: rpcCodes.internalError, message: 'Internal error' } },
  ]);
  await turns();
  t.match(sent.at(3), { id: 0, result: 'later' });
  t.same(order, ['now after 1', 'later after 4']);
  const without = peerOf();
  without.take({ id: 1, method: 'any' });
  t.match(without.sent, [{ id: 1, error: { code: rpcCodes.methodNotFound } }]);
});

t.test('closing rejects open requests with its error, and the work after an answer is still done', async (t) => {
  const done = Promise.withResolvers<void>();
  const answered: number[] = [];
  const { peer, sent, take } = peerOf({
    onRequest: () => done.promise.then(() => ({ result: 1, after: () => void answered.push(1) })),
    onNotification: () => t.fail('a closed peer takes nothing'),
  });
  take({ id: 1, method: 'a' });
  const request = peer.request('b', {});
  peer.close(new Error('gone'));
  peer.close(new Error('twice'));
  await t.rejects(request, { message: 'gone' });
  await t.rejects(peer.request('c', {}), { message: 'gone' });
  take({ method: 'x' });
  peer.notify('y', {});
  done.resolve();
  await turns();
  t.equal(sent.length, 1);
  t.same(answered, [1]);
});

t.test('a lenient reader takes messages of programs that leave members out; a strict one refuses them', async (t) => {
  const cases: [object, string][] = [
    [{ id: 1, method: 'a' }, 'request'],
    [{ id: 1.5, method: 'a' }, 'request'],
    [{ id: null, method: 'a' }, 'notification'],
    [{ method: 'a', params: 7 }, 'notification'],
    [{ id: 1 }, 'response'],
    [{ id: 1, error: 'words' }, 'response'],
  ];
  for (const [message, kind] of cases) {
    const text = JSON.stringify(message);
    t.equal(readMessage(text, false).kind, kind, text);
    t.match(readMessage(text), { kind: 'invalid', error: 'invalidRequest' }, text);
  }
  t.match(readMessage('{"id":1,"result":2,"error":null}', false), { kind: 'response', error: undefined });
});

t.test('any text is read without an exception, by both readers', async () => {
  const values = fc.oneof(fc.jsonValue(), fc.constantFrom('2.0', null, 1, 'a'));
  const message = fc.record(
    { jsonrpc: values, id: values, method: values, params: values, result: values, error: values },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(
      fc.oneof(
        message.map((each) => JSON.stringify(each)),
        fc.json(),
        fc.string(),
      ),
      (text) => {
        const { peer } = peerOf();
        peer.receive(text);
        peer.receive(text, 0);
        return [readMessage(text), readMessage(text, false)].every(({ kind }) => kind.length > 0);
      },
    ),
    { numRuns: 1_000 },
  );
});
