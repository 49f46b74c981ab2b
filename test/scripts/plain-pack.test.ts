/** Plain `npm pack` in a checkout packs the wrong package: its installation ends with the command that packs the right one. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const script = 'scripts/package/refuse-plain-pack.mjs';

t.test('a package of plain npm pack is refused when it is installed, and names the command to run', async (t) => {
  const place = t.testdir();
  const checkout = join(place, 'checkout');
  for (const file of [script, 'bin/oratorio.js', '.npmrc']) {
    mkdirSync(dirname(join(checkout, file)), { recursive: true });
    cpSync(join(root, file), join(checkout, file));
  }
  // Without dependencies: they would come from a registry.
  const { dependencies: _, devDependencies: __, optionalDependencies: ___, overrides: ____, ...own } = manifest;
  writeFileSync(join(checkout, 'package.json'), JSON.stringify(own));
  // `npm run` passes on the settings of this checkout, which no user has elsewhere.
  const outer = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  const env = { ...outer, HOME: place, npm_config_cache: join(place, 'cache'), npm_config_offline: 'true' };
  const npm = { cwd: checkout, env, encoding: 'utf8' } as const;
  const [packed] = JSON.parse(execFileSync('npm', ['pack', '--json'], npm)) as { filename: string }[];
  const prefix = join(place, 'prefix');
  const installed = spawnSync('npm', ['install', '--global', '--prefix', prefix, `./${packed?.filename}`], npm);
  t.not(installed.status, 0);
  t.match(installed.stderr, 'npm install -g "$(npm run --silent package)"');
  t.notOk(existsSync(join(prefix, 'bin', 'oratorio')), 'no command is left behind');
});

t.test('the checkout itself is installed as before', async (t) => {
  t.equal(manifest.scripts.preinstall, `node ${script}`);
  t.match(spawnSync(process.execPath, [join(root, script)], { encoding: 'utf8' }), { status: 0, stderr: '' });
});
