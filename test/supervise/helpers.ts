import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { type ManagedProcess, type SpawnOptions, spawnManaged } from '../../src/supervise/index.ts';
import { scanProcesses } from '../../src/supervise/scan.ts';
import { program } from '../programs.ts';

/** Begins the marker of every process that this test file starts. */
const prefix = `test-${process.pid}-`;
let count = 0;
export const newMarker = (): string => `${prefix}${count++}`;

/** Fixtures that import sources of the product. */
const bundled = ['first-lock', 'spawns-counter', 'takes-lock'];

export const fixture = (name: string): string =>
  bundled.includes(name)
    ? program(`test/fixtures/process/${name}.mjs`)
    : fileURLToPath(new URL(`../fixtures/process/${name}.mjs`, import.meta.url));

/** A directory of its own outside the repository, removed afterwards. */
export function temporaryDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-supervise-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Pause between two probes: one that takes long, as reading all processes does, must not take most of a core. */
export const pauseAfter = (probeMs: number): number => Math.min(Math.max(10, 10 * probeMs), 250);

/** Resolves when `condition` holds, checked at short intervals for at most `ms`. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, ms = 180_000): Promise<void> {
  const deadline = performance.now() + ms;
  for (;;) {
    const began = performance.now();
    if (await condition()) return;
    if (began > deadline) throw new Error(`Not within ${ms} ms: ${what}`);
    await sleep(pauseAfter(performance.now() - began));
  }
}

/** True for a process that SIGSTOP has suspended. Linux only. */
export const isStopped = (pid: number): boolean => readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') T ');

/** Starts a fixture as a managed process and ends it with the test. */
export async function start(
  t: Test,
  name: string,
  args: string[] = [],
  options: Partial<SpawnOptions> = {},
): Promise<ManagedProcess> {
  const logDirectory = options.logDirectory ?? temporaryDirectory(t);
  const child = await spawnManaged({
    command: process.execPath,
    args: [fixture(name), ...args],
    cwd: logDirectory,
    env: {},
    logDirectory,
    marker: newMarker(),
    logBytes: 1_000_000,
    ...options,
  });
  endWithTest(t, child);
  return child;
}

/** A managed process does not keep our event loop alive, so the test has to. */
export function endWithTest(t: Test, child: ManagedProcess): void {
  const alive = setInterval(() => {}, 1_000);
  t.teardown(async () => {
    await child.kill();
    clearInterval(alive);
  });
}

/** Resolves with the first line that a managed process prints. */
export async function firstLine(child: ManagedProcess): Promise<string> {
  await until('a line of output', () => readFileSync(child.logs.stdout, 'utf8').includes('\n'));
  return readFileSync(child.logs.stdout, 'utf8').split('\n')[0] ?? '';
}

/** Starts a fixture as a plain child of the test, with its first line of output. It is killed with the test. */
export async function startPlain(
  t: Test,
  name: string,
  args: string[] = [],
  { detached = false } = {},
): Promise<{ child: ChildProcess; pid: number; line: string; nextLine: () => Promise<string> }> {
  const child = spawn(process.execPath, [fixture(name), ...args], { stdio: ['ignore', 'pipe', 'inherit'], detached });
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const output = createInterface({ input: child.stdout });
  const nextLine = async (): Promise<string> => (await once(output, 'line'))[0];
  return { child, pid: child.pid ?? 0, line: await nextLine(), nextLine };
}

/** Last test of each file: no process has a marker of this file. */
export function nothingLeft(t: Test): void {
  t.test('no process of these tests is left', async (t) => {
    const left = (await scanProcesses()).filter(
      ({ marker, zombie }) => !zombie && typeof marker === 'object' && marker.value.startsWith(prefix),
    );
    t.strictSame(left, []);
  });
}
