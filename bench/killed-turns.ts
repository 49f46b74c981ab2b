import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KillResult, killAtRandom, randomOf } from '../test/appserver/random-kills.ts';
import type { Benchmark, Context, Result } from './harness.ts';

/** Kills of running turns, by victim: an agent server without a Hub, or a Hub, half of the time with its agent server. */
const moments = { quick: { server: 100, hub: 20 }, full: { server: 2_000, hub: 400 } };

/** Result so far, so that an interrupted run loses only its last batch. */
function save(result: KillResult): void {
  const directory = join(import.meta.dirname, 'results');
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'killed-turns.batches.local.json'), `${JSON.stringify(result)}\n`);
}

async function runKills(wanted: number, killsHub: boolean) {
  const ends: (() => unknown)[] = [];
  const began = performance.now();
  try {
    const result = await killAtRandom(
      { teardown: (work) => ends.unshift(work) },
      { moments: wanted, kills: 0, random: randomOf(1), killsHub, onBatch: save },
    );
    return { ...result, seconds: (performance.now() - began) / 1_000 };
  } finally {
    for (const end of ends) await end();
  }
}

async function run({ quick }: Context): Promise<Result> {
  const wanted = quick ? moments.quick : moments.full;
  const server = await runKills(wanted.server, false);
  const hub = await runKills(wanted.hub, true);
  const faults = [...server.faults, ...hub.faults];
  const rowOf = (victims: string, { moments, kills, turns, faults, seconds }: typeof hub) => [
    ...[victims, moments, kills, turns, faults.length, seconds],
  ];
  return {
    tables: [
      {
        title: 'Turns whose processes are killed with SIGKILL at random steps',
        columns: ['killed', 'moments', 'kills', 'turns', 'faults', 's'],
        rows: [rowOf('agent server', server), rowOf('Hub, or Hub and agent server', hub)],
      },
    ],
    checks: [
      { what: 'kills of a running turn', measured: server.moments + hub.moments, atLeast: wanted.server + wanted.hub },
      { what: 'turns that ended differently from a run without a kill', measured: faults.length, atMost: 0 },
    ],
    notes: faults.slice(0, 20),
  };
}

export const killedTurns: Benchmark = {
  name: 'killed-turns',
  title: 'Turns over kill -9 of their agent server, the Hub and both',
  run,
};
