/**
 * `npm run package [-- --out DIR --check]`: packs the build for `npm install -g`, and prints the path of the tarball.
 * `--check` also installs it in a temporary prefix and runs a workspace with it. `--inspector` packs the inspector for other programs.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { checkInstallation } from './package/check.ts';
import { stage } from './package/stage.ts';
import { stageInspector } from './package/stage-inspector.ts';
import { isBuilt } from './stamp.mjs';
import { root, run } from './toolchain.mjs';

const { values } = parseArgs({
  options: { out: { type: 'string', default: root }, check: { type: 'boolean' }, inspector: { type: 'boolean' } },
});
if (!isBuilt()) {
  console.error('Building …');
  run(process.execPath, ['--disable-warning=ExperimentalWarning', join(root, 'scripts', 'build.ts')]);
}
const staged = join(root, 'node_modules', '.cache', values.inspector ? 'inspector-package' : 'package');
if (values.inspector) stageInspector(staged);
else stage(staged);
const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const words = ['pack', '--json', '--ignore-scripts', '--pack-destination', out];
const printed = execFileSync('npm', words, { cwd: staged, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
const [packed] = JSON.parse(printed) as {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
}[];
if (!packed) throw new Error('npm pack has packed nothing');
const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
console.error(`${mb(packed.size)}, unpacked ${mb(packed.unpackedSize)}`);
console.log(join(out, packed.filename));
if (values.check && !values.inspector) checkInstallation(join(out, packed.filename));
