/** Changes of the user's configuration by several processes. */
import { execFile, execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { planUserChange, trustFile, trustWorkspace } from '../../src/config/index.ts';
import { removeStaleTemps } from '../../src/supervise/index.ts';
import { program } from '../programs.ts';

const run = promisify(execFile);
const settings = (home: string) => JSON.parse(readFileSync(join(home, 'config.json'), 'utf8'));

t.test('a setting changed between plan and apply stays', async (t) => {
  const home = t.testdir({ 'config.json': '{"Model": "a", "Log": {"Level": "debug"}}' });
  const change = planUserChange({ home, env: {}, set: [{ path: ['Model'], value: 'b' }] });
  writeFileSync(join(home, 'config.json'), '{"Model": "a", "Log": {"Level": "warn"}, "EnabledTools": ["ReadFile"]}');
  change.apply();
  t.same(settings(home), { Model: 'b', Log: { Level: 'warn' }, EnabledTools: ['ReadFile'] });
});

t.test('a file damaged between plan and apply is not overwritten', async (t) => {
  const home = t.testdir({ 'config.json': '{}' });
  const change = planUserChange({ home, env: {}, set: [{ path: ['Model'], value: 'b' }] });
  for (const text of ['{"Model": ', '{"Telemetry": 7}']) {
    writeFileSync(join(home, 'config.json'), text);
    t.throws(() => change.apply(), { name: /^Config(Change)?Error$/ });
    t.equal(readFileSync(join(home, 'config.json'), 'utf8'), text);
  }
  t.same(readdirSync(home), ['config.json'], 'nothing is left of the attempts');
});

t.test('concurrent changes of several processes are all saved', async (t) => {
  const home = t.testdir({ 'config.json': '{}' });
  const names = Array.from({ length: 4 }, (_, index) => `p${index}`);
  const args = ['--conditions=development', program('test/fixtures/process/changes-settings.mjs'), home];
  await Promise.all(names.map((name) => run(process.execPath, [...args, name, '4'])));
  t.same(Object.keys(settings(home).Providers).toSorted(), names.flatMap((name) => manyOf(name, 4)).toSorted());
  t.same(readdirSync(home), ['config.json']);
});

const manyOf = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}-${index}`);

t.test('a lock whose pid is in use again is taken over after a minute', async (t) => {
  const base = t.testdir({ home: {}, clone: { '.oratorio': {} } });
  const [home, workspace] = [join(base, 'home'), join(base, 'clone')];
  const lock = `${trustFile(home)}.lock`;
  writeFileSync(lock, `${process.pid} abc`);
  utimesSync(lock, new Date(), new Date(Date.now() - 61_000));
  trustWorkspace({ home, workspace });
  t.same(readdirSync(home), ['trust.json']);
});

t.test('the files of a killed change are removed', async (t) => {
  const home = t.testdir({ 'config.json': '{}' });
  const dead = execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }).trim();
  for (const name of ['config.json', 'config.json.lock', 'trust.json', 'trust.json.lock'])
    writeFileSync(join(home, `.${name}.${dead}.0123456789ab.tmp`), '');
  removeStaleTemps(home);
  t.same(readdirSync(home), ['config.json']);
});
