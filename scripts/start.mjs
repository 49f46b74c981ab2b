/**
 * `npm start`: from a fresh clone to a running agent server, in one command and with any Node >= 20. Installs, builds when
 * the sources have changed, then `oratorio up` on a sample workspace (or with the arguments that are given).
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { isBuilt } from './stamp.mjs';
import { ensureDependencies, node22, root, run } from './toolchain.mjs';

ensureDependencies();
if (!isBuilt()) {
  console.error('Building …');
  run(process.execPath, [join(root, 'scripts', 'node22.mjs'), join(root, 'scripts', 'build.ts')]);
}
const given = process.argv.slice(2);
const args = given.length > 0 ? given : ['up', join(root, '.oratorio-sample'), '--init'];
const child = spawn(node22(), [join(root, 'bin', 'oratorio.js'), ...args], { stdio: 'inherit' });
// A terminal sends Ctrl-C to both of us; the tool takes two signals in one moment for one.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('exit', (code) => process.exit(code ?? 1));
