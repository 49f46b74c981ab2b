import { createActor } from 'xstate';
import {
  type Benchmark,
  type Context,
  interleaved,
  loadSse,
  median,
  type Result,
  type SseFigures,
  stopAll,
} from './harness.ts';
import { machine } from './peers/sources.ts';
import { fastify, limit, oratorio } from './servers.ts';

/** Nanoseconds of one transition of the machine alone, without subscribers. */
function transitionNs(): number {
  const actor = createActor(machine).start();
  const count = 100_000;
  const times: number[] = [];
  for (let round = 0; round < 6; round += 1) {
    const from = process.hrtime.bigint();
    for (let index = 0; index < count; index += 2) {
      actor.send({ type: 'FAIL' });
      actor.send({ type: 'PASS' });
    }
    times.push(Number(process.hrtime.bigint() - from) / count);
  }
  actor.stop();
  return median(times.slice(1));
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const servers = [
    await limit(),
    await oratorio('uws', 'plain', 'Oratorio, no machine'),
    await oratorio('uws', 'switch', 'Oratorio, hand-written switch'),
    await oratorio('uws', 'xstate', 'Oratorio, XState'),
    await oratorio('node', 'xstate', 'node:http, XState'),
    await fastify('xstate', 'Fastify, XState'),
  ];
  const lengths = { warmMs: 200, measureMs: quick ? 350 : 600 };
  const phases = [
    { mode: 'each', ...lengths },
    { mode: 'batch', ...lengths },
  ] as const;
  const runs = await interleaved(servers, rounds, ({ target }) => loadSse(target, { connections: 1000, phases }));
  await stopAll();

  const [reference] = servers;
  const limitRuns = (reference && runs.get(reference)) ?? [];
  const cpu = (figures: readonly SseFigures[] | undefined, phase: number) =>
    figures?.[phase]?.cpuNsPerEvent ?? Number.NaN;
  const rows = servers.map((server) => {
    const own = runs.get(server) ?? [];
    const relative = (phase: number) =>
      median(own.map((figures, round) => cpu(figures, phase) / cpu(limitRuns[round], phase)));
    const rate = (phase: number) => median(own.map((figures) => figures[phase]?.rate ?? Number.NaN));
    const cost = (phase: number) => median(own.map((figures) => cpu(figures, phase)));
    return [server.name, rate(0), cost(0), relative(0), rate(1), cost(1), relative(1)];
  });
  return {
    tables: [
      {
        title: 'From a transition to 1 000 subscribers',
        columns: [
          'path',
          'each: events/s',
          'CPU ns/event',
          'CPU × limit',
          'batch: events/s',
          'CPU ns/event',
          'CPU × limit',
        ],
        rows,
      },
      { title: 'The transition alone', columns: ['', 'ns'], rows: [['XState, two actions', transitionNs()]] },
    ],
    checks: [],
  };
}

export const transitionToWire: Benchmark = {
  name: 'transition-to-wire',
  title: 'A transition all the way to the wire',
  run,
};
