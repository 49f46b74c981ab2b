/**
 * Runs test files, some in a process of their own and some together, and writes TAP: one subtest per process, in the order in
 * which they end. It takes the place of `tap run`, which has every Node process below a test load the hooks that measure coverage, goes by
 * name, so that long files run alone at the end, and withholds the output of a file until all before it have ended.
 *
 * Takes files and patterns, none for all, and those options of `tap run` that limit jobs and time (`--jobs=2`). The last
 * lines name the slowest and the costliest files. Exits with 1 if a file fails.
 */
import { globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { TapConfig } from '@tapjs/config';
import { fileReport, summaryReport, type TestProcessResult } from './tap-output.mjs';
import { bundleTests, programOf } from './test-bundles.ts';
import { realJobs, runTogether } from './test-jobs.ts';
import { coreShare, longestFirst, readWork, type Work, writeWork } from './test-order.ts';
import { runTestProcess, type TestProcessOptions } from './test-process.ts';
import { bundleTestPrograms } from './test-programs.ts';
import { type TestUnit, testUnits } from './test-units.ts';
import { root } from './toolchain.mjs';

const { values, positionals } = await TapConfig.load();
const patterns = positionals.length > 0 ? positionals : values.include;
const found = [...new Set(globSync(patterns, { cwd: root }))];
const work = readWork();

/** Directory of one run: bundles, and the directories that tests make with `t.testdir`. `npm test` removes it by its name. */
function makeRunDirectory(): string {
  const parent = join(root, '.tap');
  mkdirSync(parent, { recursive: true });
  return mkdtempSync(join(parent, `${process.env['ORATORIO_TEST_RUN'] ?? 'run'}-`));
}

/** Bundled programs of the run that this one is a part of, as in tests of this script. */
const givenPrograms = process.env['ORATORIO_TEST_PROGRAMS'];
const programsIn = (directory: string): string => givenPrograms ?? join(directory, 'programs');

/**
 * Options of a test file. It must not inherit tap's hooks from a test that runs this script. The files and the programs that
 * they start share compiled code, which saves a fifth of their work.
 */
function optionsIn(directory: string): TestProcessOptions {
  const { NODE_OPTIONS: _, TAP: _tap, ...inherited } = process.env;
  return {
    directory,
    nodeArguments: values['node-arg'] ?? [],
    env: {
      ...inherited,
      TAP_CWD: directory,
      ORATORIO_TEST_PROGRAMS: programsIn(directory),
      NODE_COMPILE_CACHE: join(directory, 'compiled'),
    },
    timeoutMs: (values.timeout ?? 30) * 1000,
  };
}

/** Runs processes side by side, and those that need the machine for themselves afterwards. */
async function runAll(units: readonly TestUnit[], directory: string): Promise<readonly TestProcessResult[]> {
  const options = optionsIn(directory);
  const results: TestProcessResult[] = [];
  const run = async (name: string): Promise<void> => {
    const result = await runTestProcess({ name, program: join(directory, programOf(name)) }, options);
    results.push(result);
    process.stdout.write(fileReport(result, results.length));
  };
  const ordered = longestFirst(
    units.map(({ name }) => name),
    work,
  );
  const isAlone = (name: string): boolean => values.serial?.includes(name) ?? false;
  await runTogether(
    ordered.filter((name) => !isAlone(name)),
    run,
    realJobs(values.jobs ?? 1, (name) => coreShare(work[name])),
  );
  for (const name of ordered.filter(isAlone)) await run(name);
  return results;
}

const workOf = ({ milliseconds, cpuSeconds }: TestProcessResult): Work => ({
  seconds: milliseconds / 1000,
  ...(cpuSeconds !== undefined && { cpuSeconds }),
});

async function main(): Promise<void> {
  console.log('TAP version 14');
  if (found.length === 0) {
    console.log(`not ok 1 - no test file matches ${patterns.join(' ')}\n1..1\n# { total: 1, pass: 0, fail: 1 }`);
    process.exitCode = 1;
    return;
  }
  const directory = makeRunDirectory();
  const units = testUnits(found, work, values.serial);
  try {
    await Promise.all([
      bundleTests(units, directory),
      givenPrograms === undefined && bundleTestPrograms(programsIn(directory)),
    ]);
    const results = await runAll(units, directory);
    process.stdout.write(summaryReport(results));
    writeWork(Object.fromEntries(results.map((result) => [result.name, workOf(result)])));
    if (results.some(({ isGood }) => !isGood)) process.exitCode = 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

await main();
