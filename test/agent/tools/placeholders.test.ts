/** Placeholders of a sandbox whose process was killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { sweepPlaceholders } from '../../../src/agent/tools/exec/placeholders.ts';

const file = new URL('../../../src/agent/tools/exec/open-mounts.ts', import.meta.url);

t.test('placeholders of a killed process are removed, those of a live one and files of the user stay', async (t) => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-placeholders-')));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  const [workspacePath, records] = [join(root, 'ws'), join(root, 'records')];
  mkdirSync(join(workspacePath, '.git', 'objects', 'info'), { recursive: true });
  mkdirSync(join(workspacePath, '.git', 'refs'));
  writeFileSync(join(workspacePath, '.git', 'HEAD'), 'ref: refs/heads/main\n');
  const names = () => readdirSync(join(workspacePath, '.git')).sort();
  const before = names();
  const hidden = [{ path: join(workspacePath, 'private') }];
  const places = { workspacePath, network: 'deny', hidden, records };
  const script = `import { openMounts } from '${file.href}';
    await openMounts(${JSON.stringify(places)}); console.log('open'); setInterval(() => {}, 60_000);`;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  await once(child.stdout, 'data');
  const open = names();
  t.ok(open.length > before.length, open.join(' '));
  sweepPlaceholders(records);
  t.strictSame(names(), open, 'its process lives');
  child.kill('SIGKILL');
  await ended;
  // The user has made a directory of their own meanwhile, and uses another one.
  rmSync(join(workspacePath, 'private'), { recursive: true });
  mkdirSync(join(workspacePath, 'private'));
  writeFileSync(join(workspacePath, '.git', 'info', 'exclude'), '*.o\n');
  sweepPlaceholders(records);
  t.strictSame(names(), [...before, 'info'].sort());
  t.ok(existsSync(join(workspacePath, 'private')));
  t.strictSame(readdirSync(records), []);
});

t.test('a damaged record is removed, and says nothing about files', async (t) => {
  const directory = t.testdir({ records: { 'one.json': '{"owner":' }, file: '' });
  sweepPlaceholders(join(directory, 'records'));
  sweepPlaceholders(join(directory, 'missing'));
  t.strictSame(readdirSync(join(directory, 'records')), []);
});
