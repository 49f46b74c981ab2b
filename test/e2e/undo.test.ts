/** `oratorio diff` and `oratorio undo` in the installed product. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { makePlace, oratorio, runningHub } from './harness.ts';

t.test('a turn is shown and taken back on the command line', async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('site');
  const run = (command: string, ...rest: string[]) =>
    oratorio(place, [...command.split(' '), '--workspace', workspace, ...rest]);
  const at = (name: string) => join(workspace, name);
  writeFileSync(at('a.txt'), 'one\n');
  execFileSync('mkfifo', [at('pipe')]);
  const chat = await run('chat', '--yes', 'run: echo two > a.txt; echo new > b.txt');
  t.equal(chat.code, 0, chat.stderr);

  const diff = await run('diff', '--turn', 'turn_001');
  t.equal(diff.code, 0, diff.stderr);
  t.match(diff.stdout, '-one\n+two\n');

  const exported = await run('threads export');
  t.equal(exported.code, 0, exported.stderr);
  t.match(
    exported.stdout,
    /^# run: echo two > a\.txt[^\n]*\n\n## You\n\nrun: echo two > a\.txt; echo new > b\.txt\n\n/,
  );
  t.match(exported.stdout, '\n\n*1 tool call*\n\n## Agent\n\n');

  writeFileSync(at('a.txt'), 'mine\n');
  const refused = await run('undo');
  t.equal(refused.code, 1);
  t.match(
    refused.stderr,
    /not covered: pipe \(not a file, directory or link\)\nOutside of the workspace[^\n]*\n[\s\S]*Nothing was restored/,
    'what will not come back is said first',
  );
  t.match(refused.stderr, /a\.txt \(modified by you since\)[\s\S]*oratorio undo --thread \S+ --force --workspace /);
  t.same([readFileSync(at('a.txt'), 'utf8'), existsSync(at('b.txt'))], ['mine\n', true], 'nothing was restored');

  t.match(await run('undo', '--path', '../a.txt'), { code: 2, stderr: /--path must be a file or directory in the/ });
  const one = await run('undo', '--path', './b.txt', '--json');
  t.match(JSON.parse(one.stdout), { restoreId: 'restore_1', restored: ['b.txt'] });
  t.same([readFileSync(at('a.txt'), 'utf8'), existsSync(at('b.txt'))], ['mine\n', false], 'one file was put back');
  await run('undo', '--restore', 'restore_1');
  t.ok(existsSync(at('b.txt')), 'and this was taken back');

  const undone = await run('undo', '--turns', '3', '--force', '--json');
  t.equal(undone.code, 0, undone.stderr);
  t.match(JSON.parse(undone.stdout), {
    uncovered: { entries: [{ path: 'pipe', reason: 'special' }], total: 1 },
    restoreId: 'restore_3',
    restored: ['a.txt', 'b.txt'],
  });
  t.same([readFileSync(at('a.txt'), 'utf8'), existsSync(at('b.txt'))], ['one\n', false]);

  t.match(await run('undo'), { code: 1, stderr: 'This conversation has no turn that could be taken back.' });
  t.match(await run('diff'), { code: 0, stdout: '', stderr: 'No files have changed.' });
  const missing = await run('undo', '--thread', 'nope', '--json');
  t.match(JSON.parse(missing.stdout).error, { code: 'threadNotFound', message: `nope in ${workspace}` });

  const { threadId } = JSON.parse(undone.stdout);
  const fork = JSON.parse((await run('fork', threadId, '--worktree', '--json')).stdout);
  await run('chat', '--yes', '--thread', fork.threadId, 'run: echo fork > a.txt');
  writeFileSync(at('a.txt'), 'mine\n');
  const merge = (...rest: string[]) => run('merge', fork.threadId, ...rest);
  const conflict = await merge();
  t.match(conflict, {
    code: 1,
    stderr: /Nothing was merged, because 1 file was changed since:\n {2}a\.txt \(modified/,
  });
  const again = `oratorio merge ${fork.threadId} --force --workspace ${workspace}`;
  t.ok(conflict.stderr.includes(again), conflict.stderr);
  t.match(JSON.parse((await merge('--json')).stdout).error, {
    code: 'restoreConflict',
    details: { conflicts: [{ path: 'a.txt', change: 'modified', by: 'user' }] },
  });
  t.equal(readFileSync(at('a.txt'), 'utf8'), 'mine\n', 'nothing was merged');
  const merged = await merge('--force');
  t.match(merged, { code: 0, stdout: `--thread ${threadId} --restore restore_` }, merged.stderr);
  t.equal(readFileSync(at('a.txt'), 'utf8'), 'fork\n');
  const noFork = await run('merge', threadId, '--json');
  t.match(JSON.parse(noFork.stdout).error, { code: 'noFork' }, noFork.stderr);
  await runningHub(place).shutdown();
});
