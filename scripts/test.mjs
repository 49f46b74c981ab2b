/**
 * `npm test`: from a fresh clone to a verdict, in one command and with any Node >= 20. Installs, builds, checks, runs the
 * tests. Arguments are passed on to tap, e.g. `npm test -- test/client/*.test.ts`. The last line is `N passed, M failed`, in
 * assertions as tap has counted them.
 */
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isBuilt } from './stamp.mjs';
import { countsOf, isWorthShowing } from './tap-output.mjs';
import { ensureDependencies, ensureTestRunner, node22, root, toolEnvironment } from './toolchain.mjs';

const systemTools = startEnsuringSystemTools();
ensureDependencies();
ensureTestRunner();
const node = node22();
const env = toolEnvironment();

/** Nothing before the tests needs them, and to install them may take a minute: it goes on beside all that comes before. */
function startEnsuringSystemTools() {
  const script = `import(${JSON.stringify(new URL('system-tools.mjs', import.meta.url).href)}).then((m) => m.ensureSystemTools())`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'ignore', 'inherit'] });
  return new Promise((resolve, reject) => child.on('error', reject).on('exit', resolve));
}

/** Runs a script of this checkout; returns its exit code. */
function script(name) {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'scripts', name)];
  return spawnSync(node, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1;
}

/** Runs the test files; shows one line per file and whatever failed. Resolves with the exit code and all of the TAP stream. */
async function runTests() {
  const args = [
    '--disable-warning=ExperimentalWarning',
    join(root, 'scripts', 'run-tests.ts'),
    ...process.argv.slice(2),
  ];
  const child = spawn(node, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve, reject) => child.on('error', reject).on('close', (code) => resolve(code ?? 1)));
  const isShown = isWorthShowing();
  const lines = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (isShown(line)) console.log(line);
  }
  return { code: await ended, tap: lines.join('\n') };
}

/** Of a run on a container engine that could not begin; see test/stack/variables.ts. */
const notTested = 75;

/**
 * The story of a review server, on a container engine of its own, where root can start one: a part of the whole run. Elsewhere it says
 * loudly that it was not told.
 */
async function runStack() {
  const main = join(root, 'test', 'stack', 'main.ts');
  const args = ['--disable-warning=ExperimentalWarning', '--conditions=development', main, 'test/stack/stack.stack.ts'];
  const child = spawn(node, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve, reject) => child.on('error', reject).on('close', (code) => resolve(code ?? 1)));
  let counts = { passed: 0, failed: 0 };
  for await (const line of createInterface({ input: child.stdout })) {
    const [, passed, failed] = /^(\d+) passed, (\d+) failed$/.exec(line) ?? [];
    if (passed === undefined) console.log(line);
    else counts = { passed: Number(passed), failed: Number(failed) };
  }
  return { code: await ended, ...counts };
}

/** A run that never wrote a summary has tested nothing. */
function readCounts(tap) {
  try {
    return countsOf(tap);
  } catch {
    return { passed: 0, failed: 0 };
  }
}

const buildCode = isBuilt() ? 0 : script('build.ts');
const checkCode = buildCode === 0 ? script('check.ts') : 0;
await systemTools;
const isWhole = process.argv.length === 2;
// The story mostly waits, and what it has to fetch is fetched meanwhile.
const [{ code, tap }, stack] = await Promise.all([
  buildCode === 0 ? runTests() : { code: 1, tap: '' },
  buildCode === 0 && isWhole ? runStack() : { code: 0, passed: 0, failed: 0 },
]);
const files = readCounts(tap);
const [passed, failed] = [files.passed + stack.passed, files.failed + stack.failed];
if (stack.code === notTested) console.error('✖ THE STACK WAS NOT TESTED on a container engine (see above).');
if (buildCode !== 0) console.error('✖ The build failed: nothing was tested.');
if (checkCode !== 0) console.error('✖ The checks failed (see above).');
const isStackGood = stack.code === 0 || stack.code === notTested;
const isGood = buildCode === 0 && checkCode === 0 && code === 0 && isStackGood && failed === 0 && passed > 0;
process.exitCode = isGood ? 0 : 1;
console.log(`${passed} passed, ${failed} failed`);
