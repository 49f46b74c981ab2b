/** Tarball, Debian package and updates for a user without Node; installations have no network. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { CleanUser } from '../../scripts/release/clean-user.ts';
import { useDebianPackage, useInstaller } from '../../scripts/release/installed-uses.ts';
import { eventually } from '../hub/harness.ts';
import { configureWorkspace } from '../workspace-config.ts';
import { command } from './harness.ts';
import { ReleaseFiles, version } from './release-files.ts';

t.setTimeout(600_000);
t.ok(command, 'these tests run the built program');

const user = new CleanUser();
t.teardown(() => user.remove());
const files = new ReleaseFiles(user.root);
const made = await files.make();
const later = await files.makeLater('9.1.0');
const installation = join(user.home, '.local/share/oratorio');

t.test('install.sh installs from a directory, the product works, and --uninstall leaves only the state', async (t) => {
  const { ran, left } = await useInstaller(user, made.directory);
  t.equal(ran.code, 0, ran.text);
  t.match(ran.text, `Installed Oratorio ${version} in ${installation}/versions/${version}`);
  t.match(ran.text, /Demo model/);
  t.match(ran.text, `Oratorio ${version} is already in`);
  t.match(ran.text, `stay in ${user.home}/.oratorio`);
  t.strictSame(left, []);
});

t.test('the Debian package installs, works, and is removed completely', async (t) => {
  t.ok(later.deb);
  const { ran, left } = await useDebianPackage(user, join(later.directory, later.deb ?? ''));
  t.equal(ran.code, 0, ran.text);
  t.match(ran.text, /Demo model/);
  t.strictSame(left, []);
});

t.test(
  'self-update replaces the Hub during a turn, and restores the previous version when the new Hub does not start',
  async (t) => {
    const workspace = join(user.home, 'site');
    configureWorkspace({ home: join(user.home, '.oratorio'), workspace }, { Supervision: { ProbeIntervalMs: 100 } });
    const oratorio = (...args: string[]) => user.start([join(user.home, '.local/bin/oratorio'), ...args]).ended;
    const json = async (...args: string[]) => JSON.parse((await oratorio(...args, '--json')).text);
    t.match(await user.start(['sh', join(made.directory, 'install.sh'), '--from', made.directory]).ended, { code: 0 });
    t.teardown(() => user.start(['sh', join(made.directory, 'install.sh'), '--uninstall']).ended);
    const before = await json('ensure', workspace);
    const prompt = 'run: touch begun; while [ ! -e go ]; do sleep 0.1; done; echo done > done.txt';
    const turn = oratorio('chat', '--yes', '--workspace', workspace, prompt);
    await eventually(() => existsSync(join(workspace, 'begun')) || undefined, 'the turn runs');

    const updated = await oratorio('self-update', '--from', later.directory);
    t.match(updated, { code: 0, text: /Oratorio 9\.1\.0 is in use; it was[\s\S]*The Hub was replaced/ });
    t.match(await oratorio('version'), { text: '9.1.0\n' });
    t.match(await json('hub', 'status'), { hubVersion: '9.1.0' });
    t.match(await json('inspect', workspace), { pid: before.pid }, 'the agent server continues');
    await oratorio('exec', '--workspace', workspace, '--yes', 'run: touch go');
    t.match(await turn, { code: 0 });
    t.ok(existsSync(join(workspace, 'done.txt')));
    await eventually(async () => {
      const { state, pid } = await json('inspect', workspace);
      return (state === 'running' && pid !== before.pid) || undefined;
    }, 'the idle agent server restarts with the new version');

    const broken = await files.makeLater(
      '9.2.0',
      (program) =>
        `if(process.argv[2]==="hub"&&process.argv.length===3&&!/trial/.test(process.env.ORATORIO_HOME))process.exit(1);${program}`,
    );
    t.match(await oratorio('self-update', '--from', broken.directory), {
      code: 9,
      text: /9\.2\.0 does not start[\s\S]*9\.1\.0 is in use/,
    });
    t.match(await oratorio('version'), { text: '9.1.0\n' });
    t.match(await json('hub', 'status'), { hubVersion: '9.1.0' });
    const older = await oratorio('self-update', '--from', made.directory);
    t.match(older, { code: 7, text: /older than 9\.1\.0/ });
    t.match(
      older.text,
      `self-update --from ${made.directory} --allow-older`,
      'regression: the hint reads the same release',
    );
    t.match(await oratorio('self-update', '--check', '--from', later.directory), {
      code: 0,
      text: /9\.1\.0 is up to date/,
    });

    const next = await files.makeLater('9.3.0');
    const versions = join(installation, 'versions');
    const isDone: Readonly<Record<string, () => boolean>> = {
      'the download begins': () => readdirSync(versions).some((name) => name.startsWith('.new-')),
      'the trial runs': () => readdirSync(versions).some((name) => existsSync(join(versions, name, 'trial/home/hub'))),
      'the version is installed': () => existsSync(join(versions, '9.3.0')),
    };
    for (const [step, isThere] of Object.entries(isDone)) {
      const update = user.start([join(user.home, '.local/bin/oratorio'), 'self-update', '--from', next.directory]);
      await eventually(() => isThere() || undefined, step);
      update.kill();
      await update.ended;
      t.match(await oratorio('list'), { code: 0, text: /site/ }, `killed when ${step}`);
    }
    t.match(await oratorio('self-update', '--from', next.directory), { code: 0 });
    t.match(await oratorio('version'), { text: '9.3.0\n' });
    t.strictSame(
      readdirSync(versions).filter((name) => name.startsWith('.new-')),
      [],
    );
  },
);
