import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';

/** The machine a result was measured on. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly node: string;
  readonly kernel: string;
}

export function machine(): Machine {
  const processors = cpus();
  return {
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    kernel: `${process.platform} ${release()}`,
  };
}

/** Most files a process started from here may have open. */
export function fileLimit(): number {
  const text = spawnSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).stdout.trim();
  return text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text);
}

const hasTaskset = spawnSync('taskset', ['--version']).status === 0 && cpus().length > 1;

/** The command line pinned to one core, where the machine has two and `taskset`. */
export function pinned(core: number | undefined, command: string, args: readonly string[]): [string, string[]] {
  if (core === undefined || !hasTaskset) return [command, [...args]];
  return ['taskset', ['-c', String(core), command, ...args]];
}

function kibOf(path: string, key: string): number {
  const match = new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(readFileSync(path, 'utf8'));
  return Number(match?.[1] ?? Number.NaN);
}

/** Resident memory, KiB. */
export const rssKiB = (pid: number): number => kibOf(`/proc/${pid}/status`, 'VmRSS');
/** Proportional share of resident memory, KiB: pages that processes share are counted once among them. */
export const pssKiB = (pid: number): number => kibOf(`/proc/${pid}/smaps_rollup`, 'Pss');

/** User and system time of a process so far, milliseconds (in steps of a clock tick, 10 ms as a rule). */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
