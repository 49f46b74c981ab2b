import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Benchmark, type Context, firstLine, median, native, type Result, start } from './harness.ts';

const Figures = v.object({
  firstCpuMs: v.number(),
  scanMs: v.number(),
  commitMs: v.number(),
  diskRatio: v.number(),
  restored: v.number(),
  restoreMs: v.number(),
  /** Longest wait of a tool that comes 300 ms after the beginning of its turn. */
  waitedMs: v.number(),
  longestBlockMs: v.number(),
  /** Longest block of an idle event loop. */
  idleBlockMs: v.number(),
  p99BlockMs: v.number(),
});
type Figures = v.InferOutput<typeof Figures>;

const flags = ['--conditions=development', '--disable-warning=ExperimentalWarning'];

/** Files in 50 × 100 directories, each of some kilobytes of text. */
function makeTree(root: string, files: number): void {
  for (let number = 0; number < files; number += 1) {
    const directory = join(root, `d${number % 50}`, `e${number % 100}`);
    const name = `f${Math.floor(number / 100)}`;
    if (number < 100 * 50) mkdirSync(directory, { recursive: true });
    const line = `${number} ${(number * 2_654_435_761) % 2 ** 32} the quick brown fox\n`;
    writeFileSync(join(directory, name), line.repeat(40 + (number % 90)));
  }
}

/** User and system time of `git add -A -f` in a new repository, in milliseconds. */
function gitCpuMs(root: string): number {
  execFileSync('git', ['init', '--quiet', root]);
  const printed = execFileSync('bash', ['-c', 'git add -A -f; times'], { cwd: root, encoding: 'utf8' });
  const [, children = ''] = printed.trim().split('\n').slice(-2);
  const seconds = [...children.matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, rest]) => Number(minutes) * 60 + Number(rest),
  );
  rmSync(join(root, '.git'), { recursive: true });
  return seconds.reduce((sum, each) => sum + each, 0) * 1_000;
}

/** Entries of a walk in C, and the fastest of some walks in milliseconds. */
function walk(root: string, rounds: number): { readonly entries: number; readonly ms: number } {
  const found = Array.from({ length: rounds }, () =>
    execFileSync(native().treeWalk, [root], { encoding: 'utf8' }).split(' ').map(Number),
  );
  return { entries: found[0]?.[0] ?? 0, ms: Math.min(...found.map(([, ms = 0]) => ms)) };
}

async function measure(root: string, store: string, rounds: number): Promise<Figures> {
  const file = join(import.meta.dirname, 'peers', 'checkpoints.ts');
  const { child, stop } = start({
    command: process.execPath,
    args: [...flags, file, root, store, String(rounds)],
    cwd: root,
  });
  try {
    return v.parse(Figures, JSON.parse(await firstLine(child, 600_000)));
  } finally {
    await stop();
  }
}

/** Random programs of a test that change a tree and are taken back. @returns failed assertions of the test */
function differingGroups(name: string, variable: string, programs: number): number {
  const file = join(import.meta.dirname, '..', 'test', 'checkpoints', name);
  const env = { ...process.env, [variable]: String(programs), TAP_TIMEOUT: '3600' };
  const options = { encoding: 'utf8', env, maxBuffer: 64 * 2 ** 20 } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, file], options);
  const differing = [...stdout.matchAll(/^ +not ok/gm)].length;
  if (status !== 0 && differing === 0) throw new Error(`The random programs did not run: ${stderr || stdout}`);
  return differing;
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const files = quick ? 5_000 : 50_000;
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-bench-checkpoints-'));
  const root = join(directory, 'workspace');
  try {
    makeTree(root, files);
    const git = gitCpuMs(root);
    const found: Figures[] = [];
    const walks: number[] = [];
    let entries = 0;
    for (let round = 0; round < (quick ? 1 : Math.min(rounds, 3)); round += 1) {
      const limit = walk(root, 5);
      entries = limit.entries;
      walks.push(limit.ms);
      const store = join(directory, `store-${round}`);
      mkdirSync(store, { mode: 0o700 });
      found.push(await measure(root, store, quick ? 2 : 5));
    }
    const programs = quick ? 100 : 10_000;
    const differing = differingGroups('programs.test.ts', 'ORATORIO_TEST_UNDO_RUNS', programs);
    const resumed = quick ? 50 : 1_000;
    const wrong = differingGroups('resumed-turns.test.ts', 'ORATORIO_TEST_RESUMED_UNDO_RUNS', resumed);
    const of = (key: (figures: Figures) => number) => median(found.map(key));
    const walkMs = median(walks);
    const ratio = median(found.map(({ scanMs }, index) => scanMs / (walks[index] ?? 1)));
    return {
      tables: [
        {
          title: `Checkpoints of a workspace with ${entries} entries`,
          columns: ['', 'here', 'beside it'],
          rows: [
            ['nothing has changed, ms; a walk in C, ms', of(({ scanMs }) => scanMs), walkMs],
            ['100 files have changed, ms', of(({ commitMs }) => commitMs), ''],
            ['first checkpoint, CPU ms; `git add -A -f`, CPU ms', of(({ firstCpuMs }) => firstCpuMs), git],
            ['restore of 500 files, ms', of(({ restoreMs }) => restoreMs), ''],
            ['a changing tool, 300 ms after its turn began, waits, ms', of(({ waitedMs }) => waitedMs), ''],
            ['disk for a turn, of the compressed changes', of(({ diskRatio }) => diskRatio), ''],
            ['event loop late, p99, ms', of(({ p99BlockMs }) => p99BlockMs), ''],
            [
              'event loop late, longest, ms; a loop with nothing to do beside a busy thread, ms',
              of(({ longestBlockMs }) => longestBlockMs),
              of(({ idleBlockMs }) => idleBlockMs),
            ],
          ],
        },
      ],
      checks: [
        { what: 'a scan against a walk in C', measured: ratio, atMost: 1.3, unit: ' ×' },
        {
          what: '100 changed files beyond the scan',
          measured: of(({ commitMs, scanMs }) => commitMs - scanMs),
          atMost: 20,
          unit: ' ms',
        },
        {
          what: 'first checkpoint against `git add -A -f`',
          measured: of(({ firstCpuMs }) => firstCpuMs) / git,
          atMost: 1,
          unit: ' × CPU',
        },
        { what: 'disk for a turn', measured: of(({ diskRatio }) => diskRatio), atMost: 1.2, unit: ' × compressed' },
        { what: 'restore of 500 paths', measured: of(({ restoreMs }) => restoreMs), atMost: 1_500, unit: ' ms' },
        {
          what: `of ${programs} random programs taken back, groups that differ`,
          measured: differing,
          atMost: 0,
          unit: '',
        },
        { what: `of ${resumed} random turns resumed after a death, wrong undos`, measured: wrong, atMost: 0, unit: '' },
        { what: 'wait of a tool after 300 ms', measured: of(({ waitedMs }) => waitedMs), atMost: 5, unit: ' ms' },
        { what: 'event loop late, p99', measured: of(({ p99BlockMs }) => p99BlockMs), atMost: 5, unit: ' ms' },
        {
          what: 'event loop late, longest',
          measured: of(({ longestBlockMs }) => longestBlockMs),
          atMost: 5,
          unit: ' ms',
        },
      ],
    };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export const checkpoints: Benchmark = { name: 'checkpoints', title: 'Checkpoints of a workspace, and restores', run };
