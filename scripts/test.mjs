/**
 * `npm test`: installs, builds, checks and runs the tests, from a fresh clone and with any Node >= 20. Takes patterns and
 * options of tap, e.g. `npm test -- test/client/*.test.ts`. The last line is `N passed, M failed`, in assertions as tap counts
 * them. SIGINT, SIGTERM and SIGHUP end the run with every process it has started and every directory it has made.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { isBuilt } from './stamp.mjs';
import { countsOf, failureLines, isWorthShowing } from './tap-output.mjs';
import { asBatch, inMemory, startRun } from './test-run.mjs';
import { ensureDependencies, node22, root, toolEnvironment } from './toolchain.mjs';

/** Without patterns the story on a container engine runs as well. */
const isWhole = process.argv.length === 2;
const systemTools = startPreparing('system-tools.mjs', isWhole ? 'ensureSystemToolsAndEngine' : 'ensureSystemTools');
ensureDependencies();
const node = node22();
const run = startRun(endOthers);
const env = { ...toolEnvironment(), ...run.env };
const quiet = '--disable-warning=ExperimentalWarning';

/** Prepares the needs of the tests that the build does not share, beside the build: system tools may take a minute. */
function startPreparing(module, work) {
  const script = `import(${JSON.stringify(new URL(module, import.meta.url).href)}).then((m) => m.${work}())`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'ignore', 'inherit'] });
  return new Promise((resolve, reject) => child.on('error', reject).on('exit', resolve));
}

/**
 * Starts Node 22. `ended` resolves with the exit code, 1 for a signal.
 * @param words before the command
 */
function start(args, stdout = 'inherit', words = []) {
  const [command, ...rest] = [...words, node, ...args];
  const child = spawn(command, rest, { cwd: root, env, stdio: ['ignore', stdout, 'inherit'] });
  const ended = new Promise((resolve, reject) => child.on('error', reject).on('close', (code) => resolve(code ?? 1)));
  return { child, ended };
}

/** Runs a script of this checkout; resolves with its exit code. */
const script = (name) => start([quiet, join(root, 'scripts', name)]).ended;

const wordsBeforeTests = [...asBatch(), ...inMemory(run.env.TMPDIR)];

/** Runs the test files; shows one line per file and every failure. Resolves with the exit code and all of the TAP stream. */
async function runTests() {
  const { child, ended } = start(
    [quiet, join(root, 'scripts', 'run-tests.ts'), ...process.argv.slice(2)],
    'pipe',
    wordsBeforeTests,
  );
  const isShown = isWorthShowing();
  const lines = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (isShown(line)) console.log(line);
  }
  return { code: await ended, tap: lines.join('\n') };
}

/** Exit code of a run on a container engine that could not begin; see test/stack/variables.ts. */
const notTested = 75;
/** Limits the time in which the container engine's run ends its namespaces and removes its control groups. */
const stackEndMs = 90_000;
let stackRun;

/** Runs the stack tests of a review server and of containers on a separate engine, if root can start one. Otherwise warns. */
async function runStack() {
  const main = join(root, 'test', 'stack', 'main.ts');
  stackRun = start(
    [quiet, '--conditions=development', main, 'test/stack/stack.stack.ts', 'test/stack/places.stack.ts'],
    'pipe',
    wordsBeforeTests,
  );
  let counts = { passed: 0, failed: 0 };
  const lines = [];
  for await (const line of createInterface({ input: stackRun.child.stdout })) {
    lines.push(line);
    const [, passed, failed] = /^(\d+) passed, (\d+) failed$/.exec(line) ?? [];
    if (passed === undefined) console.log(line);
    else counts = { passed: Number(passed), failed: Number(failed) };
  }
  return { code: await stackRun.ended, ...counts, tap: lines.join('\n') };
}

/** Ends the processes that must not be killed: the container engine's run cleans up, and an interrupted installation is broken. */
async function endOthers() {
  stackRun?.child.kill('SIGTERM');
  await Promise.race([stackRun?.ended, pause(stackEndMs)]);
  await systemTools;
}

/** Builds, checks and tests. Prints the verdict and sets the exit code. */
async function main() {
  // The checks read the sources only: they use the core that the build leaves idle while it draws charts.
  const checked = script('check.ts');
  const buildCode = isBuilt() ? 0 : await script('build.ts');
  await systemTools;
  // The story mostly waits, and its downloads run during the tests.
  const [{ code, tap }, stack, checkCode] = await Promise.all([
    buildCode === 0 ? runTests() : { code: 1, tap: '' },
    buildCode === 0 && isWhole ? runStack() : { code: 0, passed: 0, failed: 0, tap: '' },
    checked,
  ]);
  if (run.isInterrupted()) return;
  await run.end();
  // A run that never wrote a summary has tested nothing.
  const files = countsOf(tap) ?? { passed: 0, failed: 0 };
  const [passed, failed] = [files.passed + stack.passed, files.failed + stack.failed];
  if (stack.code === notTested) console.error('✖ THE STACK WAS NOT TESTED on a container engine (see above).');
  if (buildCode !== 0) console.error('✖ The build failed: nothing was tested.');
  if (checkCode !== 0) console.error('✖ The checks failed (see above).');
  const isStackGood = stack.code === 0 || stack.code === notTested;
  if (!isStackGood) console.log(failureLines('test/stack', stack.tap).join('\n'));
  const isGood = buildCode === 0 && checkCode === 0 && code === 0 && isStackGood && failed === 0 && passed > 0;
  process.exitCode = isGood ? 0 : 1;
  console.log(`${passed} passed, ${failed} failed`);
}

await main();
