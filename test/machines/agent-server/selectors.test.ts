/** Selectors of a snapshot, in states that a workspace can reach. */
import t from 'tap';
import {
  endsSidecarRequest,
  failureKindOf,
  hasExternalProcess,
  hasUnprovenSidecar,
  isAdopting,
  isAsleep,
  isDecided,
  isServing,
  isStarting,
  isStopped,
  isStopping,
  isWakeable,
  sidecarsInUse,
} from '../../../machines/index.ts';
import { failure } from '../harness.ts';
import { policy, Workspace } from '../worlds.ts';
import { to } from './steps.ts';

const selectors = {
  isServing,
  isDecided,
  isStarting,
  isAdopting,
  isStopping,
  isStopped,
  hasUnprovenSidecar,
  hasExternalProcess,
  endsSidecarRequest,
};

async function after(...steps: ((world: Workspace) => unknown)[]) {
  const world = new Workspace();
  for (const step of steps) await step(world);
  return world.actor.getSnapshot();
}

/** Names of the selectors that hold. */
const holding = (snapshot: Awaited<ReturnType<typeof after>>): string[] =>
  Object.entries(selectors).flatMap(([name, holds]) => (holds(snapshot) ? [name] : []));

t.test('before a start no request is pending', async (t) => {
  t.same(holding(await after(to.rest)), ['isDecided', 'isStopped']);
});

t.test('a server that sleeps, falls asleep or starts can be waited for; a stopped one cannot', async (t) => {
  const asleep = async (...steps: ((world: Workspace) => unknown)[]) => {
    const world = new Workspace({ idleStopMs: 1 });
    for (const step of steps) await step(world);
    const snapshot = world.actor.getSnapshot();
    return [isAsleep(snapshot), isStopped(snapshot), isWakeable(snapshot)];
  };
  t.same(await asleep(to.fallingAsleep), [false, false, true]);
  t.same(await asleep(to.asleep), [true, true, true]);
  t.same(await asleep(to.asleep, (world) => world.ensure()), [false, false, true]);
  t.same(await asleep(to.asleep, (world) => world.stop()), [false, true, false]);
  t.same(await asleep(to.terminating), [false, false, false]);
  t.same(await asleep(to.running), [false, false, false]);
});

t.test('a start and an adoption are undecided', async (t) => {
  t.same(holding(await after(to.preparing)), ['isStarting']);
  t.same(holding(await after(to.adopting)), ['isStarting', 'isAdopting']);
});

t.test('a failed start remains a start until its process has ended', async (t) => {
  t.same(holding(await after(to.aborting)), ['isStarting']);
  t.same(holding(await after(to.aborting, (world) => world.exited(1))), ['isDecided']);
});

t.test('a stop is undecided until every process has ended', async (t) => {
  t.same(holding(await after(to.terminating)), ['isStopping']);
  t.same(holding(await after(to.killing)), ['isStopping']);
  t.same(holding(await after(to.stoppingSidecar)), ['isStopping']);
  t.same(holding(await after(to.terminating, (world) => world.exited(0))), [
    'isDecided',
    'isStopped',
    'endsSidecarRequest',
  ]);
});

t.test('a stop is decided when the process survives SIGKILL', async (t) => {
  const stuck = await after(to.killing, (world) => world.pass(policy.killVerifyMs));
  t.same(holding(stuck), ['isDecided', 'isStopping']);
});

t.test('a ready server serves, and after a restart of the Hub also without a sidecar', async (t) => {
  t.same(holding(await after(to.running)), ['isServing', 'isDecided', 'endsSidecarRequest']);
  t.same(holding(await after(to.runningWithSidecar)), ['isServing', 'isDecided']);
  t.same(holding(await after(to.external)), ['isServing', 'isDecided', 'hasExternalProcess']);
});

t.test('a server whose sidecar has exited does not serve until the restart of the sidecar is decided', async (t) => {
  const lost = await after(to.runningWithSidecar, (world) => world.sidecar('exited'));
  t.same(holding(lost), ['isDecided']);
  t.equal(failureKindOf(lost), 'apiProxy');
  const again = (world: Workspace) => world.ensure();
  t.same(holding(await after(to.runningWithSidecar, (world) => world.sidecar('exited'), again)), []);
});

t.test('a start that failed with a new sidecar may be repeated without it', async (t) => {
  const failed = await after(
    to.proxying,
    (world) => world.sidecar('spawned'),
    (world) => world.sidecar('notReady'),
    (world) => world.sidecar('exited'),
  );
  t.same(holding(failed), ['isDecided', 'hasUnprovenSidecar']);
  t.equal(failureKindOf(failed), 'apiProxy');
});

t.test('failureKindOf is the kind of the recorded failure, or startFailed', async (t) => {
  const locked = await after(to.preparing, (world) => world.notPrepared(failure('workspaceLocked', false)));
  t.equal(failureKindOf(locked), 'workspaceLocked');
  t.equal(failureKindOf(await after(to.rest)), 'startFailed');
});

t.test('a stop by the user ends the request for a sidecar, a stop by the Hub retains it', async (t) => {
  const stopped = (reason: 'user' | 'hub') =>
    after(
      to.runningWithSidecar,
      (world) => world.stop(reason),
      (world) => world.exited(0),
      (world) => world.sidecar('exited'),
    );
  t.same(holding(await stopped('user')), ['isDecided', 'isStopped', 'endsSidecarRequest']);
  t.same(holding(await stopped('hub')), ['isDecided', 'isStopped']);
});

t.test('every sidecar that the machine may return to is in use', async (t) => {
  const { context } = await after(to.runningWithSidecar, (world) => world.ensure('replace'));
  t.same(sidecarsInUse(context), [1, 1, 2, 1, null]);
  const adopting = await after(to.adopting, (world) => world.restart('replace'));
  t.same(sidecarsInUse(adopting.context), [null, null, null, null, 1]);
});
