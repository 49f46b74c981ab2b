/** `install.sh` with a release whose program is a script: several at once, killed at each step, and in odd homes. */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { ownPlatform } from '../../scripts/release/platforms.ts';
import { temporaryDirectory } from '../hub/harness.ts';

const script = fileURLToPath(new URL('../../scripts/release/install.sh', import.meta.url));
const top = `oratorio-1.2.3-${ownPlatform()?.name}`;

/** A home with a space in its name and nothing in it, and a release. */
function world(t: Test) {
  const root = temporaryDirectory(t, 'oratorio-install-');
  const [home, release, bin] = ['a home', 'release', 'bin'].map((name) => join(root, name)) as [string, string, string];
  for (const path of [home, bin, join(release, top, 'bin'), join(release, top, 'node/bin')])
    mkdirSync(path, { recursive: true });
  const program = (path: string, lines: string) => writeFileSync(path, `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  program(join(release, top, 'bin/oratorio'), '[ "$1" != version ] || echo 1.2.3');
  program(join(release, top, 'node/bin/node'), `exec '${process.execPath}' "$@"`);
  execFileSync('tar', ['-czf', `${top}.tar.gz`, top], { cwd: release });
  const sum = createHash('sha256')
    .update(readFileSync(join(release, `${top}.tar.gz`)))
    .digest('hex');
  writeFileSync(join(release, 'SHA256SUMS'), `${sum}  ${top}.tar.gz\n`);
  const base = join(home, '.local/share/oratorio');
  const run = async (...words: string[]) => {
    const env = { HOME: home, PATH: `${bin}:${process.env['PATH']}`, XDG_CACHE_HOME: 'relative' };
    const child = spawn('sh', [script, ...words], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const said = Promise.all([text(child.stdout), text(child.stderr)]);
    const [code, signal] = await once(child, 'close');
    return { code, signal, text: (await said).join('') };
  };
  return {
    ...{ root, home, base, bin, program, run },
    install: () => run('--from', release),
    versions: () => readdirSync(join(base, 'versions')).sort(),
    version: () => execFileSync(join(home, '.local/bin/oratorio'), ['version'], { encoding: 'utf8' }).trim(),
  };
}

t.test('a home with a space and without .local gets the program, and loses all of it again', async (t) => {
  const { root, home, install, run, version, versions } = world(t);
  mkdirSync(join(root, 'relative/oratorio'), { recursive: true });
  t.match(await install(), { code: 0 });
  t.equal(version(), '1.2.3');
  t.same(versions(), ['1.2.3']);
  t.match(await run('--uninstall'), { code: 0 });
  t.same(readdirSync(home), []);
  t.ok(existsSync(join(root, 'relative/oratorio')), 'a relative XDG_CACHE_HOME has no effect');
});

t.test('regression: installations at the same time leave one whole version', async (t) => {
  const { install, version, versions, base } = world(t);
  const ran = await Promise.all(Array.from({ length: 5 }, install));
  for (const { code, text: said } of ran) t.equal(code, 0, said);
  t.same(versions(), ['1.2.3']);
  t.same(readdirSync(join(base, 'versions/1.2.3')).sort(), ['.digest', 'bin', 'node']);
  t.equal(version(), '1.2.3');
});

t.test('regression: a process with the same id that shares the home keeps its work', async (t) => {
  const { root, home, base, version } = world(t);
  const other = `d='${base}'/versions/.new-$$; mkdir -p "$d"; : >"$d/other"; exec sh '${script}' --from '${root}/release'`;
  const child = spawn('sh', ['-c', other], { env: { HOME: home, PATH: process.env['PATH'] }, stdio: 'ignore' });
  const [code] = await once(child, 'close');
  t.equal(code, 0);
  t.equal(version(), '1.2.3');
  t.ok(existsSync(join(base, `versions/.new-${child.pid}/other`)));
});

t.test('an installation that is killed at any step is completed by the next one', async (t) => {
  const { bin, program, install, version, run, home } = world(t);
  for (const name of ['mkdir', 'awk', 'sha256sum', 'tar', 'mv', 'readlink', 'dirname']) {
    const real = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    for (const when of [`kill -9 $PPID`, `${real} "$@"; kill -9 $PPID`]) {
      program(join(bin, name), when);
      const killed = await install();
      t.ok(killed.signal === 'SIGKILL' || killed.code !== undefined, `${name}: ${killed.text}`);
      rmSync(join(bin, name));
      const next = await install();
      t.match(next, { code: 0 }, `${name}: ${next.text}`);
      t.equal(version(), '1.2.3', name);
      t.match(await run('--uninstall'), { code: 0 });
      rmSync(home, { recursive: true });
      mkdirSync(home);
    }
  }
});

t.test('regression: a version that is half removed is installed again', async (t) => {
  const { bin, program, install, run, version, base } = world(t);
  t.match(await install(), { code: 0 });
  program(
    join(bin, 'rm'),
    `case "$*" in *-rf*versions*) /bin/rm -rf '${base}/versions/1.2.3/bin'; kill -9 $PPID ;; *) exec /bin/rm "$@" ;; esac`,
  );
  t.match(await run('--uninstall'), { signal: 'SIGKILL' });
  rmSync(join(bin, 'rm'));
  t.match(await install(), { code: 0 });
  t.equal(version(), '1.2.3');
});

t.test('regression: no other user can write to an installation, with any mask', async (t) => {
  const { base, install } = world(t);
  const before = process.umask(0);
  t.teardown(() => process.umask(before));
  t.match(await install(), { code: 0 });
  const open = execFileSync('find', [base, '!', '-type', 'l', '-perm', '/022'], { encoding: 'utf8' });
  t.equal(open, '');
});

t.test('a command of another program in the place of ours stays', async (t) => {
  const { home, install } = world(t);
  mkdirSync(join(home, '.local/bin'), { recursive: true });
  symlinkSync('/usr/bin/true', join(home, '.local/bin/oratorio'));
  t.match(await install(), { code: 1, text: /was not installed by this script/ });
});
