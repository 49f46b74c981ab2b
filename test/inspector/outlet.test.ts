import superjson from 'superjson';
import t from 'tap';
import { createActor, createMachine } from 'xstate';
import { wireOf } from '../../src/inspect/index.ts';
import { limits } from '../../src/inspector/limits.ts';
import { createOutlet } from '../../src/inspector/outlet.ts';
import { createWatch } from '../../src/inspector/watch.ts';
import type { InspectorFact, InspectorRecords } from '../../src/protocol/index.ts';
import { HandClock } from '../inspect/hand-clock.ts';

const counter = createMachine({
  id: 'counter',
  context: { text: 'x'.repeat(900) },
  initial: 'a',
  states: { a: { on: { GO: 'b' } }, b: { on: { GO: 'a' } } },
});

function program() {
  const clock = new HandClock();
  const watch = createWatch({}, clock);
  const outlet = createOutlet(watch, (record) => superjson.stringify(record), clock);
  const ask = (after: string | null, viewer = 'page') =>
    outlet.ask({ ask: 'records', viewer, after }) as Promise<InspectorRecords>;
  return { clock, watch, outlet, ask, actor: createActor(counter, { inspect: watch.inspect }) };
}

const kinds = ({ records }: InspectorRecords) => records.map(({ event }) => event);

t.test('a page receives each machine once, before its first actor', async (t) => {
  const { watch, ask, actor } = program();
  actor.start();
  createActor(counter, { inspect: watch.inspect }).start();
  const first = await ask(null);
  t.equal(first.isReset, true);
  t.strictSame(kinds(first), ['machine', 'actor', 'actor']);
  createActor(counter, { inspect: watch.inspect }).start();
  t.match(await ask(first.cursor), { isReset: false, records: [{ event: 'actor' }] });
});

t.test('a request without new records waits for the next record', async (t) => {
  const { clock, ask, actor } = program();
  actor.start();
  const { cursor } = await ask(null);
  const waiting = ask(cursor);
  await Promise.resolve();
  actor.send({ type: 'GO' });
  clock.pass(16);
  t.strictSame(kinds(await waiting), ['transition']);
  t.equal(clock.armed, 0, 'no timer is left');
});

t.test(
  'a request without new records is answered after a time limit, and a later request ends an earlier one',
  async (t) => {
    const { clock, ask } = program();
    const { cursor } = await ask(null);
    const quiet = ask(cursor);
    await Promise.resolve();
    clock.pass(limits.waitMs);
    const { cursor: next, records } = await quiet;
    t.strictSame(records, []);
    const older = ask(next);
    const again = ask('unknown');
    t.match(await older, { isReset: false, records: [] });
    t.match(await again, { isReset: true });
  },
);

t.test('a page that requests records too late starts over, and nothing was queued for it', async (t) => {
  const { ask, actor } = program();
  actor.start();
  const { cursor } = await ask(null);
  for (let step = 0; step < 2 * limits.records; step += 1) actor.send({ type: 'GO' });
  const answer = await ask(cursor);
  t.equal(answer.isReset, true);
  t.equal(kinds(answer)[0], 'dropped');
});

t.test('an answer has a size limit, and the next answer continues', async (t) => {
  const { ask, actor } = program();
  actor.start();
  for (let step = 0; step < 900; step += 1) actor.send({ type: 'GO' });
  let answer = await ask(null);
  const steps: number[] = [];
  let count = 0;
  for (;;) {
    const chars = answer.records.reduce((sum, { data }) => sum + data.length, 0);
    t.ok(chars < limits.answerChars + 64 * 1024, `${chars} characters`);
    count += 1;
    for (const { event, data } of answer.records)
      if (event === 'transition') steps.push((superjson.parse(data) as { step: number }).step);
    if (steps.at(-1) === 900) break;
    answer = await ask(answer.cursor);
    t.equal(answer.isReset, false);
  }
  t.ok(count > 1);
  t.strictSame(
    steps,
    Array.from({ length: 900 }, (_, index) => index + 1),
  );
});

t.test('a fact is read from the current context, and invalid requests are refused', async (t) => {
  const { outlet, actor, ask } = program();
  actor.start();
  const fact = (fact: string) => outlet.ask({ ask: 'fact', actor: '1', fact }) as Promise<InspectorFact>;
  t.equal((await fact('text')).text?.length, 902);
  t.equal((await fact('other')).text, null);
  actor.stop();
  t.equal((await fact('text')).text, null);
  for (const question of [
    null,
    {},
    { ask: 'records' },
    { ask: 'send', event: {} },
    { ask: 'records', viewer: 'x'.repeat(65), after: null },
  ])
    await t.rejects(outlet.ask(question), TypeError);
  for (let viewer = 0; viewer < 3 * limits.viewers; viewer += 1) await ask(null, `page ${viewer}`);
  t.match(await ask('lost', 'page 0'), { isReset: true }, 'pages beyond the limit start over');
});

t.test('names and numbers that superjson refuses do not keep the records from a page', async (t) => {
  const clock = new HandClock();
  const watch = createWatch({}, clock);
  const outlet = createOutlet(watch, wireOf, clock);
  const context = JSON.parse('{"__proto__": 1, "constructor": 2, "prototype": null}');
  Object.assign(context, { constructor: new Date(0), none: Number.NaN, all: Number.POSITIVE_INFINITY, minus: -0 });
  const machine = createMachine({ id: 'odd', context, initial: 'prototype', states: { prototype: {} } });
  createActor(machine, { inspect: watch.inspect }).start();
  const { records } = (await outlet.ask({ ask: 'records', viewer: 'page', after: null })) as InspectorRecords;
  t.strictSame(
    records.map(({ event }) => event),
    ['machine', 'actor'],
  );
  t.match(superjson.parse(records[1]?.data ?? ''), {
    states: ['prototype'],
    projection: {
      ...{ '"__proto__"': 1, '"constructor"': new Date(0), '"prototype"': null },
      ...{ none: 'NaN', all: 'Infinity', minus: '0' },
    },
  });
  const fact = await outlet.ask({ ask: 'fact', actor: '1', fact: '"constructor"' });
  t.match(fact, { text: '1970-01-01T00:00:00.000Z' });
});

t.test('the end of the inspector answers waiting pages', async (t) => {
  const { outlet, ask } = program();
  const { cursor } = await ask(null);
  const waiting = ask(cursor);
  await Promise.resolve();
  outlet.close();
  t.strictSame((await waiting).records, []);
});
