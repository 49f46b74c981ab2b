/**
 * `npm test`: from a fresh clone to a verdict, in one command and with any Node >= 20. Installs, builds, checks, runs the
 * tests. Arguments are passed on to tap, e.g. `npm test -- test/client/*.test.ts`. The last line is `N passed, M failed`, in
 * assertions as tap has counted them.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isBuilt } from './stamp.mjs';
import { ensureSystemTools } from './system-tools.mjs';
import { countsOf, isWorthShowing } from './tap-output.mjs';
import { ensureDependencies, ensureTestRunner, node22, root, toolEnvironment } from './toolchain.mjs';

ensureDependencies();
ensureTestRunner();
ensureSystemTools();
const node = node22();
const env = toolEnvironment();

/** Runs a script of this checkout; returns its exit code. */
function script(name) {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'scripts', name)];
  return spawnSync(node, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1;
}

/**
 * Runs tap; a terminal gets its live report, anything else one line per file and whatever failed. The TAP stream goes to
 * `outputFile` in both cases: tap writes it there itself, unless it writes it to its standard output already.
 */
async function runTap(outputFile) {
  const isTTY = process.stdout.isTTY === true;
  const tap = join(root, 'node_modules', 'tap', 'dist', 'esm', 'run.mjs');
  const reporting = isTTY ? ['--reporter=base', `--output-file=${outputFile}`] : ['--reporter=tap'];
  const args = [tap, 'run', ...reporting, ...process.argv.slice(2)];
  const child = spawn(node, args, { cwd: root, env, stdio: ['ignore', isTTY ? 'inherit' : 'pipe', 'inherit'] });
  const ended = new Promise((resolve, reject) => child.on('error', reject).on('close', (code) => resolve(code ?? 1)));
  if (child.stdout) {
    const isShown = isWorthShowing();
    const lines = [];
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      if (isShown(line)) console.log(line);
    }
    writeFileSync(outputFile, lines.join('\n'));
  }
  return ended;
}

/** A run that never wrote a summary has tested nothing. */
function readCounts(file) {
  try {
    return countsOf(readFileSync(file, 'utf8'));
  } catch {
    return { passed: 0, failed: 0 };
  }
}

const buildCode = isBuilt() ? 0 : script('build.ts');
const checkCode = buildCode === 0 ? script('check.ts') : 0;
const scratch = mkdtempSync(join(tmpdir(), 'oratorio-test-'));
try {
  const outputFile = join(scratch, 'output.tap');
  const tapCode = buildCode === 0 ? await runTap(outputFile) : 1;
  const { passed, failed } = readCounts(outputFile);
  if (buildCode !== 0) console.error('✖ The build failed: nothing was tested.');
  if (checkCode !== 0) console.error('✖ The checks failed (see above).');
  const isGood = buildCode === 0 && checkCode === 0 && tapCode === 0 && failed === 0 && passed > 0;
  process.exitCode = isGood ? 0 : 1;
  console.log(`${passed} passed, ${failed} failed`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
