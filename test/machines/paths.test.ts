/**
 * Replays every simple path that XState finds through a chart on a running actor, and compares both states after every
 * step.
 */
import t, { type Test } from 'tap';
import type { AnyStateMachine, EventObject, InputFrom, SnapshotFrom } from 'xstate';
import { getSimplePaths } from 'xstate/graph';
import { agentServerMachine, apiProxyMachine, hubMachine } from '../../machines/index.ts';
import { withDescendants } from '../../src/inspect/graph.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { flush, open } from './harness.ts';
import { HubWorld, policy, SidecarWorld, Workspace } from './worlds.ts';

/** Steps of a path, as an event of the pure machine and as an action on the world of the actor. */
type Happenings<M, W> = Readonly<
  Record<string, { readonly event: (snapshot: M) => EventObject; readonly play: (world: W) => Promise<void> | void }>
>;

interface Replay<M extends AnyStateMachine, W> {
  readonly machine: M;
  readonly input: InputFrom<M>;
  readonly happenings: Happenings<SnapshotFrom<M>, W>;
  readonly createWorld: () => W;
  readonly valueOf: (world: W) => unknown;
  /** Context that decides the target of an event besides the state value. */
  readonly alsoDecides?: (snapshot: SnapshotFrom<M>) => unknown;
  /** Reply of a child that answers at once; undefined in a state that waits for none. */
  readonly replyTo?: (snapshot: SnapshotFrom<M>) => EventObject | undefined;
  /** States that these happenings do not lead to. */
  readonly elsewhere: readonly string[];
}

const done = (id: string, output?: unknown) => ({ type: `xstate.done.actor.${id}`, output, actorId: id });
const failed = (id: string) => ({ type: `xstate.error.actor.${id}`, error: new Error('no'), actorId: id });
const after = (delay: string, state: string) => ({ type: `xstate.after.${delay}.${state}` });

type WithProcess = {
  readonly context: { readonly workspacePath: string; readonly incarnation: number; readonly hasProcess: boolean };
};

/** Events of a present or requested process; `nothing` without one. */
const processEvents = {
  nothing: { type: 'nothing' },
  spawned: ({ context: { incarnation, hasProcess } }: WithProcess) =>
    hasProcess ? { type: 'PROCESS.SPAWNED', incarnation, pid: 1 } : processEvents.nothing,
  refused: ({ context: { incarnation, hasProcess } }: WithProcess) =>
    hasProcess
      ? { type: 'PROCESS.REFUSED', incarnation, error: 'no', isRetryable: true, at: 0 }
      : processEvents.nothing,
  exited:
    (exitCode: number) =>
    ({ context: { incarnation, hasProcess } }: WithProcess) =>
      hasProcess ? { type: 'PROCESS.EXITED', incarnation, exitCode, signal: null, at: 0 } : processEvents.nothing,
};

/** A path that is the beginning of another is replayed with it. */
function withoutPrefixes<P extends { readonly steps: readonly { readonly event: EventObject }[] }>(paths: P[]): P[] {
  const keyOf = (steps: P['steps']) => steps.map(({ event }) => (event as { happening?: string }).happening).join();
  const beginnings = new Set(paths.map(({ steps }) => keyOf(steps.slice(0, -1))));
  return paths.filter(({ steps }) => !beginnings.has(keyOf(steps)));
}

/** Distinguishes states by their value, because the counters in contexts would make endlessly many (as `getShortestPaths` does). */
async function replayAll<M extends AnyStateMachine, W>(t: Test, replay: Replay<M, W>): Promise<void> {
  const { machine, happenings } = replay;
  const names = Object.keys(happenings);
  const paths = getSimplePaths(machine, {
    input: replay.input,
    events: ((snapshot: SnapshotFrom<M>) => {
      const reply = replay.replyTo?.(snapshot);
      return reply ? [reply] : names.map((name) => ({ ...happenings[name]?.event(snapshot), happening: name }));
    }) as never,
    serializeState: (snapshot) =>
      JSON.stringify([snapshot.value, replay.alsoDecides?.(snapshot as SnapshotFrom<M>)]) as never,
    limit: 1_000_000,
  });
  const reached = new Set<string>();
  for (const { steps } of withoutPrefixes(paths)) {
    const world = replay.createWorld();
    await flush();
    const happened: string[] = [];
    for (const { event, state } of steps) {
      const name = (event as { happening?: string }).happening;
      if (name !== undefined) {
        happened.push(name);
        // A promise is that of a method of the world, which flushes itself.
        await (happenings[name]?.play(world) ?? flush());
      }
      for (const node of state._nodes) reached.add(nodeId(node));
      // The world's own child has replied already.
      if (replay.replyTo?.(state as SnapshotFrom<M>)) continue;
      const [actual, expected] = [replay.valueOf(world), state.value].map((value) => JSON.stringify(value));
      if (actual !== expected) t.fail(`${happened.join(', ')} leads to ${actual}, not ${expected}`);
    }
  }
  t.ok(paths.length > 1, `${paths.length} paths replayed`);
  // States that only decide are left in the step in which they are entered.
  const missing = withDescendants(machine.root)
    .filter((node) => node.type !== 'compound' && !node.always?.length)
    .map(nodeId)
    .filter((id) => !reached.has(id));
  t.same(missing, replay.elsewhere, 'every state is on a path');
}

t.test('hub', (t) =>
  replayAll(t, {
    machine: hubMachine,
    input: { drainDeadlineMs: 10_000 },
    createWorld: () => new HubWorld(),
    valueOf: (world: HubWorld) => world.actor.getSnapshot().value,
    elsewhere: [],
    happenings: {
      booted: { event: () => done('boot'), play: (world) => open(world.boot).answer() },
      'boot failed': { event: () => failed('boot'), play: (world) => world.fail(world.boot) },
      won: { event: () => done('claim', { won: true }), play: (world) => open(world.claim).answer({ won: true }) },
      lost: { event: () => done('claim', { won: false }), play: (world) => open(world.claim).answer({ won: false }) },
      'claim failed': { event: () => failed('claim'), play: (world) => world.fail(world.claim) },
      listens: {
        event: () => done('listen', { apiBaseUrl: '' }),
        play: (world) => open(world.listen).answer({ apiBaseUrl: '' }),
      },
      'listen failed': { event: () => failed('listen'), play: (world) => world.fail(world.listen) },
      recovered: {
        event: () => done('recover', { adopted: 0 }),
        play: (world) => open(world.recover).answer({ adopted: 0 }),
      },
      SHUTDOWN: { event: () => ({ type: 'SHUTDOWN', mode: 'stop' }), play: (world) => world.shutDown() },
      drained: { event: () => done('drain'), play: (world) => open(world.drain).answer() },
      'drain deadline': {
        event: () => after('drainDeadline', 'hub.draining'),
        play: (world) => world.clock.increment(10_000),
      },
      closed: { event: () => done('close'), play: (world) => open(world.close).answer() },
      'close failed': { event: () => failed('close'), play: (world) => world.fail(world.close) },
    },
  }),
);

const watchful = { ...policy, livenessFailures: 1 };

t.test('api-proxy', (t) =>
  replayAll(t, {
    // Without a parent there is no receiver for these notifications.
    machine: apiProxyMachine.provide({
      actions: { notifyRunning() {}, notifyUnhealthy() {}, notifyExited() {}, notifyStopped() {} },
    }),
    input: { workspacePath: '/w', policy: watchful, seed: 1, adopt: false, sidecar: 7 },
    createWorld: () => new SidecarWorld(watchful, false, false),
    valueOf: (world: SidecarWorld) => world.actor.getSnapshot().value,
    alsoDecides: ({ context }) => [context.hasServed, context.startFollows],
    // The state needs more failures than a path without a loop has.
    elsewhere: ['exited.givenUp'],
    happenings: {
      START: { event: () => ({ type: 'PROXY.START' }), play: (world) => world.send('PROXY.START') },
      STOP: { event: () => ({ type: 'PROXY.STOP' }), play: (world) => world.send('PROXY.STOP') },
      spawned: {
        event: processEvents.spawned,
        play: (world) => world.spawned(),
      },
      refused: {
        event: processEvents.refused,
        play: (world) => world.refused(),
      },
      exited: {
        event: processEvents.exited(1),
        play: (world) => world.exited(),
      },
      ready: { event: () => done('readiness', { at: 0 }), play: (world) => world.ready() },
      'not ready': { event: () => failed('readiness'), play: (world) => world.notReady() },
      'deadline passed': {
        event: () => after('proxyDeadline', 'api-proxy.starting'),
        play: (world) => world.pass(policy.proxyDeadlineMs),
      },
      'politeness ended': {
        event: () => after('gracefulStop', 'api-proxy.stopping.terminating'),
        play: (world) => world.pass(policy.gracefulStopMs),
      },
      'probe passed': {
        event: ({ context }) => ({ type: 'PROBE.PASSED', incarnation: context.incarnation }),
        play: (world) => world.probePassed(),
      },
      'probe failed': {
        event: ({ context }) => ({ type: 'PROBE.FAILED', incarnation: context.incarnation, error: 'no answer' }),
        play: (world) => world.probeFailed(),
      },
      'grace ended': {
        event: () => after('unhealthyGrace', 'api-proxy.unhealthy'),
        play: (world) => world.pass(policy.unhealthyGraceMs),
      },
      'politeness ended for an unhealthy one': {
        event: () => after('gracefulStop', 'api-proxy.ending.terminating'),
        play: (world) => world.pass(policy.gracefulStopMs),
      },
      'survived the end': {
        event: () => after('killVerify', 'api-proxy.ending.killing'),
        play: (world) => world.pass(policy.killVerifyMs),
      },
      'survived the start': {
        event: () => after('killVerify', 'api-proxy.starting.aborting.killing'),
        play: (world) => world.pass(policy.killVerifyMs),
      },
      'survived the stop': {
        event: () => after('killVerify', 'api-proxy.stopping.killing'),
        play: (world) => world.pass(policy.killVerifyMs),
      },
      'back-off passed': {
        event: () => after('backoff', 'api-proxy.exited.backingOff'),
        play: (world) => world.pass(world.context.delayMs),
      },
    },
  }),
);

const patient = { ...policy, livenessFailures: 1, maxRestarts: 1_000 };

t.test('agent-server', (t) =>
  replayAll(t, {
    machine: agentServerMachine,
    input: { policy: patient, seed: 1, workspacePath: '/w' },
    createWorld: () => new Workspace(patient, false),
    valueOf: (world: Workspace) => world.actor.getSnapshot().value,
    alsoDecides: ({ context }) => context.stopReason,
    // The sidecar's part and the sleep of an idle server are tested in agent-server/.
    elsewhere: [
      'starting.replacingProxy',
      'starting.readyingPlace',
      'asleep',
      'stopping.agreeing',
      'stopping.stoppingProxy',
      'exited.givenUp',
    ],
    replyTo(snapshot) {
      if (snapshot.matches({ starting: 'clearing' })) return { type: 'SLOT.CLEARED' };
      return snapshot.matches({ starting: 'proxying' }) ? { type: 'SLOT.READY' } : undefined;
    },
    happenings: {
      ENSURE: { event: () => ({ type: 'ENSURE' }), play: (world) => world.ensure() },
      RESTART: { event: () => ({ type: 'RESTART' }), play: (world) => world.restart() },
      STOP: { event: () => ({ type: 'STOP', reason: 'user' }), play: (world) => world.stop() },
      prepared: {
        event: () => done('prepare', { ownership: 'managed', ports: [] }),
        play: (world) => world.prepared(),
      },
      'not prepared': { event: () => failed('prepare'), play: (world) => world.notPrepared(new Error('no')) },
      spawned: {
        event: processEvents.spawned,
        play: (world) => world.spawned(),
      },
      refused: {
        event: processEvents.refused,
        play: (world) => world.refused(),
      },
      crashed: {
        event: processEvents.exited(1),
        play: (world) => world.exited(1),
      },
      succeeded: {
        event: processEvents.exited(0),
        play: (world) => world.exited(0),
      },
      ready: {
        event: () => done('readiness', { serverVersion: '1', at: 0, ports: [] }),
        play: (world) => world.ready(),
      },
      'not ready': { event: () => failed('readiness'), play: (world) => world.notReady(new Error('no')) },
      'probe passed': {
        event: ({ context: { incarnation } }) => ({ type: 'PROBE.PASSED', incarnation, idleMs: 0 }),
        play: (world) => world.probePassed(),
      },
      'probe failed': {
        event: ({ context: { incarnation } }) => ({ type: 'PROBE.FAILED', incarnation, error: 'no' }),
        play: (world) => world.probeFailed(),
      },
      'deadline passed': {
        event: () => after('startDeadline', 'agent-server.starting'),
        play: (world) => world.pass(policy.startDeadlineMs),
      },
      'survived the start': {
        event: () => after('killVerify', 'agent-server.starting.aborting.killing'),
        play: (world) => world.pass(policy.killVerifyMs),
      },
      'politeness ended': {
        event: () => after('gracefulStop', 'agent-server.stopping.terminating'),
        play: (world) => world.pass(policy.gracefulStopMs),
      },
      'survived the stop': {
        event: () => after('killVerify', 'agent-server.stopping.killing'),
        play: (world) => world.pass(policy.killVerifyMs),
      },
      'back-off passed': {
        event: () => after('backoff', 'agent-server.exited.backingOff'),
        play: (world) => world.pass(world.context.delayMs ?? 0),
      },
      'grace passed': {
        event: () => after('unhealthyGrace', 'agent-server.unhealthy'),
        play: (world) => world.pass(policy.unhealthyGraceMs),
      },
    },
  }),
);
