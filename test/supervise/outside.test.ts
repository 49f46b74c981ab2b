/** Programs and libraries outside of the sandbox lie outside of every workspace. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import t from 'tap';
import { directoryName, forksName } from '../../src/config/index.ts';
import { outsideEnvironment, searchPathOutside } from '../../src/supervise/index.ts';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-outside-')));
t.teardown(() => rmSync(root, { recursive: true, force: true }));

function make(...names: readonly string[]): string {
  const path = join(root, ...names);
  mkdirSync(path, { recursive: true });
  return path;
}

function workspace(name: string): string {
  make(name, directoryName);
  writeFileSync(join(root, name, directoryName, 'config.json'), '{}');
  return join(root, name);
}

t.test('regression: H48 directories of every workspace and fork leave the search path', async (t) => {
  const [own, other, plain] = [workspace('own'), workspace('other'), make('plain')];
  symlinkSync(join(other, 'bin'), join(root, 'link'));
  const inside = [
    join(own, '.venv', 'bin'),
    join(other, 'bin'),
    join(plain, 'bin'),
    make(forksName, 'own-12345678', 'bin'),
    join(root, 'link'),
    '.',
    'node_modules/.bin',
    '',
  ];
  const outside = [make('tools'), '/usr/bin'];
  const path = [...inside, ...outside].join(delimiter);
  t.equal(searchPathOutside(plain, path), outside.join(delimiter));
  t.equal(searchPathOutside(undefined, path), [join(plain, 'bin'), ...outside].join(delimiter));
});

t.test('directories of the home stay, although its own settings lie in it', async (t) => {
  const home = workspace('home');
  const before = { HOME: process.env['HOME'], ORATORIO_HOME: process.env['ORATORIO_HOME'] };
  t.teardown(() => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  process.env['HOME'] = home;
  delete process.env['ORATORIO_HOME'];
  t.equal(searchPathOutside(undefined, join(home, 'bin')), join(home, 'bin'));
  process.env['HOME'] = join(root, 'elsewhere');
  process.env['ORATORIO_HOME'] = join(home, directoryName);
  t.equal(searchPathOutside(undefined, join(home, 'bin')), join(home, 'bin'));
});

t.test('a path with nothing left becomes the usual places', async (t) => {
  t.equal(searchPathOutside(undefined, '.:'), '/usr/local/bin:/usr/bin:/bin');
});

t.test(
  'regression: H48 libraries of a workspace, and of the working directory, are loaded by no program',
  async (t) => {
    const own = workspace('libraries');
    const keep = make('lib');
    const LD_LIBRARY_PATH = `${own}/build:${keep}:`;
    const env = outsideEnvironment(own, { PATH: '/usr/bin', LD_LIBRARY_PATH, JAVA_HOME: own });
    t.strictSame(env, { PATH: '/usr/bin', LD_LIBRARY_PATH: keep, JAVA_HOME: own });
    const none = outsideEnvironment(own, { PATH: '/usr/bin', LD_LIBRARY_PATH: `${own};:` });
    t.strictSame(none, { PATH: '/usr/bin' });
  },
);
