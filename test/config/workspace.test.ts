import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import t from 'tap';
import { homeDirectory, initWorkspace, loadConfig } from '../../src/config/index.ts';
import { userHome } from '../../src/lib/index.ts';

t.test('homeDirectory', async (t) => {
  t.equal(homeDirectory({}), join(homedir(), '.oratorio'));
  t.equal(homeDirectory({ ORATORIO_HOME: '' }), join(homedir(), '.oratorio'));
  t.equal(homeDirectory({ ORATORIO_HOME: '/srv/o' }), '/srv/o');
  t.equal(homeDirectory({ ORATORIO_HOME: 'here' }), resolve('here'));
});

t.test('an empty or relative HOME is answered from the password database', async (t) => {
  const known = userInfo().homedir;
  for (const HOME of ['', 'here', './x', '~']) {
    t.equal(userHome({ HOME }), known, HOME);
    t.equal(homeDirectory({ HOME }), join(known, '.oratorio'), HOME);
  }
  t.equal(userHome({ HOME: '/srv/me' }), '/srv/me', 'an absolute one is used');
});

t.test('init creates a configurable workspace, and changes nothing the second time', async (t) => {
  const home = join(t.testdir(), 'home');
  const root = join(home, '..', 'a', 'b');
  const first = initWorkspace(root, { ORATORIO_HOME: home });
  t.same(first, { workspacePath: root, configFile: join(root, '.oratorio', 'config.json'), created: true });
  if (process.platform !== 'win32') t.equal(statSync(join(root, '.oratorio')).mode & 0o777, 0o700);
  t.match(readFileSync(join(root, '.oratorio', '.gitignore'), 'utf8'), /^\/\*\n!\/commands\/\n!\/skills\/\n$/m);
  const { config } = loadConfig({ home, workspace: root, env: {} });
  t.equal(config.Model, '');
  writeFileSync(first.configFile, '{"Model":"mine"}');
  t.equal(initWorkspace(root, { ORATORIO_HOME: home }).created, false);
  t.equal(readFileSync(first.configFile, 'utf8'), '{"Model":"mine"}', 'what is there stays');
});

t.test('init adds missing files of a workspace', async (t) => {
  const root = t.testdir({ '.oratorio': {} });
  t.equal(initWorkspace(root, { ORATORIO_HOME: join(root, 'home') }).created, true);
  t.ok(existsSync(join(root, '.oratorio', 'config.json')));
});

t.test('init refuses directories with data of Oratorio', (t) => {
  const root = t.testdir({ home: { hub: {} }, code: { '.oratorio': {} } });
  const env = { ORATORIO_HOME: join(root, 'home') };
  symlinkSync(join(root, 'home'), join(root, 'link'));
  for (const path of ['home', 'link', 'code/.oratorio', 'code/.oratorio/new']) {
    t.throws(() => initWorkspace(join(root, path), env), { name: 'InitError', message: /has data of Oratorio/ }, path);
  }
  t.notOk(existsSync(join(root, 'home', '.oratorio')));
  t.match(initWorkspace(join(root, 'code'), env), { created: true });
  t.end();
});

t.test('init refuses a path that cannot be a workspace', async (t) => {
  const root = t.testdir({ file: 'x', taken: { '.oratorio': 'a file' } });
  t.throws(() => initWorkspace(join(root, 'file'), {}), { name: 'InitError', message: /is not a directory/ });
  t.throws(() => initWorkspace(join(root, 'taken'), {}), { name: 'InitError', message: /is not a directory/ });
  t.throws(() => initWorkspace(root, { ORATORIO_HOME: join(root, '.oratorio') }), {
    name: 'InitError',
    message: /saves your own data in/,
  });
  t.notOk(existsSync(join(root, '.oratorio')), 'nothing was made');
});
