/** A process that ends during a run: another process resumes the run, and one review is published. */
import t, { type Test } from 'tap';
import type { ReviewStore } from '../../../src/review/store/index.ts';
import { Gate, World } from './world.ts';

interface Crash {
  /** Where the first process hangs for ever. */
  readonly state: string;
  readonly hang: (world: World, gate: Gate) => void;
  /** How often the agent is asked in all. */
  readonly asked: number;
  readonly interrupted: readonly string[];
}
const once = (gate: Gate) => {
  let isFirst = true;
  return async () => {
    const mustHang = isFirst;
    isFirst = false;
    if (mustHang) await gate.pass();
  };
};

/** A store whose first call of `method` hangs before or after its work. */
function hanging(
  store: ReviewStore,
  method: 'setFact' | 'putDraft' | 'putWrite',
  when: 'before' | 'after',
  gate: Gate,
) {
  const hang = once(gate);
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name !== method || typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        if (when === 'before') await hang();
        const result: unknown = await value.apply(target, args);
        if (when === 'after') await hang();
        return result;
      };
    },
  });
}

/** The first process dies at `gate`; the second one brings the run to its end. */
async function survives(t: Test, world: World, gate: Gate, first: World['runs']) {
  const runId = await world.dispatch();
  first.start();
  await gate.reached.promise;
  const before = await world.run(runId);
  const second = world.another('two', await world.subject.open('two'));
  await world.leasesRunOut();
  second.start();
  world.runs = second;
  const run = await world.ended(runId);
  t.equal(run.state, 'done');
  gate.open();
  await world.until(() => first.active === 0);
  await world.send();
  t.equal(world.forge.of('review').length, 1, 'one review is published');
  t.equal(world.forge.of('summary').length, 1);
  t.match(await world.store.draftOfRun(runId), { status: 'published' });
  t.match(await world.run(runId), { state: 'done', attempt: 2 }, 'the late process changes nothing');
  return before;
}

const crashes: readonly Crash[] = [
  {
    state: 'preparing',
    hang: (world, gate) => {
      world.git.onPrepare = once(gate);
    },
    asked: 1,
    interrupted: [],
  },
  {
    state: 'reviewing',
    hang: (world, gate) => {
      world.agent.onReview = once(gate);
    },
    asked: 2,
    interrupted: ['thread-1'],
  },
];
for (const { state, hang, asked, interrupted } of crashes) {
  t.test(`in ${state}`, async (t) => {
    const world = await World.create(t);
    const gate = new Gate();
    hang(world, gate);
    t.match(await survives(t, world, gate, world.runs), { state });
    t.equal(world.agent.asked.length, asked);
    t.same(world.agent.interrupted, interrupted, 'a turn that nobody listens to is ended before another begins');
  });
}

const moments = [
  { state: 'reviewing', method: 'setFact', when: 'before', asked: 2 },
  { state: 'reviewing', method: 'setFact', when: 'after', asked: 1 },
  { state: 'drafting', method: 'putDraft', when: 'before', asked: 1 },
  { state: 'drafting', method: 'putDraft', when: 'after', asked: 1 },
  { state: 'publishing', method: 'putWrite', when: 'before', asked: 1 },
  { state: 'publishing', method: 'putWrite', when: 'after', asked: 1 },
] as const;
for (const { state, method, when, asked } of moments) {
  t.test(`in ${state}, ${when} ${method}`, async (t) => {
    const world = await World.create(t);
    const gate = new Gate();
    const first = world.another('one', hanging(world.store, method, when, gate));
    t.match(await survives(t, world, gate, first), { state });
    t.equal(world.agent.asked.length, asked, 'what was handed in is not asked for again');
  });
}

t.test('a run whose writes wait for the source frees its slot, and is done when they are sent', async (t) => {
  const world = await World.create(t);
  world.runs.start();
  const runId = await world.dispatch();
  await world.until(async () => (await world.run(runId)).nextAttemptAt !== null, { sends: false, ms: 1_000 });
  t.match(await world.run(runId), { state: 'publishing', attempt: 1, error: null });
  await world.until(() => world.runs.active === 0, { sends: false });
  await world.send();
  t.match(await world.store.draftOfRun(runId), { status: 'published' }, 'without the run');
  await world.pausesAreOver();
  t.match(await world.ended(runId), { state: 'done', attempt: 1 });
  t.equal(world.forge.of('review').length, 1);
});

t.test('a run that crashes its process each time fails after the last attempt', async (t) => {
  const world = await World.create(t);
  const runId = await world.dispatch();
  const gates: Gate[] = [];
  world.agent.onReview = async () => {
    const gate = new Gate();
    gates.push(gate);
    await gate.pass();
  };
  for (const node of ['a', 'b', 'c', 'd']) {
    const before = gates.length;
    const runs = world.another(node);
    runs.start();
    await world.until(async () => gates.length > before || (await world.run(runId)).finishedAt !== null);
    await world.leasesRunOut();
    if ((await world.run(runId)).finishedAt !== null) break;
  }
  t.match(await world.ended(runId), { state: 'failed', error: { code: 'attemptsExhausted' } });
  t.equal(gates.length, 3);
  for (const gate of gates) gate.fail(new Error('late'));
});

t.test('a stopping process releases its runs, and another continues at once', async (t) => {
  const world = await World.create(t);
  const gate = new Gate();
  world.agent.onReview = (_, { signal }) => gate.pass(signal);
  world.runs.start();
  const runId = await world.dispatch();
  await gate.reached.promise;
  await world.runs.stop();
  t.ok(world.agent.hooks?.signal.aborted, 'its turn is ended');
  t.match(await world.run(runId), { state: 'reviewing', attempt: 1, finishedAt: null });
  world.agent.onReview = () => {};
  world.runs = world.another('two');
  world.runs.start();
  t.match(await world.ended(runId), { state: 'done', attempt: 1 });
  t.same(world.agent.interrupted, ['thread-1']);
  t.equal(world.forge.of('review').length, 1);
});

t.test('a publication requested in a process that ended is completed by the next one', async (t) => {
  const world = await World.create(t);
  world.runs.start();
  const runId = await world.dispatch('manual');
  await world.ended(runId);
  const { draftId = '' } = (await world.store.draftOfRun(runId)) ?? {};
  const gate = new Gate();
  const first = world.another('one', hanging(world.store, 'putWrite', 'before', gate));
  const publishing = first.publish(draftId, { override: false });
  await gate.reached.promise;
  t.equal(await world.send(), 0);
  world.another('two').start();
  await world.until(async () => (await world.store.draft(draftId))?.status === 'published');
  gate.open();
  await publishing;
  await world.send();
  t.equal(world.forge.of('review').length, 1);
});
