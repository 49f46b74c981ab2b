/** In the namespaces of a run: the engine, its images, then the test files that are named, one after the other. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { countsOf, isWorthShowing } from '../../scripts/tap-output.mjs';
import { root } from '../../scripts/toolchain.mjs';
import { startEngine } from './engine.ts';
import { makeBaseImages } from './images.ts';
import { must } from './must.ts';
import { hostAddress, notTested, variable } from './variables.ts';

const seconds = (since: number): string => `${((performance.now() - since) / 1_000).toFixed(1)} s`;

/** Shows each story and each part of it as it ends, and whatever failed. @returns the exit code */
async function runTests(files: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const words = ['--disable-warning=ExperimentalWarning', join(root, 'scripts', 'run-tests.ts'), '--jobs=1', ...files];
  const child = spawn(process.execPath, words, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  const ended = new Promise<number>((resolve, reject) => {
    child.on('error', reject).on('close', (status) => resolve(status ?? 1));
  });
  const isShown = isWorthShowing();
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (isShown(line) || /^ {4}(not )?ok /.test(line)) console.log(line);
  }
  const code = await ended;
  const { passed, failed } = countsOf(lines.join('\n'));
  console.log(`${passed} passed, ${failed} failed`);
  return code === 0 && passed > 0 ? 0 : 1;
}

const began = performance.now();
await must('ip', ['link', 'set', 'lo', 'up'], { timeoutMs: 10_000 });
await must('ip', ['address', 'add', `${hostAddress}/32`, 'dev', 'lo'], { timeoutMs: 10_000 });
const engine = await startEngine(variable('directory'), variable('cgroup')).catch((error: unknown) => {
  console.error(`\n✖ THE STACK WAS NOT TESTED.\n✖ ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(notTested);
});
try {
  const env = { ...process.env, ...engine.environment };
  await makeBaseImages(variable('directory'), env);
  console.error(`The engine runs (Docker ${engine.version}, ${engine.storage}): ${seconds(began)}`);
  process.exitCode = await runTests(process.argv.slice(2), env);
} finally {
  await engine.stop();
  console.error(`The whole run: ${seconds(began)}`);
}
