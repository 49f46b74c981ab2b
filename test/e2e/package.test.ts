/** The package as npm lays it down: staged files, and beside them only the packages of its shrinkwrap. */
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { installedBeside, installedLimitBytes, installedSize } from '../../scripts/package/size.ts';
import { stage } from '../../scripts/package/stage.ts';
import { root } from '../../scripts/toolchain.mjs';
import { uwsBuilds } from '../../src/http/load-uws.ts';
import { unpackUws } from '../../src/http/packed-uws.ts';
import { hubLog, makePlace, oratorio } from './harness.ts';

t.setTimeout(600_000);

const place = makePlace(t, 'oratorio-package-');
const installed = join(place.root, 'prefix', 'lib', 'node_modules', 'oratorio');
stage(installed);

t.test(
  'the package has its licences, exact versions and no registry, and takes at most 228 MB with Node',
  async (t) => {
    const bytes = installedSize(installed);
    t.ok(bytes <= installedLimitBytes, `${(bytes / 1e6).toFixed(1)} MB are installed`);
    const shrinkwrap = readFileSync(join(installed, 'npm-shrinkwrap.json'), 'utf8');
    t.notMatch(shrinkwrap, /"resolved"|:\/\//);
    const beside = installedBeside(installed);
    for (const name of beside)
      t.match(JSON.parse(shrinkwrap).packages[`node_modules/${name}`], { integrity: /^sha512-/ });
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
    t.notOk(manifest.devDependencies);
    t.notOk(manifest.scripts, 'nothing is compiled or run by an installation');
    const notices = readFileSync(join(installed, 'THIRD-PARTY-NOTICES.md'), 'utf8');
    for (const name of [
      '@octokit/core',
      'zod',
      'pg',
      'prom-client',
      '@btc-vision/uwebsockets.js',
      'uws-pack',
      'web-tree-sitter',
      'preact',
      '@preact/signals-core',
      'marked',
    ])
      t.match(notices, `\n## ${name} `);
  },
);

t.test('with only the installed files, a workspace starts on the packed binary and answers', async (t) => {
  // Laid out like npm does: packages that the shrinkwrap does not name are missing.
  for (const name of installedBeside(installed)) {
    const target = join(installed, 'node_modules', name);
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), target);
  }
  const user = {
    ...place,
    command: join(installed, 'bin', 'oratorio.js'),
    env: { ...place.env, XDG_CACHE_HOME: join(place.root, 'cache') },
  };
  const workspace = join(place.root, 'site');
  t.match(await oratorio(user, ['up', workspace, '--init']), { code: 0, stdout: /state +ready/ });
  t.match(await oratorio(user, ['chat', 'hello', '--workspace', workspace]), { code: 0, stdout: /Demo model/ });
  t.match(readdirSync(join(place.root, 'cache', 'oratorio', 'binaries')), [/\.node$/]);
  t.notMatch(hubLog(place), /uWebSockets.js does not load/);
  t.match(await oratorio(user, ['hub', 'stop']), { code: 0 });
});

t.test('a damaged binary in the cache is replaced, and one that is damaged in the package is refused', async (t) => {
  const directory = join(installed, 'dist', 'uws');
  const [build] = uwsBuilds;
  const name = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  const unpack = (from: string) => unpackUws(build.version, name, { directory: from, env: { HOME: place.root } });
  const file = unpack(directory);
  const whole = readFileSync(file);
  writeFileSync(file, 'damaged');
  t.equal(unpack(directory), file);
  t.ok(readFileSync(file).equals(whole));
  const broken = join(place.root, 'broken');
  cpSync(directory, broken, { recursive: true });
  writeFileSync(join(broken, build.version, `${name}.sha256`), '0'.repeat(64));
  t.throws(() => unpack(broken), /damaged: install Oratorio again/);
  t.throws(() => unpack(place.root), /no binary for this platform/);
});
