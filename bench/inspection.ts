import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type AnyActorRef, createActor } from 'xstate';
import { type AgentServerContext, agentServerMachine, catalogue } from '../machines/index.ts';
import { createInspectionSource, createRecorder, projections, type Recorder } from '../src/inspect/index.ts';
import { type Benchmark, type Context, median, type Result } from './harness.ts';
import { machine } from './peers/sources.ts';

/** One way of being inspected. Returns a function that ends it. */
type Attach = (actor: AnyActorRef) => () => void;

const none: Attach = () => () => {};

const counting: Attach = (actor) => {
  const subscription = actor.system.inspect(() => {});
  return () => subscription.unsubscribe();
};

/** Facts as many as those of the agent-server machine, which shows the most. */
const facts = ({ failures, changes }: { readonly failures: number; readonly changes: number }) => ({
  pid: 4242,
  incarnation: 3,
  ownership: 'managed',
  serverVersion: '1.0.0',
  attempt: changes,
  delayMs: null,
  failures,
  probeFailures: failures,
  stopReason: null,
  exitCode: null,
  signal: null,
  proxy: 'none',
  lastError: null,
});

/** A recorder is there; this actor is not given to it. */
function unattached(): Attach {
  const recorder = createRecorder({ machines: catalogue, projections });
  return () => () => void recorder.sequence;
}

function recorded(watch: (recorder: Recorder) => void = () => {}): Attach {
  const recorder = createRecorder({ machines: catalogue, projections });
  watch(recorder);
  return (actor) => recorder.observe(actor, { id: 'a', parent: null, machine: 'bench', title: 'a', project: facts });
}

const sends = 30_000;

/** Processor time of this process so far, collecting its garbage included: others on the machine do not count. */
function cpuNs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

/** Processor time of one event that takes a transition with two actions, nanoseconds. */
function eventNs(attach: Attach): number {
  const actor = createActor(machine);
  const end = attach(actor);
  actor.start();
  const from = cpuNs();
  for (let index = 0; index < sends; index += 2) {
    actor.send({ type: 'FAIL' });
    actor.send({ type: 'PASS' });
  }
  const spent = cpuNs() - from;
  end();
  actor.stop();
  return spent / sends;
}

const ways: readonly (readonly [name: string, attach: () => Attach])[] = [
  ['not inspected', () => none],
  ['inspection loaded, not attached', unattached],
  ['an inspector without work', () => counting],
  ['recorded, no viewer', () => recorded()],
  ['recorded, one viewer', () => recorded((recorder) => recorder.subscribe(() => {}))],
];

/** All ways in turn, each first as often as the others, so that other work of the machine hits them alike. */
function eventCosts(rounds: number) {
  const attached = ways.map(([name, attach]) => ({ name, attach: attach(), times: [] as number[] }));
  for (let round = -ways.length; round < rounds; round += 1) {
    for (let turn = 0; turn < attached.length; turn += 1) {
      const way = attached[(round + ways.length + turn) % attached.length];
      const time = way ? eventNs(way.attach) : Number.NaN;
      // The first rounds are for the compiler.
      if (round >= 0) way?.times.push(time);
    }
  }
  const [alone] = attached;
  return attached.map(({ name, times }) => ({
    name,
    absolute: median(times),
    more: median(times.map((time, round) => time - (alone?.times[round] ?? Number.NaN))),
  }));
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') collect();
}

const heapMib = (): number => {
  collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
};

/** Many workspaces at rest, each notified of its sidecar; nothing is started. */
function crowd(workspaces: number, rounds: number) {
  const actors = Array.from({ length: workspaces }, (_, index) =>
    createActor(agentServerMachine, {
      input: {
        workspacePath: `/home/me/projects/workspace-${index}`,
        policy: {} as AgentServerContext['policy'],
        seed: index,
      },
    }),
  );
  const before = heapMib();
  const recorder = createRecorder({ machines: catalogue, projections });
  const source = createInspectionSource(recorder);
  for (const [index, actor] of actors.entries()) {
    recorder.observe(actor, {
      id: `/home/me/projects/workspace-${index}`,
      parent: null,
      machine: 'agent-server',
      title: 'w',
    });
    actor.start();
  }
  const started = heapMib();
  let transitions = 0;
  for (let round = 0; round < rounds; round += 1) {
    for (const actor of actors) {
      const { slot } = actor.getSnapshot().context;
      const emitted = { type: 'apiProxy.running', sidecar: 0, pid: round } as const;
      actor.send({ type: 'SLOT.CHANGED', slot, emitted });
      actor.send({ type: 'SLOT.CHANGED', slot, emitted });
      transitions += 2;
    }
  }
  const recordedHeap = heapMib() - before;
  const snapshots: number[] = [];
  const replays: number[] = [];
  let bytes = 0;
  let records = 0;
  for (let count = 0; count < 7; count += 1) {
    const from = cpuNs();
    records = recorder.snapshot().length;
    const read = cpuNs();
    bytes = source.replay(undefined).reduce((sum, { byteLength }) => sum + byteLength, 0);
    snapshots.push((read - from) / 1e6);
    replays.push((cpuNs() - read) / 1e6);
  }
  const one = source.ofActor('/home/me/projects/workspace-0').replay(undefined);
  recorder.close();
  for (const actor of actors) actor.stop();
  return {
    transitions,
    oneKib: one.reduce((sum, { byteLength }) => sum + byteLength, 0) / 1024,
    records,
    startedMib: started - before,
    recordedMib: recordedHeap,
    snapshotMs: median(snapshots),
    replayMs: median(replays),
    replayKib: bytes / 1024,
  };
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const costs = eventCosts(quick ? 20 : Math.max(60, rounds * 12));
  const more = (name: string) => costs.find((cost) => cost.name === name)?.more ?? Number.NaN;
  const many = crowd(1_000, quick ? 20 : 100);
  return {
    tables: [
      {
        title: 'One event of an actor, ns',
        columns: ['', 'the event', 'added'],
        rows: costs.map(({ name, absolute, more }) => [name, absolute, more]),
      },
      {
        title: '1 000 workspaces, all recorded',
        columns: [
          'transitions',
          'records sent',
          'snapshot, ms',
          'as a stream, ms',
          'KiB',
          'of one actor, KiB',
          'heap at rest, MiB',
          'heap then, MiB',
        ],
        rows: [
          [
            many.transitions,
            many.records,
            many.snapshotMs,
            many.replayMs,
            many.replayKib,
            many.oneKib,
            many.startedMib,
            many.recordedMib,
          ],
        ],
      },
    ],
    checks: [
      {
        what: 'recording an event, no viewer',
        measured: more('recorded, no viewer') / 1000,
        atMost: 1.5,
        unit: ' µs',
      },
      {
        what: 'an event that is not recorded',
        measured: more('inspection loaded, not attached') / 1000,
        atMost: 0.2,
        unit: ' µs',
      },
      { what: 'snapshot of 1 000 workspaces', measured: many.snapshotMs, atMost: 20, unit: ' ms' },
      { what: 'begin of the stream of one actor', measured: many.oneKib, atMost: 10, unit: ' KiB' },
      { what: 'heap of the records of 1 000 workspaces', measured: many.recordedMib, atMost: 64, unit: ' MiB' },
    ],
    notes: [
      `The machine of one event has two actions and ${Object.keys(facts({ failures: 0, changes: 0 })).length} facts to show. All ways are measured in turn.`,
    ],
  };
}

export const inspection: Benchmark = { name: 'inspection', title: 'Cost of inspection', run };
