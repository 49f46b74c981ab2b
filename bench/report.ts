import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Machine, machine } from './machine.ts';

export type Cell = string | number;

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/** A figure against its target. */
export interface Check {
  readonly what: string;
  readonly measured: number;
  /** `atLeast` or `atMost` is the target. */
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly unit?: string;
}

/** Result of a benchmark. */
export interface Result {
  readonly tables: readonly Table[];
  readonly checks: readonly Check[];
  readonly notes?: readonly string[];
}

export interface Context {
  readonly quick: boolean;
  /** Interleaved rounds; medians are taken over them. */
  readonly rounds: number;
  /** Phases of a minute take ten. */
  readonly long?: boolean;
  /** Root of another built checkout to compare with. */
  readonly against?: string | undefined;
}

export interface Benchmark {
  readonly name: string;
  readonly title: string;
  readonly run: (context: Context) => Promise<Result>;
}

export const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return Number.NaN;
  if (sorted.length % 2 === 1) return sorted[Math.floor(middle)] ?? Number.NaN;
  return ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

/** Three significant digits: more is noise. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1_000_000) return `${(value / 1_000_000).toFixed(2)} M`;
  if (size >= 10_000) return `${Math.round(value / 1000)} k`;
  if (size >= 100) return String(Math.round(value));
  return value.toFixed(size >= 10 ? 1 : 2);
}

export const isMet = ({ measured, atLeast, atMost }: Check): boolean =>
  measured >= (atLeast ?? Number.NEGATIVE_INFINITY) && measured <= (atMost ?? Number.POSITIVE_INFINITY);

/** @param met absent: worked out from the figure */
export function checkLine(check: Check, met = isMet(check)): string {
  const { what, measured, atLeast, atMost, unit = '' } = check;
  const target = atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`;
  return `${met ? 'PASS ' : 'SHORT'}  ${what}: ${figure(measured)}${unit} (target ${target}${unit})`;
}

/** The table as Markdown, readable in a terminal too. */
export function renderTable({ title, columns, rows }: Table): string {
  const lines = [columns, ...rows].map((row) => row.map((cell) => (typeof cell === 'number' ? figure(cell) : cell)));
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0))).join(' | ')} |`;
  const [head = [], ...body] = lines;
  const rule = `|${widths.map((width, index) => (index === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [`**${title}**`, '', line(head), rule, ...body.map(line)].join('\n');
}

export function describeMachine({ cpu, cores, memoryGiB, node, kernel }: Machine): string {
  return `${cpu}, ${cores} cores, ${memoryGiB} GiB, Node ${node}, ${kernel}`;
}

export function render(benchmark: Benchmark, command: string, { tables, checks, notes = [] }: Result): string {
  return [
    `## ${benchmark.title}`,
    `\`${command}\` on ${describeMachine(machine())}`,
    ...tables.map(renderTable),
    ...notes,
    checks.map((check) => checkLine(check)).join('\n'),
  ].join('\n\n');
}

/** Saves the result in bench/results. Quick runs go to a file that is not committed. */
export function save(benchmark: Benchmark, command: string, context: Context, result: Result): void {
  const directory = join(import.meta.dirname, 'results');
  const content = {
    benchmark: benchmark.name,
    title: benchmark.title,
    command,
    at: new Date().toISOString(),
    machine: machine(),
    rounds: context.rounds,
    tables: result.tables.map((table) => ({
      ...table,
      rows: table.rows.map((row) => row.map((cell) => (typeof cell === 'number' ? Number(cell.toPrecision(5)) : cell))),
    })),
    notes: result.notes ?? [],
    checks: result.checks.map((check) => ({
      ...check,
      measured: Number(check.measured.toPrecision(5)),
      met: isMet(check),
    })),
  };
  mkdirSync(directory, { recursive: true });
  const file = join(directory, `${benchmark.name}${context.quick ? '.local' : ''}.json`);
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
  // In the form the repository's check asks for.
  if (!context.quick) spawnSync('biome', ['format', '--write', file]);
}
