/** Facts of unfinished turns in the database. */
import t from 'tap';
import { Database } from '../../../src/agent/store/database.ts';
import { temporaryDirectory } from '../../hub/harness.ts';
import { neverEnds, says, service, talk, text } from '../helpers.ts';
import { opened } from './helpers.ts';

const call = { itemId: 'item_002', startedAt: 'now', tool: 'Exec', source: 'builtin', kind: 'command' } as const;

t.test('a running turn has facts, which its end deletes with its started calls', async (t) => {
  const { threads } = opened(t, temporaryDirectory(t));
  const { runtime } = service(neverEnds(), { store: threads });
  const { thread } = runtime.threads.start({});
  const { turn, begin, ended } = runtime.turns.start(thread.id, text('x'), undefined);
  t.match(JSON.parse(threads.turnActors.get(thread.id, turn.id) ?? ''), { version: 1, state: 'beginning' });
  begin();
  threads.turnActors.putCall(thread.id, turn.id, 'c1', call);
  t.same([...threads.turnActors.calls(thread.id, turn.id)], [['c1', call]]);
  runtime.turns.interrupt(thread.id, turn.id)();
  await ended;
  t.equal(threads.turnActors.get(thread.id, turn.id), undefined);
  t.equal(threads.turnActors.calls(thread.id, turn.id).size, 0);
});

t.test('the long options of a turn are written once, and stay when its other facts change', (t) => {
  const { threads } = opened(t, temporaryDirectory(t));
  const { runtime } = service(neverEnds(), { store: threads });
  const { thread } = runtime.threads.start({});
  const options = { instructions: ['be brief'], history: [], model: 'm' };
  const { turn } = runtime.turns.start(thread.id, text('x'), undefined, options);
  const { turnActors } = threads;
  const facts = JSON.parse(turnActors.get(thread.id, turn.id) ?? '');
  t.strictSame(facts.options, { model: 'm' });
  t.strictSame(JSON.parse(turnActors.request(thread.id, turn.id) ?? ''), { history: [], instructions: ['be brief'] });
  turnActors.put(thread.id, turn.id, '{}');
  t.ok(turnActors.request(thread.id, turn.id));
  turnActors.delete(thread.id, turn.id);
  t.equal(turnActors.request(thread.id, turn.id), undefined);
  t.end();
});

t.test('a turn in memory has no facts', async (t) => {
  const { threads } = opened(t, temporaryDirectory(t));
  const { runtime } = service(says('x'), { store: threads });
  const { thread } = runtime.threads.start({ isEphemeral: true });
  const { turn } = await talk(runtime, thread.id, 'x');
  t.equal(threads.turnActors.get(thread.id, turn.id), undefined);
});

t.test('only a flushed transaction waits for the disk', (t) => {
  const database = new Database(`${temporaryDirectory(t)}/state.db`);
  t.teardown(() => database.close());
  const level = () => Number(database.get('PRAGMA synchronous')?.['synchronous']);
  const [normal, full] = [1, 2];
  t.equal(database.transaction(level), normal);
  t.equal(database.transaction(level, true), full);
  t.throws(() =>
    database.transaction(() => {
      throw new Error('no');
    }, true),
  );
  t.equal(level(), normal, 'also after a failure');
  t.end();
});
