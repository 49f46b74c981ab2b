import { execFile, spawnSync } from 'node:child_process';
import type { ProcessEntry } from './procfs.ts';

/**
 * The process table of systems without `/proc` (macOS, BSD), through `ps`. Start times have one second's resolution
 * there; they are printed by the same program in the same zone each time, so they are compared for equality.
 */
const columns = 'pid=,ppid=,pgid=,stat=,lstart=';
const environment = { PATH: '/bin:/usr/bin', LC_ALL: 'C', TZ: 'UTC0' };

/** Reads one line of `ps -o pid=,ppid=,pgid=,stat=,lstart=`. */
export function parsePsLine(line: string): ProcessEntry | undefined {
  const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S.*?)\s*$/.exec(line);
  if (!match) return undefined;
  const [, pid, parent, group, state = '', started = ''] = match;
  return {
    pid: Number(pid),
    parent: Number(parent),
    group: Number(group),
    zombie: state.startsWith('Z'),
    startedTicks: started.replace(/\s+/g, ' '),
  };
}

/** The line of one process. Blocks for some milliseconds: there is no cheaper source without native code. */
export function readEntryByPs(pid: number): ProcessEntry | 'gone' | 'unknown' {
  const result = spawnSync('ps', ['-o', columns, '-p', String(pid)], { env: environment, encoding: 'utf8' });
  if (result.error || result.signal) return 'unknown';
  if (result.status !== 0 && result.stdout.trim() === '') return 'gone';
  return parsePsLine(result.stdout.split('\n')[0] ?? '') ?? 'unknown';
}

/** Numeric owner of a process; undefined when it has ended or `ps` cannot run. */
export function readOwnerByPs(pid: number): number | undefined {
  const result = spawnSync('ps', ['-o', 'uid=', '-p', String(pid)], { env: environment, encoding: 'utf8' });
  const text = result.stdout?.trim() ?? '';
  return result.status === 0 && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** All processes; rejects when `ps` cannot run. */
export function listEntriesByPs(): Promise<ProcessEntry[]> {
  return new Promise((resolve, reject) => {
    execFile('ps', ['-axo', columns], { env: environment, maxBuffer: 16 * 1_048_576 }, (error, stdout) => {
      if (error) return reject(error);
      resolve(stdout.split('\n').flatMap((line) => parsePsLine(line) ?? []));
    });
  });
}

/** This boot of the machine (macOS), or an empty string where the system has no name for it. */
export function readBootIdBySysctl(): string {
  const result = spawnSync('sysctl', ['-n', 'kern.bootsessionuuid'], { env: environment, encoding: 'utf8' });
  return result.status === 0 ? result.stdout.trim() : '';
}
