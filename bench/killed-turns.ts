import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KillResult, killAtRandom, randomOf } from '../test/appserver/random-kills.ts';
import type { Benchmark, Context, Result } from './harness.ts';

const moments = { quick: 100, full: 2_000 };

/** Result so far, so that an interrupted run loses only its last batch. */
function save(result: KillResult): void {
  const directory = join(import.meta.dirname, 'results');
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'killed-turns.batches.local.json'), `${JSON.stringify(result)}\n`);
}

async function run({ quick }: Context): Promise<Result> {
  const wanted = quick ? moments.quick : moments.full;
  const ends: (() => unknown)[] = [];
  const began = performance.now();
  try {
    const { kills, turns, faults, ...found } = await killAtRandom(
      { teardown: (work) => ends.unshift(work) },
      { moments: wanted, kills: 0, random: randomOf(1), onBatch: save },
    );
    return {
      tables: [
        {
          title: 'Turns whose agent server kills itself with SIGKILL at random steps',
          columns: ['moments', 'kills', 'turns', 'faults', 's'],
          rows: [[found.moments, kills, turns, faults.length, (performance.now() - began) / 1_000]],
        },
      ],
      checks: [
        { what: 'kills of a running turn', measured: found.moments, atLeast: wanted },
        { what: 'turns that ended otherwise than without a kill', measured: faults.length, atMost: 0 },
      ],
      notes: faults.slice(0, 20),
    };
  } finally {
    for (const end of ends) await end();
  }
}

export const killedTurns: Benchmark = { name: 'killed-turns', title: 'Turns over kill -9 of their agent server', run };
