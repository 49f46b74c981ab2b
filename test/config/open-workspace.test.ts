/** Directories that another user, a clone or a broken file system puts in the place of a workspace. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  ensureStateDirectory,
  InitError,
  initWorkspace,
  openWorkspace,
  WorkspaceError,
  workspaceKey,
} from '../../src/config/index.ts';
import { canBecomeOther, otherUid, runAsOther } from '../other-user.ts';
import { program, programEnvironment } from '../programs.ts';

function scene(t: Test): { root: string; home: string } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-open-')));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  return { root, home: join(root, 'home') };
}

const faultOf = (work: () => unknown): WorkspaceError => {
  try {
    work();
  } catch (error) {
    if (error instanceof WorkspaceError) return error;
    throw error;
  }
  throw new Error('it was opened');
};

t.test('a workspace is opened by any spelling and keeps its state below the home', async (t) => {
  const { root, home } = scene(t);
  const path = join(root, 'site');
  initWorkspace(path, { ORATORIO_HOME: home });
  symlinkSync(path, join(root, 'link'));
  const opened = openWorkspace(join(root, 'link'), { home });
  t.same(opened, {
    path,
    directory: join(path, '.oratorio'),
    stateDirectory: join(home, 'workspaces', workspaceKey(path)),
  });
  t.notOk(existsSync(opened.stateDirectory));
  t.equal(ensureStateDirectory(home, path), opened.stateDirectory);
  for (const each of [home, join(home, 'workspaces'), opened.stateDirectory]) {
    if (process.platform !== 'win32') t.equal(statSync(each).mode & 0o777, 0o700, each);
  }
});

t.test('regression: C3 an .oratorio of another user is refused, and its owner is named', async (t) => {
  const { root, home } = scene(t);
  const shared = join(root, 'shared');
  mkdirSync(shared);
  if (canBecomeOther) {
    chmodSync(root, 0o755);
    chmodSync(shared, 0o777);
    const make = runAsOther(
      `const fs = require('node:fs'); const dir = process.argv[1] + '/.oratorio'; fs.mkdirSync(dir);
       fs.writeFileSync(dir + '/config.json', '{"McpServers":{"x":{"command":"sh"}}}');`,
      [shared],
    );
    t.same(await once(make, 'exit'), [0, null]);
    t.match(
      faultOf(() => openWorkspace(shared, { home })),
      {
        fault: 'foreignOwner',
        ownerUid: otherUid,
        message: new RegExp(`belongs to another user, uid ${otherUid}`),
      },
    );
    t.throws(() => initWorkspace(shared, { ORATORIO_HOME: home }), InitError);
    t.equal(statSync(join(shared, '.oratorio')).mode & 0o777, 0o755, 'and left as it is');
    t.notOk(existsSync(join(shared, '.oratorio', '.gitignore')));
  }
  const own = join(root, 'own');
  initWorkspace(own, { ORATORIO_HOME: home });
  const uid = statSync(own).uid + 1;
  if (process.platform !== 'win32') {
    t.match(
      faultOf(() => openWorkspace(own, { home, uid })),
      { fault: 'foreignOwner', ownerUid: statSync(own).uid },
    );
  }
  t.equal(openWorkspace(own, { home, uid: undefined }).path, own, 'a system without uids checks none');
  t.equal(openWorkspace(own, { home }).path, own);
});

t.test('regression: C3 an .oratorio that is a symlink is refused, and its target is unchanged', async (t) => {
  const { root, home } = scene(t);
  const target = join(root, 'target');
  const path = join(root, 'site');
  mkdirSync(target);
  chmodSync(target, 0o755);
  mkdirSync(path);
  symlinkSync(target, join(path, '.oratorio'));
  t.match(
    faultOf(() => openWorkspace(path, { home })),
    { fault: 'symlink', message: /symbolic link/ },
  );
  t.throws(() => initWorkspace(path, { ORATORIO_HOME: home }), InitError);
  t.same(readdirSync(target), []);
  t.equal(statSync(target).mode & 0o777, 0o755);
});

t.test('a missing path, a file, the home and its parents are not workspaces', async (t) => {
  const { root, home } = scene(t);
  initWorkspace(root, { ORATORIO_HOME: home });
  mkdirSync(join(root, 'below'));
  writeFileSync(join(root, 'file'), '');
  for (const [path, fault] of [
    [join(root, 'nowhere'), 'missing'],
    [join(root, 'file'), 'notDirectory'],
    [join(root, 'below'), 'notWorkspace'],
  ] as const) {
    t.match(
      faultOf(() => openWorkspace(path, { home })),
      { fault },
      path,
    );
  }
  t.match(
    faultOf(() => openWorkspace(root, { home: join(root, '.oratorio') })),
    { fault: 'notWorkspace' },
  );
});

t.test(
  'regression: L5 opening a clone restricts the mode of its .oratorio, and only init writes a .gitignore that hides its state',
  async (t) => {
    const { root, home } = scene(t);
    const origin = join(root, 'origin');
    const clone = join(root, 'clone');
    const git = (cwd: string, ...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
        cwd,
        encoding: 'utf8',
        stdio: 'pipe',
      });
    mkdirSync(join(origin, '.oratorio'), { recursive: true });
    writeFileSync(join(origin, '.oratorio', 'config.json'), '{}');
    git(root, 'init', '-q', origin);
    git(origin, 'add', '-A');
    git(origin, 'commit', '-qm', 'settings');
    git(root, 'clone', '-q', origin, clone);
    const inside = join(clone, '.oratorio');
    chmodSync(inside, 0o755);
    openWorkspace(clone, { home });
    if (process.platform !== 'win32') t.equal(statSync(inside).mode & 0o777, 0o700);
    t.same(readdirSync(inside), ['config.json']);
    initWorkspace(clone, { ORATORIO_HOME: home });
    for (const name of ['state.db', 'appserver.lock', 'appserver.mutex', 'anything'])
      writeFileSync(join(inside, name), '');
    writeFileSync(join(inside, 'config.json'), '{"Model":"x"}');
    const changed = git(clone, 'status', '--porcelain', '--untracked-files=all').trim().split('\n').toSorted();
    t.same(changed, ['M .oratorio/config.json'], 'settings can be committed');

    writeFileSync(join(inside, '.gitignore'), 'mine\n');
    initWorkspace(clone, { ORATORIO_HOME: home });
    t.equal(readFileSync(join(inside, '.gitignore'), 'utf8'), 'mine\n', 'a file of the user stays');
    rmSync(join(inside, '.gitignore'));
    symlinkSync(join(root, 'elsewhere'), join(inside, '.gitignore'));
    initWorkspace(clone, { ORATORIO_HOME: home });
    t.notOk(existsSync(join(root, 'elsewhere')), 'a link is not followed');
  },
);

const cli = program('src/cli/main.ts');

async function oratorio(cwd: string, home: string, ...args: string[]) {
  const flags = ['--conditions=development', '--disable-warning=ExperimentalWarning'];
  const child = spawn(process.execPath, [...flags, cli, ...args], {
    cwd,
    env: { ...programEnvironment, ORATORIO_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const [code] = await once(child, 'close');
  return { code, output };
}

t.test(
  'regression: L1 init in a directory that cannot be written to ends with an error',
  { skip: process.platform !== 'linux' && 'needs /proc' },
  async (t) => {
    const { root, home } = scene(t);
    for (const args of [
      ['init', '/proc/x'],
      ['up', '/proc', '--init', '--no-start', '--no-follow'],
    ]) {
      const { code, output } = await oratorio(root, home, ...args);
      t.equal(code, 1, output);
      t.match(output, /cannot be created \(ENOENT\)/);
    }
    t.match(await oratorio(root, home, 'init', join(root, 'a', 'b')), { code: 0 });
  },
);

t.test(
  'regression: L2 a directory whose name is not UTF-8 is refused, and no other one created',
  { skip: process.platform !== 'linux' && 'needs a file system that takes any bytes' },
  async (t) => {
    const { root, home } = scene(t);
    const odd = Buffer.concat([Buffer.from(`${root}/odd-`), Buffer.from([0xff])]);
    mkdirSync(odd);
    // A shell enters it: a path with these bytes cannot be written in JavaScript.
    const enter = `cd "$(printf '%s/odd-\\377' "$0")" && exec "$@"`;
    const flags = ['--conditions=development', '--disable-warning=ExperimentalWarning'];
    const run = spawn('sh', ['-c', enter, root, process.execPath, ...flags, cli, 'init'], {
      env: { ...programEnvironment, ORATORIO_HOME: home },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [run.stdout, run.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
    t.same(await once(run, 'close'), [1, null], output);
    t.match(output, /not valid UTF-8/);
    t.same(
      readdirSync(root, { encoding: 'buffer' }).map((name) => name.toString('latin1')),
      ['odd-\xff'],
    );
    t.throws(() => lstatSync(Buffer.concat([odd, Buffer.from('/.oratorio')])), { code: 'ENOENT' });
  },
);
