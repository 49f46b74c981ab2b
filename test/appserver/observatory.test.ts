/** Inspection of the actors of an agent server, also after their end. */
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

const input: TurnInput = {
  threadId: 'th',
  turnId: 'tu',
  maxRounds: 3,
  maxRetries: 0,
  fallbackModels: 0,
  endChecks: 0,
  isDelegated: false,
  maxQuotaWaitMs: 0,
  asksForQuota: true,
  seed: 1,
};

/** A turn whose first step fails. */
function failingTurn() {
  const machine = turnMachine.provide({
    actors: { prepare: fromPromise(() => Promise.reject(new Error('no model: api_key=SECRET'))) },
  });
  const actor = createActor(machine, { input });
  actor.subscribe({ error: () => {} });
  actor.on('turn.ending', () => actor.send({ type: 'END.STORED' }));
  return actor;
}

const finished = (actor: ReturnType<typeof failingTurn>) =>
  new Promise<void>((resolve) => actor.subscribe({ complete: resolve }));

t.test('a turn that ended before the first viewer is sent with all its records', async (t) => {
  const { made } = observatory();
  const turn = failingTurn();
  made.add(turn, { id: 'th/tu', machine: 'turn', title: 'tu of th' });
  const end = finished(turn);
  turn.start();
  await end;
  const source = await made.source();
  const text = Buffer.concat(source.replay(undefined) as Uint8Array[]).toString();
  t.same(
    [...text.matchAll(/^event: (\w+)$/gm)].map(([, type]) => type),
    ['actor', 'transition', 'transition', 'gone'],
  );
  t.match(text, '"title":"tu of th"');
  t.match(text, '"endedAt"');
  t.match(text, '"event":"error(prepare)"');
  t.match(text, '"event":"END.STORED"');
  t.match(text, 'api_key=…');
  t.notMatch(text, 'SECRET');
  t.equal(await made.source(), source, 'one stream for all');
});

t.test('a child actor names its parent and root', async (t) => {
  const { made } = observatory();
  made.add(failingTurn(), { id: 'one', machine: 'turn', title: 'One' });
  made.add(failingTurn(), { id: 'two', machine: 'turn', title: 'Two', parent: 'one' });
  const text = Buffer.concat((await made.source()).replay(undefined) as Uint8Array[]).toString();
  t.match(text, '"id":"two","parent":"one"');
  const stately = Buffer.concat((await made.stately()).replay(undefined) as Uint8Array[]).toString();
  t.match(stately, '"sessionId":"two","rootId":"one"');
});

t.test('an actor that cannot be inspected runs without inspection', async (t) => {
  const { made, errors } = observatory();
  const promise = createActor(fromPromise(async () => 1));
  t.doesNotThrow(() => made.add(promise, { id: 'p', machine: 'p', title: 'p' }));
  t.equal(errors.length, 1);
  promise.start();
  t.equal(await toPromise(promise), 1);
});
