/** Finds, prepares and runs single test files, under the same Node and conditions as the whole run. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parse } from 'yaml';
import type { ImportGraph } from './import-graph.ts';
import { killTree } from './process-tree.ts';
import { isBuilt } from './stamp.mjs';
import { countsOf, isWorthShowing } from './tap-output.mjs';
import { root, toolEnvironment } from './toolchain.mjs';

/** Test files of the checkout, relative to its root. */
export const allTestFiles = (): string[] => globSync('test/**/*.test.ts', { cwd: root }).toSorted();

/** A name that matches no test file. The message names files with a similar name. */
export class NoSuchTestError extends Error {
  override readonly name = 'NoSuchTestError';
}

/**
 * The files that the arguments name: paths from the root of the checkout or from the caller's directory, or patterns.
 *
 * @throws NoSuchTestError for an argument that matches no file
 */
export function resolveTestFiles(args: readonly string[]): string[] {
  return [...new Set(args.flatMap(filesOf))];
}

function filesOf(arg: string): readonly string[] {
  const fromCaller = relative(root, resolve(process.env['INIT_CWD'] ?? root, arg));
  const found = [arg, fromCaller].find((name) => existsSync(join(root, name)) && name.endsWith('.ts'));
  if (found !== undefined) return [relative(root, resolve(root, found))];
  const matching = globSync(arg, { cwd: root }).filter((name) => name.endsWith('.test.ts'));
  if (matching.length > 0) return matching.toSorted();
  const stem = basename(arg).replace(/(\.test)?(\.ts)?$/, '');
  const similar = allTestFiles().filter((name) => stem.length > 2 && basename(name).includes(stem));
  const hint =
    similar.length > 0 ? `Similar files:\n  ${similar.slice(0, 5).join('\n  ')}` : 'All of them: test/**/*.test.ts';
  throw new NoSuchTestError(`No test file matches ${arg}.\n${hint}`);
}

/** Modules that read files of `dist/` while they run: any build will do. */
const readDist = ['src/inspect/charts.ts', 'src/inspect/page.ts'];

/** Whether a file needs a build before it runs: it starts the built product, or reads a file that only a build makes. */
export function needsBuild(graph: ImportGraph, file: string): boolean {
  // Tests of the built product name its program, as benches do; a source that names it starts it for users only.
  if (graph.closureOf(file, (each) => /^(?:test|bench)\//.test(each)).has('bin/oratorio.js')) return !isBuilt();
  if (existsSync(join(root, 'dist', '.stamp'))) return false;
  const closure = graph.closureOf(file);
  return readDist.some((module) => closure.has(module));
}

interface TapSettings {
  readonly timeout?: number;
  readonly 'node-arg'?: readonly string[];
}

const settings = (): TapSettings => parse(readFileSync(join(root, '.taprc'), 'utf8')) as TapSettings;

/** Variables of the run that this process belongs to would make a test a part of that run. */
function testEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(toolEnvironment()).filter(([name]) => !/^_?TAP|^ORATORIO_TEST_PROGRAMS$/.test(name));
  return { ...Object.fromEntries(own), TAP_TIMEOUT: String(settings().timeout ?? 30) };
}

/** Result of a test file. */
export interface TestResult {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  /** False for a file with a failed assertion, one that died, and one that was ended early. */
  readonly isGood: boolean;
  readonly ms: number;
}

/**
 * Runs one test file to its end. Prints its top-level results and each failure with its diagnostics.
 *
 * @param signal ends the file early, together with every process that it has started
 */
export async function runTestFile(file: string, signal: AbortSignal): Promise<TestResult> {
  const began = performance.now();
  const args = [...(settings()['node-arg'] ?? []), join(root, file)];
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: testEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const ended = once(child, 'close');
  const stop = () => end(child);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const isShown = isWorthShowing();
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (isShown(line)) console.log(line);
  }
  const [code] = (await ended) as [number | null];
  signal.removeEventListener('abort', stop);
  const counts = countsOf(lines.join('\n'));
  const isGood = code === 0 && counts !== undefined && counts.failed === 0;
  const died = code === null && !signal.aborted ? ` (killed by ${child.signalCode})` : '';
  const ms = performance.now() - began;
  const { passed, failed } = counts ?? { passed: 0, failed: 0 };
  console.log(
    `${isGood ? '✔' : '✖'} ${file}: ${passed} passed, ${failed} failed in ${(ms / 1000).toFixed(1)} s${died}`,
  );
  return { file, passed, failed, isGood, ms };
}

function end({ pid }: ChildProcess): void {
  if (pid !== undefined) killTree(pid);
}
