import { join } from 'node:path';
import * as v from 'valibot';
import { type Benchmark, type Context, firstLine, interleaved, median, type Result, start } from './harness.ts';

const jobs = 10_000;
const due = 1_000;

const Figures = v.object({
  startMs: v.number(),
  heapMiB: v.number(),
  dueMs: v.number(),
  longestBlockMs: v.number(),
  stateMs: v.number(),
  stateBlockMs: v.number(),
  againMs: v.number(),
  turns: v.number(),
});
type Figures = v.InferOutput<typeof Figures>;

/** Every case in a process of its own: memory of one must not be that of another. */
const cases = [
  { name: 'today: actors of active jobs only', args: [jobs, due] },
  { name: 'an actor for every job', args: [jobs, due, 'actors'] },
] as const;

async function measure({ args }: (typeof cases)[number]): Promise<Figures> {
  const file = join(import.meta.dirname, 'peers', 'automations.ts');
  const flags = ['--expose-gc', '--disable-warning=ExperimentalWarning'];
  const { child, stop } = start({ command: process.execPath, args: [...flags, file, ...args.map(String)] });
  try {
    const figures = v.parse(Figures, JSON.parse(await firstLine(child, 240_000)));
    if (figures.turns !== due) throw new Error(`${figures.turns} runs instead of ${due}`);
    return figures;
  } finally {
    await stop();
  }
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const found = await interleaved(cases, quick ? 1 : Math.min(rounds, 3), measure);
  const of = (one: (typeof cases)[number], key: (figures: Figures) => number): number =>
    median((found.get(one) ?? []).map(key));
  const [lazy] = cases;
  return {
    tables: [
      {
        title: `A scheduler with ${jobs} jobs of which ${due} are due when it starts`,
        columns: [
          '',
          'start ms',
          'heap MiB',
          'runs/s',
          'longest block ms',
          'first state ms',
          'block meanwhile ms',
          'again ms',
        ],
        rows: cases.map((each) => [
          each.name,
          of(each, ({ startMs }) => startMs),
          of(each, ({ heapMiB }) => heapMiB),
          of(each, ({ dueMs }) => due / (dueMs / 1_000)),
          of(each, ({ longestBlockMs }) => longestBlockMs),
          of(each, ({ stateMs }) => stateMs),
          of(each, ({ stateBlockMs }) => stateBlockMs),
          of(each, ({ againMs }) => againMs),
        ]),
      },
    ],
    checks: [
      { what: `started with ${jobs} jobs`, measured: of(lazy, ({ startMs }) => startMs), atMost: 500, unit: ' ms' },
      { what: 'memory for them', measured: of(lazy, ({ heapMiB }) => heapMiB), atMost: 16, unit: ' MiB' },
      {
        what: 'longest block of the event loop while they run',
        measured: of(lazy, ({ longestBlockMs }) => longestBlockMs),
        atMost: 50,
        unit: ' ms',
      },
    ],
  };
}

export const automations: Benchmark = { name: 'automations', title: 'Ten thousand jobs', run };
