import { join } from 'node:path';
import * as v from 'valibot';
import { composeV2 } from '../test/deploy/tools.ts';
import { baseArchive } from '../test/stack/base-archive.ts';
import { inOwnNamespaces } from '../test/stack/own-namespaces.ts';
import { demandPrograms } from '../test/stack/prerequisites.ts';
import { variables } from '../test/stack/variables.ts';
import { type Benchmark, type Context, median, native, type Result } from './harness.ts';

export type Kind = 'local' | 'container';

const KindRound = v.object({
  startMs: v.array(v.number()),
  stopMs: v.array(v.number()),
  adoptMs: v.number(),
  healthMs: v.number(),
  chatMs: v.number(),
  chatsPerSecond: v.number(),
});
/** Figures of one round of one kind of place. */
export type KindRound = v.InferOutput<typeof KindRound>;

const PlaceCrowd = v.object({
  ...{ workspaces: v.number(), hubMiB: v.number(), cpuPercent: v.number() },
  ...{ serverMiB: v.number(), besideMiB: v.number() },
});
/** Figures of a Hub with idle workspaces of one kind of place. */
export type PlaceCrowd = v.InferOutput<typeof PlaceCrowd>;

const PlaceFigures = v.object({
  rounds: v.object({ local: v.array(KindRound), container: v.array(KindRound) }),
  crowds: v.object({ local: PlaceCrowd, container: PlaceCrowd }),
  engine: v.string(),
});
export type PlaceFigures = v.InferOutput<typeof PlaceFigures>;

async function measure({ quick, rounds }: Context): Promise<PlaceFigures> {
  // Compiled here: the namespaces have a directory for temporary files of their own.
  native();
  await demandPrograms([]);
  const fetched = { [variables.base]: await baseArchive(), ORATORIO_TEST_COMPOSE_V2: await composeV2() };
  let output = '';
  const words = [join(import.meta.dirname, 'places-inside.ts'), JSON.stringify({ quick, rounds })];
  const code = await inOwnNamespaces(words, {
    fetched,
    onOutput: (text) => {
      output += text;
    },
  });
  if (code !== 0) throw new Error(`the part beside the engine ended with ${code}`);
  return v.parse(PlaceFigures, JSON.parse(output));
}

/** Figures of both places in the rows of the table, and the median of their ratios within each round. */
function rowsOf({ local, container }: PlaceFigures['rounds']) {
  const row = (what: string, of: (round: KindRound) => number) => {
    const values = [local.map(of), container.map(of)] as const;
    const ratio = median(values[1].map((value, round) => value / (values[0][round] ?? Number.NaN)));
    return [what, median(values[0]), median(values[1]), ratio] as const;
  };
  return [
    row('start of an agent server, from request to running record, ms', ({ startMs }) => median(startMs)),
    row('stop, ms', ({ stopMs }) => median(stopMs)),
    row('adoption after kill -9 of the Hub, from the start of the next Hub, ms', ({ adoptMs }) => adoptMs),
    row('GET /healthz, p50, ms', ({ healthMs }) => healthMs),
    row('chat turn, p50, ms', ({ chatMs }) => chatMs),
    row('chat turns per second, 16 connections', ({ chatsPerSecond }) => chatsPerSecond),
  ];
}

async function run(context: Context): Promise<Result> {
  const { rounds, crowds, engine } = await measure(context);
  const { local, container } = rounds;
  const added = (of: (round: KindRound) => number) =>
    median(container.map((round, index) => of(round) - (local[index] ? of(local[index]) : Number.NaN)));
  const { workspaces } = crowds.local;
  const crowd = (what: string, of: (crowd: PlaceCrowd) => number) => {
    const values = [of(crowds.local), of(crowds.container)] as const;
    return [`${workspaces} idle workspaces: ${what}`, ...values, values[0] > 0 ? values[1] / values[0] : ''];
  };
  return {
    tables: [
      {
        title: 'An agent server in a container beside a local one',
        columns: ['', 'local', 'container', 'container ÷ local'],
        rows: [
          ...rowsOf(rounds),
          crowd('agent server, proportional share (PSS), MiB', ({ serverMiB }) => serverMiB),
          crowd('shim and init of a container, PSS, MiB', ({ besideMiB }) => besideMiB),
          crowd('Hub, resident, MiB', ({ hubMiB }) => hubMiB),
          crowd('Hub, CPU, % of a core', ({ cpuPercent }) => cpuPercent),
        ],
      },
    ],
    checks: [
      { what: 'start beyond a local one', measured: added(({ startMs }) => median(startMs)), atMost: 600, unit: ' ms' },
      { what: 'memory beside the agent server', measured: crowds.container.besideMiB, atMost: 4, unit: ' MiB' },
      {
        what: 'GET /healthz beyond a local one, p50',
        measured: added((each) => each.healthMs),
        atMost: 1,
        unit: ' ms',
      },
    ],
    notes: [`The engine is ${engine}, in namespaces of the bench. The container has no network.`],
  };
}

export const places: Benchmark = { name: 'places', title: 'Agent servers in containers', run };
