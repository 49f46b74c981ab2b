/**
 * `npm run bench [-- NAME…]`: the benchmarks of bench/, on a fresh clone too. Installs, builds when the sources have changed,
 * and brings the peers that only the benchmarks need (bench/package.json). Plain JavaScript, any Node >= 20.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { isBuilt } from './stamp.mjs';
import { ensureSystemTools } from './system-tools.mjs';
import { ensureDependencies, installOnce, node22, root, run, toolEnvironment } from './toolchain.mjs';

const bench = join(root, 'bench');

const ensurePeers = () =>
  installOnce(bench, (npm) => {
    console.error('Installing the peers (npm ci in bench) …');
    run(npm, ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: bench });
  });

ensureDependencies();
ensurePeers();
// The bench of the page drives a browser, that of the queue a PostgreSQL server.
ensureSystemTools();
if (!isBuilt()) {
  console.error('Building …');
  run(process.execPath, [join(root, 'scripts', 'node22.mjs'), join(root, 'scripts', 'build.ts')]);
}
const child = spawn(
  node22(),
  ['--disable-warning=ExperimentalWarning', join(bench, 'main.ts'), ...process.argv.slice(2)],
  { stdio: 'inherit', cwd: root, env: toolEnvironment() },
);
// The terminal sends Ctrl-C to both; the child cleans up, and its code is ours.
process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('exit', (code) => process.exit(code ?? 1));
