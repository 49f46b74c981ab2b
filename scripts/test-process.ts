/** Runs one process of tests: a file, or several that share it (`test-units.ts`). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { withSourcePlaces } from './source-places.ts';
import { countsOf, type TestProcessResult } from './tap-output.mjs';
import { root } from './toolchain.mjs';

export interface TestProgram {
  /** Source, named from the root of the repository, or the name of several. */
  readonly name: string;
  /** Path of the JavaScript or TypeScript that Node runs. */
  readonly program: string;
}

export interface TestProcessOptions {
  /** Directory of the bundles. */
  readonly directory: string;
  readonly nodeArguments: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
}

/** Between SIGTERM, on which tap reports the unfinished tests, and SIGKILL. */
const reportMs = 30_000;
/** For output that follows the exit. */
const outputMs = 5_000;

/** Runs a process to its end; never rejects for one that fails. */
export async function runTestProcess(
  { name, program }: TestProgram,
  options: TestProcessOptions,
): Promise<TestProcessResult> {
  const began = performance.now();
  const child = spawn(process.execPath, [...options.nodeArguments, program], {
    cwd: root,
    env: options.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let isTimedOut = false;
  const timers = [
    setTimeout(() => {
      isTimedOut = true;
      child.kill('SIGTERM');
    }, options.timeoutMs),
    setTimeout(() => child.kill('SIGKILL'), options.timeoutMs + reportMs),
  ];
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  createInterface({ input: child.stderr }).on('line', (line) => {
    process.stderr.write(`${withSourcePlaces(line, options.directory)}\n`);
  });
  const closed = once(child, 'close');
  const [exitCode, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  for (const timer of timers) clearTimeout(timer);
  // A process that this one left behind may hold the pipe open.
  await Promise.race([closed, pause(outputMs, undefined, { ref: false })]);
  child.stdout.destroy();
  child.stderr.destroy();
  const milliseconds = performance.now() - began;
  const { isGood, counts } = judge(output, exitCode === 0 && !isTimedOut);
  if (!isGood) output = withSourcePlaces(output, options.directory);
  const cpu = /^# cpu: (\d+\.\d+)$/m.exec(output)?.[1];
  const cpuSeconds = cpu === undefined ? {} : { cpuSeconds: Number(cpu) };
  return { name, isGood, counts, milliseconds, ...cpuSeconds, exitCode, signal, isTimedOut, output };
}

/** A file without a summary broke off. */
function judge(tap: string, hasEndedWell: boolean): Pick<TestProcessResult, 'isGood' | 'counts'> {
  const counts = countsOf(tap);
  const isGood = hasEndedWell && counts !== undefined && counts.failed === 0;
  const { passed, failed } = counts ?? { passed: 0, failed: 0 };
  return { isGood, counts: { passed, failed: isGood ? 0 : Math.max(1, failed) } };
}
