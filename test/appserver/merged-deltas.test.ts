/** Deltas on their way to a page: fewer frames, the same text, in the same order. */
import { EventEmitter, once } from 'node:events';

import t, { type Test } from 'tap';
import type { ThreadEvent } from '../../src/agent/index.ts';
import { Connection } from '../../src/appserver/connection.ts';
import { type Delta, MergedDeltas } from '../../src/appserver/merged-deltas.ts';
import { defaults } from '../../src/protocol/index.ts';

/** A window that no test outlives: only `flush` sends. */
const endless = 3_600_000;
const ids = { threadId: 'thread', turnId: 'turn' };
const text = (delta: string, itemId = 'a'): Delta => ({
  method: 'item/agentMessage/delta',
  params: { ...ids, itemId, deltaKind: 'agentMessage', delta },
});
const output = (delta: string, itemId = 'a'): Delta => ({
  method: 'item/commandExecution/outputDelta',
  params: { ...ids, itemId, deltaKind: 'output', delta },
});

function merged(t: Test, windowMs = endless) {
  const sent: string[] = [];
  const news = new EventEmitter();
  const deltas = new MergedDeltas(({ method, params }) => {
    sent.push(`${method.split('/')[1]} ${params.itemId} ${params.delta}`);
    news.emit('sent');
  }, windowMs);
  t.teardown(() => deltas.close());
  return { deltas, sent, news };
}

t.test('the first delta is sent at once, the following ones of its item as one', async (t) => {
  const { deltas, sent } = merged(t);
  for (const piece of ['one ', 'two ', 'three']) deltas.add(text(piece));
  t.same(sent, ['agentMessage a one ']);
  deltas.flush();
  t.same(sent, ['agentMessage a one ', 'agentMessage a two three']);
  deltas.flush();
  t.equal(sent.length, 2, 'nothing is sent twice');
});

t.test('deltas of another item or another kind are not merged, and keep their place', async (t) => {
  const { deltas, sent } = merged(t);
  deltas.add(text('0'));
  deltas.add(text('1'));
  deltas.add(text('2', 'b'));
  deltas.add(text('3', 'b'));
  deltas.add(output('4', 'b'));
  deltas.flush();
  t.same(sent, ['agentMessage a 0', 'agentMessage a 1', 'agentMessage b 23', 'commandExecution b 4']);
});

t.test('held deltas are sent at the end of the window, and after a silence the next delta at once', async (t) => {
  const { deltas, sent, news } = merged(t, 1);
  deltas.add(text('1'));
  deltas.add(text('2'));
  deltas.add(text('3'));
  await once(news, 'sent');
  t.same(sent, ['agentMessage a 1', 'agentMessage a 23']);
});

t.test('a closed connection gets nothing more', async (t) => {
  const { deltas, sent } = merged(t);
  deltas.add(text('1'));
  deltas.add(text('2'));
  deltas.close();
  deltas.flush();
  t.same(sent, ['agentMessage a 1']);
});

t.test('a slow reader loses deltas, and gets everything else', async (t) => {
  let hear: (event: ThreadEvent) => void = () => {};
  const sent: string[] = [];
  const wire = { bufferedBytes: 0, send: (frame: string) => sent.push(frame) };
  const connection = new Connection({
    wire,
    methods: { initialize: () => ({ result: {} }) } as never,
    feed: {
      join(listener: (event: ThreadEvent) => void) {
        hear = listener;
        return () => {};
      },
    } as never,
    respond: () => false as never,
    onBug: () => 'bug',
  });
  t.teardown(() => connection.close());
  const params = { clientInfo: { name: 'test', version: '1' }, capabilities: {} };
  connection.receive(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }));
  connection.receive(JSON.stringify({ jsonrpc: '2.0', method: 'initialized' }));
  sent.length = 0;
  hear(text('read'));
  wire.bufferedBytes = defaults.jsonRpc.bufferedBytes;
  hear(text('lost'));
  hear({ method: 'thread/closed', params: { threadId: 'thread' } } as never);
  wire.bufferedBytes = 0;
  hear(text('read again'));
  t.same(
    sent.map((frame) => JSON.parse(frame).params.delta ?? JSON.parse(frame).method),
    ['read', 'thread/closed', 'read again'],
  );
});
