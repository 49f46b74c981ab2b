/**
 * kill -9 in every state of the turn's machine, of the agent server, the Hub and both: the turn continues, and ends like a turn without
 * a kill. The list of states comes from the machine, so that a new state needs a scenario here.
 */
import t, { type Test } from 'tap';
import { turnMachine } from '../../machines/index.ts';
import { faultsOf, KilledWorkspace, type Prepared, spawnHubAndServer, unsoundCalls } from './killed-turns.ts';
import type { Moment, ScriptName } from './turn-scripts.ts';

interface Scenario {
  readonly script: ScriptName;
  /** Leads the turn into the state, in the server that dies. */
  readonly push?: (place: KilledWorkspace, turn: Prepared) => Promise<void>;
  /** Answers the turn, in the next server and in a server that is not killed. */
  readonly next?: (place: KilledWorkspace, turn: Prepared) => Promise<void>;
  /** A kill at the entry comes before the step that leads to the end is stored: the turn ends without it. */
  readonly isUndoneAtEntry?: boolean;
  /** Earlier death of the turn's server, which is the reason for the state. */
  readonly first?: Moment;
}

const accept = (place: KilledWorkspace, turn: Prepared) => place.accept(turn);
const wait = (place: KilledWorkspace, turn: Prepared) => place.wait(turn);
const hurry = (place: KilledWorkspace, turn: Prepared) => place.hurry(turn);
const interrupt = (place: KilledWorkspace, turn: Prepared) => place.interrupt(turn);
const inferring = 'working.requesting.inferring';

/** Scenarios by the state of the machine in which the server dies. */
const scenarios: Readonly<Record<string, Scenario>> = {
  'working.beginning': { script: 'work' },
  'working.resuming': { script: 'work', first: { kind: 'state', state: inferring, at: 'commit' } },
  'working.preparing': { script: 'work' },
  'working.checking': { script: 'work' },
  'working.requesting.compacting': { script: 'compact' },
  [inferring]: { script: 'work' },
  'working.held.budgetReached': { script: 'spend', next: accept },
  'working.held.waitingForQuota.confirming': { script: 'quota', next: hurry },
  'working.held.waitingForQuota.scheduled': { script: 'quota', push: wait, next: hurry },
  'working.retrying': { script: 'retry' },
  'working.fallingBack': { script: 'fallBack' },
  'working.checkingEnd': { script: 'work' },
  'working.reviewing': { script: 'work' },
  'working.awaitingApproval': { script: 'ask', next: accept },
  'working.securing': { script: 'work' },
  'working.runningTools': { script: 'work' },
  'working.concluding': { script: 'conclude' },
  cancelling: { script: 'hang', push: interrupt, isUndoneAtEntry: true },
  storing: { script: 'work' },
};

/** Paths of the states in which a turn can die; those of an external agent have their own test. */
function dyingStates(states: typeof turnMachine.root.states, path: readonly string[] = []): string[] {
  return Object.values(states).flatMap(({ key, states: inner, type }) => {
    if (type === 'final' || key === 'delegating') return [];
    return Object.keys(inner).length > 0 ? dyingStates(inner, [...path, key]) : [[...path, key].join('.')];
  });
}

/** Runs each script once without a kill, as the measure for the others. */
async function runControls(t: Test, place: KilledWorkspace, names: readonly ScriptName[]): Promise<void> {
  for (const name of names) {
    const turn = await place.prepare(name);
    place.begin(turn);
    if (name === 'ask' || name === 'spend') await place.accept(turn);
    if (name === 'quota') await place.hurry(turn);
    if (name === 'hang') await place.interrupt(turn);
    const turns = await place.ended(turn);
    place.setControl(name, turns[turn.before]);
    t.same(faultsOf(place, turn, turns), [], `control: ${name}`);
  }
}

/** Processes to kill on entry and after its commit: the agent server both times, or the Hub first and then both. */
const victims = {
  'an agent server': { start: undefined, entry: 'server', commit: 'server' },
  'a Hub, then with its agent server': { start: spawnHubAndServer, entry: 'hub', commit: 'both' },
} as const;

for (const [name, { start, ...whoDies }] of Object.entries(victims)) {
  t.test(`kill -9 of ${name} at the entry of every state, and after its commit`, async (all) => {
    const place = new KilledWorkspace(all, start);
    await place.connect();
    await all.test('controls', async (t) => {
      t.same(
        dyingStates(turnMachine.root.states).toSorted(),
        Object.keys(scenarios).toSorted(),
        'each state has a scenario',
      );
      await runControls(t, place, [...new Set(Object.values(scenarios).map(({ script }) => script))]);
    });
    for (const [state, { script, push, next, first, isUndoneAtEntry = false }] of Object.entries(scenarios)) {
      for (const at of ['entry', 'commit'] as const) {
        await all.test(`a turn has the same result: ${whoDies[at]} killed at the ${at} of ${state}`, async (t) => {
          const isHubAlone = whoDies[at] === 'hub';
          const turn = await place.prepare(script);
          const arm = () => place.arm({ kind: 'state', state, at }, { isHubAlone });
          if (first) place.arm(first);
          else arm();
          place.begin(turn);
          await push?.(place, turn);
          await place.restart();
          if (first) {
            arm();
            await place.restart();
          }
          await place.connect();
          await next?.(place, turn);
          const turns = await place.ended(turn);
          const { status, resumes = 0 } = turns[turn.before];
          if (isUndoneAtEntry && at === 'entry' && !isHubAlone) t.equal(status, 'completed');
          else t.same(faultsOf(place, turn, turns), []);
          const expected = (first ? 2 : 1) - (isHubAlone ? 1 : 0);
          // The end of the turn may be in the commit of `storing`: then the turn is over.
          const isOver = state === 'storing' && at === 'commit' && resumes === 0;
          if (!isOver) t.equal(resumes, expected);
        });
      }
    }
    all.same(unsoundCalls(place.requests), []);
    all.same(place.rows, { actors: 0, calls: 0 });
    all.same(place.bugs, []);
  });
}
