/** A database file that was emptied while no agent server ran. */
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openStore } from '../../../src/agent/index.ts';

t.test('an emptied database is reported and moved aside with its log, and a new one is made', (t) => {
  const directory = t.testdir();
  const file = join(directory, 'state.db');
  const reports: string[] = [];
  const reopen = () => openStore(directory, { onDamage: (message) => reports.push(message) }).close();
  reopen();
  reopen();
  t.same(reports, [], 'positive control: neither a new database nor a whole one is reported');
  truncateSync(file);
  writeFileSync(`${file}-wal`, 'log');
  reopen();
  t.equal(reports.length, 1);
  const saved = readdirSync(directory).filter((name) => name.startsWith('state.db.damaged-'));
  const log = saved.find((name) => name.endsWith('-wal')) ?? '';
  t.equal(saved.length, 2);
  t.equal(readFileSync(join(directory, log), 'utf8'), 'log', 'the log is saved');
  for (const name of [file, log.slice(0, -4)]) t.ok(reports[0]?.includes(name), name);
  reopen();
  t.equal(reports.length, 1, 'reported once');
  t.end();
});
