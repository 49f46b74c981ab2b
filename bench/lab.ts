import { type Benchmark, type Check, type Context, interleaved, median, type Result, type Table } from './harness.ts';
import type { Harness } from './lab/harnesses.ts';
import { defaultLimitMs, pickHarnesses, pickTasks, runLab, tasksTable, totalsOf, totalsTable } from './lab/lab.ts';
import { type Outcome, runTask } from './lab/run.ts';

/** A task of each language: the time is that of the harness, not of the task. */
const timedTasks = ['ts-pages', 'py-mean', 'c-search', 'sh-odd-path'];
const options = { limitMs: defaultLimitMs };

/** Counts are the same at each run; only the time is measured in rounds. */
async function times(used: readonly Harness[], rounds: number): Promise<Table> {
  const tasks = pickTasks(timedTasks);
  const found = new Map<Harness, number[]>();
  for (const task of tasks) {
    const measured = await interleaved(used, rounds, async (harness) => (await runTask(harness, task, options)).ms);
    for (const [harness, ms] of measured) found.set(harness, [...(found.get(harness) ?? []), median(ms) / 1000]);
  }
  return {
    title: 'Seconds from the command to its end, in a home of its own; median',
    columns: ['Harness', ...timedTasks],
    rows: used.map((harness) => [harness.name, ...(found.get(harness) ?? [])]),
  };
}

const ofHarness = (outcomes: readonly Outcome[], name: string) => outcomes.filter(({ harness }) => harness === name);

function checksOf(outcomes: readonly Outcome[], peers: readonly Harness[]): Check[] {
  const ours = totalsOf(ofHarness(outcomes, 'oratorio'));
  const theirs = peers.map(({ name }) => totalsOf(ofHarness(outcomes, name)));
  const least = (pick: (totals: typeof ours) => number): number => Math.min(...theirs.map(pick));
  return [
    { what: 'repositories solved', measured: ours.solved, atLeast: pickTasks([]).length },
    { what: 'requests / fewest of a peer', measured: ours.requests / least(({ requests }) => requests), atMost: 1 },
    { what: 'bytes / fewest of a peer', measured: ours.bytes / least(({ bytes }) => bytes), atMost: 1 },
  ];
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const used = pickHarnesses(quick ? ['oratorio', 'pi'] : []);
  const tasks = pickTasks([]);
  const onOutcome = ({ task, harness, reason }: Outcome) =>
    reason === undefined || console.error(`${harness} ${task}: ${reason}`);
  const outcomes = await runLab({ harnesses: used, tasks, onOutcome, ...options });
  return {
    tables: [totalsTable(outcomes, used), tasksTable(outcomes, used), await times(used, rounds)],
    checks: checksOf(
      outcomes,
      used.filter(({ name }) => name !== 'oratorio'),
    ),
    notes: [
      'A scripted model, the same for all, acts like a good model, usual slips included. Solved: the tests pass, the ' +
        'changed files are byte for byte as the model meant them, and no other file is changed.',
    ],
  };
}

export const lab: Benchmark = {
  name: 'lab',
  title: 'The agent as a harness: small repositories with a failing test',
  run,
};
