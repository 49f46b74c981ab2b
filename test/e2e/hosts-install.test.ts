/** `oratorio hosts add --install` over a real `ssh`, from a release in a directory whose tarball starts the built program. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { ownPlatform } from '../../scripts/release/platforms.ts';
import { installCommand } from '../../src/hosts/index.ts';
import { version } from '../../src/protocol/index.ts';
import { command, oratorio, oratorioJson } from './harness.ts';
import { makeMachines } from './ssh-machine.ts';

t.setTimeout(600_000);

const machines = await makeMachines(t);
const { here, there } = machines;
const name = `oratorio-${version}-${ownPlatform()?.name}`;
const product = `exec '${process.execPath}' '${command}' "$@"`;

/** Release in a directory. @param program lines of its program */
function release(title: string, program = product): string {
  const directory = join(here.root, title);
  const tree = join(directory, name);
  for (const [file, lines] of [
    ['bin/oratorio', program],
    ['node/bin/node', `exec '${process.execPath}' "$@"`],
  ] as const) {
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    writeFileSync(join(tree, file), `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  }
  const script = new URL('../../scripts/release/install.sh', import.meta.url);
  for (const target of [directory, tree]) copyFileSync(script, join(target, 'install.sh'));
  execFileSync('tar', ['-c', '-z', '-f', join(directory, `${name}.tar.gz`), '-C', directory, name]);
  const sums = [`${name}.tar.gz`, 'install.sh'].map((file) => {
    const sum = createHash('sha256')
      .update(readFileSync(join(directory, file)))
      .digest('hex');
    return `${sum}  ${file}\n`;
  });
  writeFileSync(join(directory, 'SHA256SUMS'), sums.join(''));
  return directory;
}

const addArguments = ['hosts', 'add', 'ssh://box', '--name', 'build'];
const add = (...more: string[]) => oratorio(here, [...addArguments, '--json', ...more]);
const install = (from: string, ...more: string[]) => add('--install', '--from', from, ...more);
const errorOf = ({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }) =>
  JSON.parse(stdout || stderr).error;
const filesThere = () => readdirSync(there.root, { recursive: true }).map(String).sort();
const good = release('release');
const before = filesThere();

t.test('without consent, or with another release, nothing changes on the machine', async (t) => {
  t.match(await oratorio(here, addArguments), { code: 7, stderr: 'hosts add ssh://box --name build --install' });
  const asked = await oratorio(here, [...addArguments, '--install', '--from', good]);
  t.match(asked, { code: 7, stderr: /you did not agree[\s\S]*--yes/ });
  const altered = release('altered');
  appendFileSync(join(altered, `${name}.tar.gz`), 'x');
  t.match(errorOf(await install(altered, '--yes')), { code: 'wrongChecksum' });
  const other = release('other');
  writeFileSync(join(other, 'SHA256SUMS'), readFileSync(join(good, 'SHA256SUMS'), 'utf8').replace(version, '9.9.9'));
  t.match(errorOf(await install(other, '--yes')), { code: 'wrongRelease', message: /has Oratorio 9\.9\.9/ });
  t.match(errorOf(await install(join(here.root, 'absent'), '--yes')), { code: 'unreachable' });
  t.match(errorOf(await add('--yes')), { message: /only with --install/ });
  t.same(filesThere(), before);
  t.same(await oratorioJson(here, 'hosts'), []);
});

t.test('an installation that fails at any step is undone', async (t) => {
  const broken = release('broken', 'echo "no such luck" >&2; exit 1');
  t.match(errorOf(await install(broken, '--yes')), { code: 'installFailed', message: /no such luck/ });
  t.same(filesThere(), before, 'the program does not start');
  const silent = release('silent', `[ "$1" = hub ] && { echo "no Hub today" >&2; exit 1; }; ${product}`);
  t.match(errorOf(await install(silent, '--yes')), { code: 'installFailed', message: /no Hub today/ });
  t.same(filesThere(), before, 'its Hub does not start');
  const archive = execFileSync('tar', ['-c', '-C', good, 'install.sh', 'SHA256SUMS', `${name}.tar.gz`]);
  const cut = spawnSync('sh', ['-c', installCommand], {
    ...{ input: archive.subarray(0, archive.length / 2), cwd: there.root, encoding: 'utf8' },
    env: { PATH: process.env['PATH'], HOME: there.root },
  });
  t.not(cut.status, 0, cut.stdout);
  t.same(filesThere(), before, 'the connection is lost');
});

t.test('a machine without Oratorio gets this version, and its Hub is connected', async (t) => {
  const { code, stdout, stderr } = await install(good, '--yes');
  t.equal(code, 0, stdout + stderr);
  t.match(JSON.parse(stdout), { name: 'build', state: 'connected', version, program: '~/.local/bin/oratorio' });
  t.ok(existsSync(join(there.root, '.local/bin/oratorio')));
  t.same(
    readdirSync(there.root).filter((file) => file.startsWith('.oratorio-install')),
    [],
  );
  const settings = JSON.parse(readFileSync(join(here.home, 'config.json'), 'utf8'));
  t.same(settings.Hosts, { build: { Ssh: 'ssh://box', Program: '~/.local/bin/oratorio' } });
  const site = there.workspace('site');
  t.match(await oratorioJson(here, 'up', `build:${site}`), { host: 'build', state: 'running' });
});

t.test('the next command finds the installed program without --program, and installs nothing', async (t) => {
  await oratorioJson(here, 'hosts', 'remove', 'build');
  const installed = filesThere().filter((file) => file.startsWith('.local'));
  const { code, stdout } = await install(join(here.root, 'absent'), '--yes');
  t.equal(code, 0, stdout);
  t.match(JSON.parse(stdout), { state: 'connected', program: '~/.local/bin/oratorio' });
  t.same(
    filesThere().filter((file) => file.startsWith('.local')),
    installed,
  );
});
