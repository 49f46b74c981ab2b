/** In the namespaces of a run: the engine, its images, then the test files that are named, one after the other. */
import { onEndSignal } from '../../scripts/signals.ts';
import { runTestFile, type TestResult } from '../../scripts/test-files.ts';
import { must } from '../deploy/must.ts';
import { startEngine } from './engine.ts';
import { makeBaseImages } from './images.ts';
import { hostAddress, notTested, variable } from './variables.ts';

const seconds = (since: number): string => `${((performance.now() - since) / 1_000).toFixed(1)} s`;

/** Runs them from the sources: bundles pay where many files share them. @returns the exit code */
async function runTests(files: readonly string[]): Promise<number> {
  const signal = onEndSignal();
  const results: TestResult[] = [];
  for (const file of files) if (!signal.aborted) results.push(await runTestFile(file, signal));
  const sum = (key: 'passed' | 'failed') => results.reduce((total, each) => total + each[key], 0);
  console.log(`${sum('passed')} passed, ${sum('failed')} failed`);
  const isGood = results.length === files.length && results.every((each) => each.isGood);
  return isGood && sum('passed') > 0 ? 0 : 1;
}

const began = performance.now();
await must('ip', ['link', 'set', 'lo', 'up'], { timeoutMs: 10_000 });
await must('ip', ['address', 'add', `${hostAddress}/32`, 'dev', 'lo'], { timeoutMs: 10_000 });
const engine = await startEngine(variable('directory'), variable('cgroup')).catch((error: unknown) => {
  console.error(`\n✖ THE STACK WAS NOT TESTED.\n✖ ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(notTested);
});
try {
  Object.assign(process.env, engine.environment);
  await makeBaseImages(variable('directory'));
  console.error(`The engine runs (Docker ${engine.version}, ${engine.storage}): ${seconds(began)}`);
  process.exitCode = await runTests(process.argv.slice(2));
} finally {
  await engine.stop();
  console.error(`The whole run: ${seconds(began)}`);
}
