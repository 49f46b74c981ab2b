/** `node scripts/node22.mjs FILE [ARGS…]`: runs a TypeScript or JavaScript file of this checkout under the pinned Node 22. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { ensureDependencies, node22, root, toolEnvironment } from './toolchain.mjs';

ensureDependencies();
const args = ['--disable-warning=ExperimentalWarning', ...process.argv.slice(2)];
const child = spawn(node22(), args, { cwd: root, env: toolEnvironment(), stdio: 'inherit' });
// A terminal sends Ctrl-C to both processes: a script that handles SIGINT takes two in one moment for one.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`✖ ${child.spawnfile} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
