import { spawn } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { DayLedger } from '../../../src/agent/index.ts';
import { program } from '../../programs.ts';
import { temporaryDirectory } from './helpers.ts';

const counter = program('test/agent/store/counter.ts');

t.test('spending is summed by local day, over workspaces and processes', async (t) => {
  const file = join(temporaryDirectory(t), 'home', 'spending.db');
  let now = new Date(2026, 10, 23, 23, 59);
  const open = (workspace: string) => {
    const ledger = new DayLedger({ file, workspace, now: () => now });
    t.teardown(() => ledger.close());
    return ledger;
  };
  const [one, two] = [open('/one'), open('/two')];
  t.equal(one.today(), 0);
  one.add(0.25);
  two.add(0.5);
  one.add(0.25);
  one.add(0);
  t.same([one.today(), two.today()], [1, 1]);
  now = new Date(2026, 10, 24, 0, 1);
  t.equal(one.today(), 0, 'a new local day begins at midnight');
  if (process.platform !== 'win32') t.equal(statSync(file).mode & 0o077, 0, 'no other user can read it');
});

t.test('processes that are killed while they count lose nothing that was counted', async (t) => {
  const file = join(temporaryDirectory(t), 'spending.db');
  const counted = await Promise.all(
    ['/a', '/b'].map(
      (workspace) =>
        new Promise<number>((resolve) => {
          const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', counter, file, workspace]);
          let dots = 0;
          child.stdout.on('data', (chunk: Buffer) => {
            dots += chunk.length;
            if (dots >= 20) child.kill('SIGKILL');
          });
          child.on('close', () => resolve(dots));
        }),
    ),
  );
  const ledger = new DayLedger({ file, workspace: '/c' });
  t.teardown(() => ledger.close());
  const least = counted.reduce((sum, dots) => sum + dots, 0);
  t.ok(ledger.today() >= least && ledger.today() <= least + 2, `${ledger.today()} of ${least}`);
});

t.test('a file that is not a database is a typed error, and is not changed', async (t) => {
  const file = join(temporaryDirectory(t), 'spending.db');
  writeFileSync(file, 'not a database, but something that a user wrote'.repeat(50));
  const ledger = new DayLedger({ file, workspace: '/w' });
  t.throws(() => ledger.today(), { name: 'StorageError', code: 'corrupt' });
  t.throws(() => ledger.add(1), { name: 'StorageError' });
});
