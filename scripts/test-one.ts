/** `npm run test:one -- FILE…`: runs a few test files without the checks and builds of the whole run. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ImportGraph } from './import-graph.ts';
import { onEndSignal } from './signals.ts';
import { NoSuchTestError, needsBuild, resolveTestFiles, runTestFile, type TestResult } from './test-files.ts';
import { root } from './toolchain.mjs';

const usage = `Usage: npm run test:one -- FILE…

Runs test files one after the other, from the sources, as the whole run does.
Builds dist/ first only if a file runs the built product and dist/ is out of date.

  FILE     path or pattern, for example test/events/event-log.test.ts
  --help   print this

Exit code: 0 when all assertions passed, 1 when one failed, 2 for wrong arguments.`;

/** @returns the files, or the exit code of a command line that runs none */
function readArguments(): readonly string[] | number {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { help: { type: 'boolean' } } });
    if (values.help) {
      console.log(usage);
      return 0;
    }
    if (positionals.length > 0) return resolveTestFiles(positionals);
    console.error(`A test file is missing.\n\n${usage}`);
  } catch (error) {
    if (!(error instanceof NoSuchTestError) && !(error instanceof TypeError)) throw error;
    console.error(error.message);
  }
  return 2;
}

/** @returns whether the build succeeded */
function build(): boolean {
  console.log('Building dist/, which is out of date …');
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'scripts', 'build.ts')];
  return spawnSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0;
}

async function runAll(files: readonly string[]): Promise<number> {
  const graph = new ImportGraph();
  if (files.some((file) => needsBuild(graph, file)) && !build()) {
    console.error('✖ The build failed: no test was run.');
    return 1;
  }
  const signal = onEndSignal();
  const results: TestResult[] = [];
  for (const file of files) {
    if (signal.aborted) return 1;
    results.push(await runTestFile(file, signal));
  }
  const sum = (count: (result: TestResult) => number) => results.reduce((total, each) => total + count(each), 0);
  if (results.length > 1) console.log(`${sum(({ passed }) => passed)} passed, ${sum(({ failed }) => failed)} failed`);
  return results.every(({ isGood }) => isGood) ? 0 : 1;
}

const files = readArguments();
process.exitCode = typeof files === 'number' ? files : await runAll(files);
