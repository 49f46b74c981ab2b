/** Model of the actors view, computed from records without a browser. */
import fc from 'fast-check';
import superjson from 'superjson';
import t from 'tap';
import { agentServerMachine, catalogue } from '../../machines/index.ts';
import { createRecorder, graphOf, loadCharts, projections } from '../../src/inspect/index.ts';
import type { ActorRecord, Chart, InspectionRecord, TransitionRecord } from '../../src/protocol/index.ts';
import { fullState, learnKinds, lookOf, publicState } from '../../src/ui/parts/tone.ts';
import { factsBetween, statesBetween } from '../../src/ui/views/actors/diff.ts';
import { type Actor, type Actors, apply, limits, noActors } from '../../src/ui/views/actors/model.ts';
import { actorsAt, stopsOf } from '../../src/ui/views/actors/moments.ts';
import { actorsOf, readRecording, recordsOf, writeRecording } from '../../src/ui/views/actors/recording.ts';
import { outside, sequenceOf } from '../../src/ui/views/actors/sequence.ts';
import { heatOf, statisticsAt } from '../../src/ui/views/actors/statistics.ts';
import { countsOf, everything, TreeRows } from '../../src/ui/views/actors/tree-rows.ts';
import { explain } from '../../src/ui/views/actors/why.ts';
import { bringUp, createWorkspace } from './backend.ts';

const epoch = Date.UTC(2026, 10, 21, 14, 0, 0);
const at = (seconds: number): Date => new Date(epoch + seconds * 1000);

function born(id: string, more: Partial<ActorRecord> = {}): ActorRecord {
  const made = more.at ?? at(0);
  return {
    type: 'actor',
    id,
    parent: null,
    machine: 'agent-server',
    title: id,
    states: ['stopped'],
    at: made,
    projection: { failures: 0 },
    steps: 0,
    since: made,
    statistics: { stopped: { visits: 1, ms: 0 } },
    ...more,
  };
}

interface Move {
  readonly from?: string[];
  readonly to: string[];
  readonly event?: string;
  readonly more?: Partial<TransitionRecord>;
}

function moved(
  id: string,
  step: number,
  seconds: number,
  { from = [], to, event = 'GO', more }: Move,
): TransitionRecord {
  return {
    type: 'transition',
    id,
    step,
    at: at(seconds),
    event,
    source: null,
    edges: [],
    from,
    to,
    actions: [],
    projection: { failures: step },
    ...more,
  };
}

const only = (actors: Actors, id: string): Actor => {
  const actor = actors.byId.get(id);
  if (!actor) throw new Error(`no actor ${id}`);
  return actor;
};

t.test('a transition record changes the states of an actor; a record of its history does not', async (t) => {
  const history = [
    moved('a', 1, 1, { from: ['stopped'], to: ['starting'] }),
    moved('a', 2, 3, { from: ['starting'], to: ['running'] }),
  ];
  const now = born('a', { states: ['running'], steps: 2, since: at(3), projection: { failures: 2 } });
  const current = apply(noActors, [now, ...history], 0);
  t.match(only(current, 'a'), { states: ['running'], steps: 2, since: at(3) });
  t.same(
    only(current, 'a').log.map((entry) => entry.heldMs),
    [1000, 2000],
  );
  const later = apply(current, [moved('a', 3, 5, { from: ['running'], to: ['exited'] })], 99);
  t.match(only(later, 'a'), { states: ['exited'], steps: 3, since: at(5) });
  t.same(
    only(later, 'a').log.map((entry) => entry.heardAt),
    [0, 0, 99],
    'only new entries have a time of arrival',
  );
  t.same(apply(later, history, 1).byId.get('a'), only(later, 'a'), 'a repeated record changes nothing');
  t.equal(only(current, 'a').steps, 2, 'the earlier model is unchanged');
});

t.test('a gap between records drops the entries before it from the log', async (t) => {
  const first = apply(noActors, [born('a'), moved('a', 1, 1, { to: ['starting'] })], 0);
  const gap = apply(first, [moved('a', 5, 9, { to: ['running'] })], 0);
  t.same(
    only(gap, 'a').log.map((entry) => entry.record.step),
    [5],
  );
  t.equal(gap.held, 1);
});

t.test('statistics continue the counts of the server, and count a re-entry', async (t) => {
  const start = born('a', { statistics: { stopped: { visits: 3, ms: 500 } } });
  const again: Move = { from: ['stopped'], to: ['stopped'], more: { entered: ['stopped'] } };
  const quiet: Move = { from: ['stopped'], to: ['stopped'], more: { entered: [] } };
  const actors = apply(noActors, [start, moved('a', 1, 2, quiet), moved('a', 2, 4, again)], 0);
  t.same(statisticsAt(only(actors, 'a'), epoch + 5_000), { stopped: { visits: 4, ms: 5_500 } });
  t.equal(heatOf({ a: { visits: 1, ms: 30 }, 'a.b': { visits: 1, ms: 30 }, c: { visits: 1, ms: 70 } }).get('a.b'), 0.3);
  const gone = apply(actors, [{ type: 'gone', id: 'a', at: at(6), error: 'boom' }], 0);
  t.same(
    statisticsAt(only(gone, 'a'), epoch + 99_000),
    { stopped: { visits: 4, ms: 6_500 } },
    'no time passes after its end',
  );
  t.match(only(gone, 'a').ending, { error: 'boom' });
});

t.test('each log, all logs together, ended actors and dead letters are bounded', async (t) => {
  const many = Array.from({ length: 60 }, (_, index) => born(`a${index}`));
  let actors = apply(noActors, many, 0);
  for (let step = 1; step <= limits.log + 50; step += 10) {
    const batch = many.flatMap(({ id }) =>
      Array.from({ length: 10 }, (_, more) => moved(id, step + more, step + more, { to: [`s${(step + more) % 2}`] })),
    );
    actors = apply(actors, batch, 0);
  }
  t.ok(actors.held <= limits.held * 1.1, `${actors.held} held`);
  t.equal(
    [...actors.byId.values()].reduce((sum, { log }) => sum + log.length, 0),
    actors.held,
  );
  t.ok([...actors.byId.values()].every(({ log }) => log.length <= limits.log));
  const letters = Array.from({ length: limits.deadLetters + 9 }, (_, index): InspectionRecord => {
    return { type: 'deadLetter', id: 'gone', at: at(index), event: 'X', source: null };
  });
  t.equal(apply(actors, letters, 0).deadLetters.length, limits.deadLetters);
  const ends = Array.from({ length: limits.ended + 9 }, (_, index) => [
    born(`e${index}`, { at: at(index) }),
    { type: 'gone' as const, id: `e${index}`, at: at(index + 1) },
  ]).flat();
  const ended = apply(noActors, ends, 0);
  t.equal(ended.byId.size, limits.ended);
  t.notOk(ended.byId.has('e0'), 'the oldest is forgotten');
  t.equal(apply(ended, [{ type: 'dropped', count: 7, at: at(0) }], 0).byId.size, 0);
});

/** Random transitions of some actors with actor, target and pause; some actors end. */
const walks = fc.array(
  fc.record({
    who: fc.integer({ min: 0, max: 3 }),
    to: fc.constantFrom('a', 'b', 'b.x', 'b.y', 'c'),
    pause: fc.integer({ min: 0, max: 5 }),
    ends: fc.integer({ min: 0, max: 30 }).map((chance) => chance === 0),
  }),
  { maxLength: 60 },
);

function recordsOfWalk(walk: typeof walks extends fc.Arbitrary<infer T> ? T : never): InspectionRecord[] {
  const present = new Map<string, { states: string[]; steps: number }>();
  const records: InspectionRecord[] = [];
  let seconds = 0;
  for (const { who, to, pause, ends } of walk) {
    const id = `w${who}`;
    seconds += pause;
    const known = present.get(id);
    if (!known) {
      records.push(born(id, { at: at(seconds), states: ['a'], statistics: { a: { visits: 1, ms: 0 } } }));
      present.set(id, { states: ['a'], steps: 0 });
    } else if (ends) {
      records.push({ type: 'gone', id, at: at(seconds) });
      present.delete(id);
    } else {
      const states = to.includes('.') ? ['b', to] : [to];
      records.push(moved(id, known.steps + 1, seconds, { from: known.states, to: states }));
      present.set(id, { states, steps: known.steps + 1 });
    }
  }
  return records;
}

const shape = ({ states, steps, since, projection, ending, ...actor }: Actor) => ({
  states,
  steps,
  since,
  ending: ending?.at ?? null,
  projection: steps === 0 ? {} : projection,
  statistics: Object.fromEntries(
    Object.entries(statisticsAt({ ...actor, states, ending }, epoch + 1_000_000)).filter(
      ([, { visits }]) => visits > 0,
    ),
  ),
  log: actor.log.map(({ record }) => record.step),
});

const shapes = ({ byId }: Actors) => Object.fromEntries([...byId].map(([id, actor]) => [id, shape(actor)]));

t.test('the model of an earlier moment equals the model of the records until then', async (t) => {
  fc.assert(
    fc.property(walks, fc.nat(), (walk, place) => {
      const records = recordsOfWalk(walk);
      const whole = apply(noActors, records, 0);
      const stops = stopsOf(whole);
      const stop = stops[place % Math.max(1, stops.length)];
      if (!stop) return;
      // An actor created again under the same id is a new one: its earlier records are dropped.
      const ids = records.flatMap((record) => (record.type === 'actor' ? [record.id] : []));
      if (new Set(ids).size !== ids.length) return;
      const until = records.filter((record, index) => {
        const time = record.at.getTime();
        return time < stop.at || (time === stop.at && (record.type === 'actor' || index + 1 <= stop.n));
      });
      t.strictSame(shapes(actorsAt(whole, stop)), shapes(apply(noActors, until, 0)));
    }),
    { numRuns: 300 },
  );
});

t.test('a recording restores the recorded model', async (t) => {
  fc.assert(
    fc.property(walks, (walk) => {
      const whole = apply(noActors, recordsOfWalk(walk), 0);
      const text = writeRecording({ about: { kind: 'hub' }, recordedAt: at(9), charts: [], records: recordsOf(whole) });
      const read = readRecording(text);
      t.strictSame(shapes(actorsOf(read)), shapes(whole));
      t.same(read.recordedAt, at(9));
    }),
    { numRuns: 100 },
  );
});

t.test('a recording restores dates, dead letters and errors', async (t) => {
  const facts = { due: at(60), name: '2026-11-21T14:00:00.000Z', none: null, on: true };
  const letter: InspectionRecord = { type: 'deadLetter', id: 'a', at: at(3), event: 'X', source: 'b' };
  const records = [
    born('a', { projection: facts, restarts: 2 }),
    { type: 'gone' as const, id: 'a', at: at(2), error: 'boom' },
  ];
  const whole = apply(noActors, [...records, letter], 0);
  const read = readRecording(writeRecording({ about: {}, recordedAt: at(9), charts: [], records: recordsOf(whole) }));
  t.strictSame(only(actorsOf(read), 'a').projection, facts);
  t.match(only(actorsOf(read), 'a'), { restarts: 2, deadLetters: 1, ending: { error: 'boom' } });
});

/** A file as the page wrote it before superjson: dates of facts are listed beside the records. */
const version1 = (records: readonly InspectionRecord[], dates: readonly (readonly [number, string])[] = []) => ({
  format: 'oratorio-recording',
  version: 1,
  about: { kind: 'hub' },
  recordedAt: at(9),
  charts: [],
  records,
  dates,
});

t.test('a recording of version 1 is read with its dates', async (t) => {
  const facts = { due: at(60), name: '2026-11-21T14:00:00.000Z' };
  const file = version1([born('a', { projection: facts, restarts: 2 })], [[0, 'due']]);
  const read = readRecording(JSON.stringify(file));
  t.same(read.recordedAt, at(9));
  t.strictSame(only(actorsOf(read), 'a').projection, facts);
});

t.test('a recording with forged annotations is refused', async (t) => {
  const { json } = superjson.serialize({ ...version1([born('a')]), version: 2 });
  const forged = (values: unknown, pattern: RegExp) =>
    t.throws(() => readRecording(JSON.stringify({ json, meta: { values, v: 1 } })), { message: pattern });
  forged({ 'records.0.id': ['regexp'] }, /cannot be opened/);
  forged({ 'records.0.at': ['URL'] }, /cannot be opened/);
  forged({ records: ['set'] }, /records is not a list/);
  forged({ '__proto__.polluted': ['Date'] }, /cannot be opened/);
  forged({ 'records.0.at': [['class', 'Refusal']] }, /cannot be opened/);
  t.notOk('polluted' in {});
});

t.test('a file that is not a recording is refused with a message', async (t) => {
  const good = JSON.parse(JSON.stringify(version1([born('a')]))) as Record<string, unknown>;
  const refused = (change: unknown, pattern: RegExp) =>
    t.throws(() => readRecording(JSON.stringify(change)), { message: pattern });
  t.throws(() => readRecording('{'), { message: /cannot be opened: it is not JSON/ });
  refused([], /not an object/);
  refused({ json: [], meta: {} }, /not an object/);
  refused({ json: { ...good, version: 3 } }, /version is 3/);
  refused({ ...good, format: 'other' }, /no recording/);
  refused({ ...good, version: 2 }, /version is 2/);
  refused({ ...good, recordedAt: 'soon' }, /creation time is missing/);
  refused({ ...good, records: [{ ...born('a'), states: 'x' }] }, /records\[0\]\.states/);
  refused({ ...good, records: [{ ...born('a'), id: 'x'.repeat(5000) }] }, /records\[0\]\.id/);
  refused({ ...good, records: [{ ...born('a'), projection: { x: { deep: 1 } } }] }, /records\[0\]\.projection/);
  refused({ ...good, records: [{ type: 'script' }] }, /unknown type/);
  refused({ ...good, charts: [{ name: 'x', description: '', width: 1, height: '1', nodes: [], edges: [] }] }, /height/);
  refused({ ...good, records: Array.from({ length: 50_001 }, () => 1) }, /more than 50000/);
  fc.assert(
    fc.property(fc.json(), (text) => {
      try {
        readRecording(text);
      } catch (error) {
        t.match(error, { name: 'Refusal' });
      }
    }),
  );
});

t.test('lists show a turn by the state inside of its frames, and another actor by its outermost state', async (t) => {
  const looks = (states: readonly string[]) => [
    publicState(states),
    fullState(states),
    lookOf({ states, projection: {} }).tone,
  ];
  const requesting = ['working', 'working.requesting', 'working.requesting.inferring'];
  t.same(looks(requesting), ['inferring', 'inferring', 'progress']);
  t.same(looks(['working', 'working.awaitingApproval']), ['awaitingApproval', 'awaitingApproval', 'warn']);
  const asking = ['working', 'working.delegating', 'working.delegating.asking'];
  t.same(looks(asking).slice(0, 2), ['delegating', 'delegating · asking']);
  const held = ['working', 'working.held', 'working.held.budgetReached'];
  t.same(looks(held).slice(0, 2), ['budgetReached', 'budgetReached']);
  const quota = 'working.held.waitingForQuota';
  t.same(
    looks(['working', 'working.held', quota, `${quota}.scheduled`]).slice(0, 2),
    ['waitingForQuota', 'waitingForQuota · scheduled'],
    'regression: a held turn is not shown as “held”',
  );
  t.same(looks(['storing']), ['storing', 'storing', 'progress']);
  t.same(looks(['starting', 'starting.probing']), ['starting', 'starting · probing', 'progress']);
  t.same(looks(['working']).slice(0, 2), ['working', 'working'], 'a simple state of this name');
});

t.test('regression: every state of every machine has a tone, by the kind of the innermost state', async (t) => {
  const charts = await loadCharts();
  learnKinds(charts);
  const lookAt = (machine: string, id: string) => {
    const parts = id.split('.');
    const states = parts.map((_, index) => parts.slice(0, index + 1).join('.'));
    return lookOf({ machine, states, projection: {} });
  };
  for (const { name, nodes } of charts) {
    for (const { id, meta } of nodes) if (meta) t.not(lookAt(name, id).shape, 'diamond', `${name} ${id}`);
  }
  t.equal(lookAt('turn', 'working.delegating.asking').tone, 'warn', 'the turn waits for a person');
  t.equal(lookAt('turn', 'working.delegating.busy').tone, 'progress');
  for (const state of ['budgetReached', 'waitingForQuota.confirming', 'waitingForQuota.scheduled'])
    t.equal(lookAt('turn', `working.held.${state}`).tone, 'warn', `regression: ${state} is not green`);
  t.equal(lookAt('sidecar-slot', 'held').tone, 'ok');
});

t.test('the tree shows matches with their parents, in the chosen order, and ended actors apart', async (t) => {
  const actors = apply(
    noActors,
    [
      born('hub', { machine: 'hub', states: ['serving'] }),
      born('/w/b', { parent: 'hub', states: ['running'], since: at(50), projection: { failures: 2 } }),
      born('/w/a', { parent: 'hub', states: ['exited'], since: at(20), projection: { failures: 5 } }),
      born('/w/c', { parent: 'hub', states: ['running'], since: at(80) }),
      born('/w/a/slot', { parent: '/w/a', machine: 'sidecar-slot', states: ['held'] }),
      born('/w/b/slot', { parent: '/w/b', machine: 'sidecar-slot', states: ['empty'] }),
      born('/w/a/proxy', { parent: '/w/a/slot', machine: 'api-proxy', states: ['running'] }),
      born('turn_1', { parent: 'hub', machine: 'turn', states: ['completed'] }),
      { type: 'gone', id: 'turn_1', at: at(90) },
      born('/w/c#inbox', { parent: '/w/c', machine: 'inbox-feed', states: ['live'] }),
    ],
    0,
  );
  const rows = new TreeRows();
  const ids = (filter = {}, closed: readonly string[] = []) =>
    rows.of(actors, { ...everything, ...filter }, new Map(closed.map((id) => [id, false]))).map((row) => row.id);
  t.same(ids(), ['hub', '/w/a', '/w/a/slot', '/w/a/proxy', '/w/b', '/w/c', '(ended)', 'turn_1']);
  t.same(ids({}, ['/w/a', '(ended)']), ['hub', '/w/a', '/w/b', '/w/c', '(ended)']);
  t.same(ids({ order: 'failures' }), ['hub', '/w/a', '/w/a/slot', '/w/a/proxy', '/w/b', '/w/c', '(ended)', 'turn_1']);
  t.same(ids({ order: 'time' }), ['hub', '/w/c', '/w/b', '/w/a', '/w/a/slot', '/w/a/proxy', '(ended)', 'turn_1']);
  t.same(ids({ text: 'PROXY' }), ['hub', '/w/a', '/w/a/slot', '/w/a/proxy']);
  t.same(ids({ tone: 'danger' }), ['hub', '/w/a']);
  t.same(ids({ machine: 'turn' }), ['(ended)', 'turn_1']);
  t.same(ids({ machine: 'inbox-feed' }), ['hub', '/w/c', '/w/c#inbox'], 'regression: a feed is shown when asked for');
  const opened = rows.of(actors, everything, new Map([['/w/c', true]])).map((row) => row.id);
  t.ok(opened.includes('/w/c#inbox'), 'or opened');
  t.same(ids({ isInTrouble: true }), ['hub', '/w/a', '/w/b']);
  t.match(countsOf(actors), { inTrouble: 2, living: 7, ended: 1 });
  const [hub] = rows.of(actors, everything, new Map());
  t.match(hub, { level: 1, position: 1, siblings: 2, isOpen: true });
});

t.test('a difference is marked as added, removed or changed', async (t) => {
  const before = {
    states: ['running'],
    projection: { pid: 1, serverVersion: '1', gone: 'x', empty: null, due: at(1) },
  };
  const after = {
    states: ['exited', 'exited.resting'],
    projection: { pid: 2, serverVersion: '1', exitCode: 0, empty: null, due: at(1) },
  };
  t.same(
    statesBetween(before, after).map(({ sign, name }) => sign + name),
    ['−running', '+exited', '+exited.resting'],
  );
  t.same(
    factsBetween(before, after)
      .filter(({ sign }) => sign !== '=')
      .map(({ sign, name }) => sign + name),
    ['~pid', '+exitCode', '−gone'],
  );
});

t.test('the sequence has a lane for each participant, and distinguishes timers from messages', async (t) => {
  const actors = apply(
    noActors,
    [
      born('hub', { machine: 'hub' }),
      born('w', { parent: 'hub' }),
      born('w/p', { parent: 'w', machine: 'api-proxy' }),
      moved('w', 1, 1, { to: ['starting'], event: 'ENSURE' }),
      moved('w', 2, 2, { to: ['running'], event: 'after(backoff)' }),
      moved('w', 3, 3, { to: ['running'], event: 'PROXY.RUNNING', more: { source: 'w/p' } }),
      moved('w/p', 1, 4, { to: ['stopping'], event: 'STOP', more: { source: 'w' } }),
      moved('hub', 1, 5, { to: ['serving'], event: 'OTHER' }),
      { type: 'gone', id: 'w/p', at: at(6) },
      { type: 'deadLetter', id: 'w/p', at: at(7), event: 'LATE', source: 'w' },
    ],
    0,
  );
  const { lanes, messages } = sequenceOf(actors, only(actors, 'w'));
  t.same(
    lanes.map(({ id, kind }) => `${kind} ${id}`),
    [`outside ${outside}`, 'parent hub', 'self w', 'child w/p'],
  );
  t.same(
    messages.map(({ from, to, event, states }) => `${from}>${to} ${event}${states ? '' : ' lost'}`),
    [`${outside}>w ENSURE`, 'w>w after(backoff)', 'w/p>w PROXY.RUNNING', 'w>w/p STOP', 'w>w/p LATE lost'],
  );
  const crowd = Array.from({ length: 40 }, (_, index) => born(`c${index}`, { parent: 'w' }));
  const crowded = sequenceOf(apply(actors, crowd, 0), only(actors, 'w'));
  t.equal(crowded.lanes.length, 8);
  t.match(crowded.lanes.at(-1)?.title, /others$/);
});

t.test('the causes of a state begin at the last stable state', async (t) => {
  const recorder = createRecorder({ machines: catalogue, projections });
  const workspace = createWorkspace('/w/demo');
  recorder.observe(workspace, { id: 'w', parent: null, machine: 'agent-server', title: 'demo' });
  workspace.start();
  t.teardown(() => {
    recorder.close();
    workspace.stop();
  });
  // Causes do not depend on the layout.
  const drawn = { label: '', labelAt: { x: 0, y: 0 }, points: [] };
  const edges = graphOf('agent-server', agentServerMachine).edges.map((edge) => ({ ...edge, ...drawn }));
  const chart: Chart = { name: 'agent-server', description: '', width: 1, height: 1, nodes: [], edges };
  const now = () => only(apply(noActors, recorder.snapshot(), 0), 'w');
  t.same(explain(now(), chart), { from: null, reasons: [], isCut: false });
  await bringUp(workspace);
  const up = explain(now(), chart);
  t.same(up.from?.states, ['stopped']);
  t.same(
    up.reasons.map(({ entry }) => entry.record.event),
    ['ENSURE', 'SLOT.CLEARED', 'done(prepare)', 'SLOT.READY', 'PROCESS.SPAWNED', 'done(readiness)'],
  );
  for (const error of ['no answer', 'no answer', 'still none']) {
    workspace.send({ type: 'PROBE.FAILED', incarnation: 1, error });
  }
  const { from, reasons } = explain(now(), chart);
  t.same(from?.states, ['running']);
  t.match(reasons, [
    { entry: { record: { event: 'PROBE.FAILED', to: ['unhealthy'] } }, nth: 3, because: ['reachesFailureThreshold'] },
  ]);
  workspace.send({ type: 'PROCESS.EXITED', incarnation: 1, exitCode: null, signal: 'SIGKILL', at: 5 });
  t.same(explain(now(), chart).reasons.at(-1)?.because, [], 'guards of other branches are no reason');
});
