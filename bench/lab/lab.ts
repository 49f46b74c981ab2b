/** Runs the lab: every harness asked for on every task, in turn, and the table of the results. */
import { figure, type Table } from '../report.ts';
import { type Harness, harnesses } from './harnesses.ts';
import { tasks } from './repositories/index.ts';
import { type Outcome, type RunOptions, runTask } from './run.ts';
import type { Task } from './task.ts';

/** A run that takes longer hangs: the slowest takes seconds. */
export const defaultLimitMs = 180_000;

export interface LabOptions extends RunOptions {
  readonly harnesses: readonly Harness[];
  readonly tasks: readonly Task[];
  readonly onOutcome: (outcome: Outcome) => void;
}

/** @returns the outcomes in the order of the tasks; of one task in that of the harnesses */
export async function runLab({ harnesses, tasks, onOutcome, ...options }: LabOptions): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const task of tasks) {
    for (const harness of harnesses) {
      const outcome = await runTask(harness, task, options);
      outcomes.push(outcome);
      onOutcome(outcome);
    }
  }
  return outcomes;
}

/** @throws when a name is not in the list */
function pick<T extends { readonly name: string }>(
  what: string,
  list: readonly T[],
  names: readonly string[],
): readonly T[] {
  const unknown = names.filter((name) => !list.some((each) => each.name === name));
  if (unknown.length > 0)
    throw new Error(`There is no ${what} ${unknown.join(', ')}. Known: ${list.map(({ name }) => name).join(', ')}.`);
  return names.length === 0 ? list : list.filter(({ name }) => names.includes(name));
}

export const pickHarnesses = (names: readonly string[]): readonly Harness[] => pick('harness', harnesses, names);

/** Tasks by their names, or by their language. */
export const pickTasks = (names: readonly string[]): readonly Task[] => {
  const languages = new Set(tasks.map(({ language }) => language as string));
  const asked = names.flatMap((name) =>
    languages.has(name) ? tasks.filter(({ language }) => language === name).map((task) => task.name) : [name],
  );
  return pick('task', tasks, asked);
};

export interface Totals {
  readonly solved: number;
  readonly requests: number;
  readonly bytes: number;
  readonly seconds: number;
}

export function totalsOf(outcomes: readonly Outcome[]): Totals {
  const sum = (value: (outcome: Outcome) => number) => outcomes.reduce((total, each) => total + value(each), 0);
  return {
    solved: outcomes.filter(({ isSolved }) => isSolved).length,
    requests: sum(({ requests }) => requests),
    bytes: sum(({ bytes }) => bytes),
    seconds: sum(({ ms }) => ms) / 1000,
  };
}

const kib = (bytes: number): string => figure(bytes / 1024);

/** Totals by harness. */
export function totalsTable(outcomes: readonly Outcome[], used: readonly Harness[]): Table {
  return {
    title: `Repositories solved, requests, bytes sent and time: ${new Set(outcomes.map(({ task }) => task)).size} repositories`,
    columns: ['Harness', 'solved', 'requests', 'KiB sent', 'seconds', 'not solved'],
    rows: used.map(({ name, version }) => {
      const own = outcomes.filter(({ harness }) => harness === name);
      const { solved, requests, bytes, seconds } = totalsOf(own);
      const lost = own.filter(({ isSolved }) => !isSolved).map(({ task }) => task);
      const counts = [String(solved), String(requests), kib(bytes), figure(seconds)];
      return [`${name} ${name === 'oratorio' ? '' : version}`.trim(), ...counts, lost.join(', ') || '–'];
    }),
  };
}

/** Requests and KiB of each task by harness; a cross marks an unsolved task. */
export function tasksTable(outcomes: readonly Outcome[], used: readonly Harness[]): Table {
  const asked = tasks.filter(({ name }) => outcomes.some(({ task }) => task === name));
  return {
    title: 'Requests / KiB sent, by repository; ✖: not solved',
    columns: ['Repository', 'asks for', ...used.map(({ name }) => name)],
    rows: asked.map(({ name, probes }) => [
      name,
      probes,
      ...used.map((harness) => {
        const found = outcomes.find((outcome) => outcome.task === name && outcome.harness === harness.name);
        return found === undefined ? '–' : `${found.requests} / ${kib(found.bytes)}${found.isSolved ? '' : ' ✖'}`;
      }),
    ]),
  };
}
