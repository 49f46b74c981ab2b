import fc from 'fast-check';
import { batches, runBatch, Scene } from '../test/agent/tools/git-attacks.ts';
import { type Benchmark, type Context, median, type Result } from './harness.ts';

/** Repositories of one batch, and programs that its command plants in each. */
const perBatch = 10 * 20;
const perRound = 4_000;

/** Plants programs in one batch after the other. @returns programs that ran, and milliseconds of each batch */
async function plant(count: number, seed: number, sandbox: 'required' | 'off') {
  const ran: string[] = [];
  const times: number[] = [];
  for (const batch of fc.sample(batches, { numRuns: count, seed })) {
    const scene = new Scene(sandbox);
    const from = performance.now();
    try {
      ran.push(...(await runBatch(scene, batch)));
    } finally {
      await scene.close();
    }
    times.push(performance.now() - from);
  }
  return { ran, times };
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const count = quick ? 2 : perRound / perBatch;
  const found = { ran: [] as string[], times: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    const { ran, times } = await plant(count, 20_261_128 + round, 'required');
    found.ran.push(...ran);
    found.times.push(...times);
  }
  const control = await plant(1, 20_261_128, 'off');
  if (control.ran.length === 0) throw new Error('No planted program ran without the sandbox: the scene shows nothing.');
  const planted = count * rounds * perBatch;
  return {
    tables: [
      {
        title: `${planted} programs planted in git directories, in commands of ${perBatch}`,
        columns: ['', 'planted', 'ran', 'ms of a command and the work of the user'],
        rows: [
          ['in the sandbox', planted, found.ran.length, median(found.times)],
          ['without a sandbox, for comparison', perBatch, control.ran.length, median(control.times)],
        ],
      },
    ],
    checks: [{ what: 'planted programs that git ran', measured: found.ran.length, atMost: 0, unit: '' }],
    notes: found.ran.slice(0, 20),
  };
}

export const gitProtection: Benchmark = {
  name: 'git-protection',
  title: 'Programs that commands plant in git directories',
  run,
};
