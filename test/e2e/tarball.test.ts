/** Tarball and Debian package with their own Node, as a user without root, Node and network has them. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import packageJson from '../../package.json' with { type: 'json' };
import { stage } from '../../scripts/package/stage.ts';
import { makeArtefacts } from '../../scripts/release/artefacts.ts';
import { CleanUser } from '../../scripts/release/clean-user.ts';
import { useDebianPackage, useInstaller } from '../../scripts/release/installed-uses.ts';
import { ownPlatform } from '../../scripts/release/platforms.ts';
import { root } from '../../scripts/toolchain.mjs';
import { command } from './harness.ts';

t.setTimeout(600_000);
t.ok(command, 'these tests run what is built');

const { version } = packageJson;
const user = new CleanUser();
t.teardown(() => user.remove());
const release = join(user.root, 'release');
const platform = ownPlatform();
if (!platform) throw new Error('There is no tarball for this platform.');
const staged = join(user.root, 'staged');
mkdirSync(release);
stage(staged);
const made = await makeArtefacts({ staged, platform, out: release, version, level: 1 });
writeFileSync(join(release, 'SHA256SUMS'), `${made.sha256}  ${made.file}\n`);
copyFileSync(join(root, 'scripts/release/install.sh'), join(release, 'install.sh'));

t.test('install.sh installs from a directory, the product works, and --uninstall leaves only the state', async (t) => {
  const { ran, left } = await useInstaller(user, release);
  t.equal(ran.code, 0, ran.text);
  t.match(ran.text, `Installed Oratorio ${version} in ${user.home}/.local/share/oratorio/versions/${version}`);
  t.match(ran.text, /Demo model/);
  t.match(ran.text, `Oratorio ${version} is already in`);
  t.match(ran.text, `stay in ${user.home}/.oratorio`);
  t.strictSame(left, []);
});

t.test('the Debian package installs, works, and is removed without a trace', async (t) => {
  t.ok(made.deb);
  const { ran, left } = await useDebianPackage(user, join(release, made.deb ?? ''));
  t.equal(ran.code, 0, ran.text);
  t.match(ran.text, /Demo model/);
  t.strictSame(left, []);
});
