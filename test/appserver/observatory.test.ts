/** The actors of an agent server, for whoever comes to look – often when it is over. */
import t from 'tap';
import { createActor, fromPromise, toPromise } from 'xstate';
import { type TurnInput, turnMachine } from '../../machines/index.ts';
import { Observatory } from '../../src/appserver/observatory.ts';
import type { Logger } from '../../src/log/index.ts';

function observatory() {
  const errors: unknown[] = [];
  const logger = { error: (...words: unknown[]) => errors.push(words) } as unknown as Logger;
  const made = new Observatory(logger);
  t.teardown(() => made.close());
  return { made, errors };
}

const input: TurnInput = { threadId: 'th', turnId: 'tu', maxRounds: 3 };

/** A turn whose first step fails. */
function failingTurn() {
  const machine = turnMachine.provide({
    actors: { prepare: fromPromise(() => Promise.reject(new Error('no model: api_key=SECRET'))) },
  });
  const actor = createActor(machine, { input });
  actor.subscribe({ error: () => {} });
  return actor;
}

const finished = (actor: ReturnType<typeof failingTurn>) =>
  new Promise<void>((resolve) => actor.subscribe({ complete: resolve }));

t.test('a turn that has ended before anybody looked is told with its whole story', async (t) => {
  const { made } = observatory();
  const turn = failingTurn();
  made.add(turn, { id: 'th/tu', machine: 'turn', title: 'tu of th' });
  const end = finished(turn);
  turn.start();
  await end;
  const source = await made.source();
  const told = Buffer.concat(source.replay(undefined) as Uint8Array[]).toString();
  t.same(
    [...told.matchAll(/^event: (\w+)$/gm)].map(([, type]) => type),
    ['actor', 'transition', 'gone'],
  );
  t.match(told, '"title":"tu of th"');
  t.match(told, '"endedAt"');
  t.match(told, '"event":"error(prepare)"');
  t.match(told, 'api_key=…');
  t.notMatch(told, 'SECRET');
  t.equal(await made.source(), source, 'one stream for all');
});

t.test('actors can be shown below one another', async (t) => {
  const { made } = observatory();
  made.add(failingTurn(), { id: 'one', machine: 'turn', title: 'One' });
  made.add(failingTurn(), { id: 'two', machine: 'turn', title: 'Two', parent: 'one' });
  const told = Buffer.concat((await made.source()).replay(undefined) as Uint8Array[]).toString();
  t.match(told, '"id":"two","parent":"one"');
  const stately = Buffer.concat((await made.stately()).replay(undefined) as Uint8Array[]).toString();
  t.match(stately, '"sessionId":"two","rootId":"one"');
});

t.test('what cannot be inspected goes on without', async (t) => {
  const { made, errors } = observatory();
  const promise = createActor(fromPromise(async () => 1));
  t.doesNotThrow(() => made.add(promise, { id: 'p', machine: 'p', title: 'p' }));
  t.equal(errors.length, 1);
  promise.start();
  t.equal(await toPromise(promise), 1);
});
