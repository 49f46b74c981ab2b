import { createHmac } from 'node:crypto';
import t from 'tap';
import { newReconcileState } from '../../../src/review/github/index.ts';
import { receiveHooks } from '../forge/receiver.ts';
import { world } from './harness.ts';

const minute = 60_000;

t.test('deliveries that were missed are asked for again until they arrive', async (t) => {
  const all = await world(t);
  const { forge, source } = all;
  const receiver = await receiveHooks(t, forge, 503);
  const { seen } = receiver;
  await forge.deliver('pull_request', { action: 'opened' }, { guid: 'one' });
  receiver.status = 202;
  await forge.deliver('pull_request', { action: 'closed' }, { guid: 'two' });
  const failed = await source.listFailedDeliveries(0);
  t.match(failed, [{ guid: 'one', id: '9007199254740994', event: 'pull_request', action: 'opened', statusCode: 503 }]);
  const first = await source.reconcile(newReconcileState, Date.now());
  t.match(first.redelivered, [{ guid: 'one' }]);
  t.equal(seen.filter(({ guid }) => guid === 'one').length, 2);
  for (const { body, signature } of seen) {
    t.equal(signature, `sha256=${createHmac('sha256', 'hush').update(body).digest('hex')}`);
  }
  const second = await source.reconcile(first.state, Date.now());
  t.match(second, { redelivered: [], lost: [], waiting: 0 });
  t.strictSame(second.state.attempts, {});
});

t.test('redeliveries are few at a time, with growing pauses, and end', async (t) => {
  const all = await world(t, { redeliveries: 3, redeliveryAttempts: 2 });
  const { forge, source } = all;
  await receiveHooks(t, forge, 503);
  for (let at = 0; at < 5; at += 1) await forge.deliver('ping', { at }, { guid: `g${at}` });
  let now = Date.now();
  let { state, ...result } = await source.reconcile(newReconcileState, now);
  t.match(result, { waiting: 2, lost: [] });
  t.strictSame(
    result.redelivered.map(({ guid }) => guid),
    ['g0', 'g1', 'g2'],
    'the oldest first',
  );
  ({ state, ...result } = await source.reconcile(state, now));
  t.strictSame(
    result.redelivered.map(({ guid }) => guid),
    ['g3', 'g4'],
  );
  const lost = new Set<string>();
  for (let look = 0; look < 8; look += 1) {
    now += 5 * minute;
    ({ state, ...result } = await source.reconcile(state, now));
    for (const { guid } of result.lost) {
      t.notOk(lost.has(guid), 'told once');
      lost.add(guid);
    }
  }
  t.equal(lost.size, 5);
});

t.test('a delivery that GitHub does not know any more is given up', async (t) => {
  const all = await world(t);
  await receiveHooks(t, all.forge, 503);
  await all.forge.deliver('ping', {}, { guid: 'old' });
  t.equal(await all.source.redeliver('12345'), false);
  all.forge.faults.add({
    kind: 'status',
    status: 404,
    message: 'Not Found',
    matches: (_, path) => path.endsWith('/attempts'),
  });
  t.match(await all.source.reconcile(newReconcileState, Date.now()), { lost: [{ guid: 'old' }], redelivered: [] });
});
