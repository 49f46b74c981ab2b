import { join } from 'node:path';
import * as v from 'valibot';
import { type Benchmark, type Context, firstLine, median, type Result, start } from './harness.ts';

const pulls = 100;
const Cycle = v.object({
  ms: v.number(),
  requests: v.number(),
  changed: v.number(),
  notModified: v.number(),
  failed: v.number(),
});
const Figures = v.object({ fresh: Cycle, again: Cycle, memoryMiB: v.number() });
type Figures = v.InferOutput<typeof Figures>;

async function measure(repositories: number): Promise<Figures> {
  const file = join(import.meta.dirname, 'peers', 'review-sync.ts');
  const args = ['--disable-warning=ExperimentalWarning', file, String(repositories), String(pulls)];
  const { child, stop } = start({ command: process.execPath, args });
  try {
    const figures = v.parse(Figures, JSON.parse(await firstLine(child, 900_000)));
    const { fresh, again } = figures;
    if (fresh.changed !== repositories * pulls || again.changed !== 0 || fresh.failed + again.failed > 0) {
      throw new Error(`Not what was there: ${JSON.stringify(figures)}`);
    }
    return figures;
  } finally {
    await stop();
  }
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const repositories = quick ? 100 : 1_000;
  const found: Figures[] = [];
  for (let round = 0; round < (quick ? 1 : Math.min(rounds, 3)); round += 1) found.push(await measure(repositories));
  const of = (key: (figures: Figures) => number): number => median(found.map(key));
  const calls = of(({ again }) => again.requests / repositories);
  const memory = of(({ memoryMiB }) => memoryMiB);
  return {
    tables: [
      {
        title: `${repositories} repositories of ${pulls} open pull requests each, of ten owners`,
        columns: ['', 'seconds', 'requests', 'repositories/s'],
        rows: [
          [
            'all new',
            of(({ fresh }) => fresh.ms / 1_000),
            of(({ fresh }) => fresh.requests),
            of(({ fresh }) => repositories / (fresh.ms / 1_000)),
          ],
          [
            'nothing changed',
            of(({ again }) => again.ms / 1_000),
            of(({ again }) => again.requests),
            of(({ again }) => repositories / (again.ms / 1_000)),
          ],
        ],
      },
    ],
    checks: [
      { what: 'requests for a repository without changes', measured: calls, atMost: 1, unit: '' },
      { what: 'memory of the process that syncs', measured: memory, atMost: 300, unit: ' MiB' },
    ],
  };
}

export const reviewSync: Benchmark = { name: 'review-sync', title: 'A thousand repositories kept in sync', run };
