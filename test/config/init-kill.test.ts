/** A directory whose `init` ends between any two changes of the file system, as by a kill. */
import fs, { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import t from 'tap';
import { initWorkspace } from '../../src/config/index.ts';

const changing = ['mkdirSync', 'openSync', 'writeSync', 'linkSync', 'renameSync', 'rmSync', 'chmodSync'] as const;

/** Calls back, and stops every change of the file system after the first `count`. @returns whether a change was stopped */
function stopAfter(count: number, act: () => void): boolean {
  const { writeFileSync: write, ...own } = { ...fs };
  let changes = 0;
  for (const name of changing) {
    const change = own[name] as (...args: unknown[]) => unknown;
    Object.assign(fs, {
      [name]: (...args: unknown[]) => {
        changes += 1;
        if (changes > count) throw new Error('the process was killed');
        return change(...args);
      },
    });
  }
  fs.writeFileSync = (path, data, options) => {
    const { flag = 'w', mode } = Object(options);
    const fd = fs.openSync(String(path), flag, mode);
    fs.writeSync(fd, String(data));
    fs.closeSync(fd);
  };
  syncBuiltinESMExports();
  try {
    act();
  } catch (error) {
    if (changes <= count) throw error;
  } finally {
    for (const name of changing) Object.assign(fs, { [name]: own[name] });
    fs.writeFileSync = write;
    syncBuiltinESMExports();
  }
  return changes > count;
}

t.test('an init that is killed at any moment leaves no part of a file, and can be repeated', (t) => {
  const root = t.testdir();
  const env = { ORATORIO_HOME: join(root, 'home') };
  let count = 0;
  for (let wasStopped = true; wasStopped; count += 1) {
    const directory = join(root, `w${count}`);
    mkdirSync(directory);
    writeFileSync(join(directory, 'code'), '');
    wasStopped = stopAfter(count, () => initWorkspace(directory, env));
    const [settings, ignored] = ['config.json', '.gitignore'].map((name) => join(directory, '.oratorio', name));
    const read = (file = '') => (existsSync(file) ? readFileSync(file, 'utf8') : 'missing');
    for (const file of [settings, ignored]) t.not(read(file), '', 'no file without its content');
    initWorkspace(directory, env);
    t.equal(read(settings), '{}\n');
    t.match(read(ignored), '*');
  }
  t.ok(count > 8, `control: the init was stopped at ${count - 1} places`);
  t.end();
});
