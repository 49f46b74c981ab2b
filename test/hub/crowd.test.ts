/** Many Hubs at once. Runs alone (`.taprc`), because it occupies all processors for a while. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { eventually, hubStatePath, spawnHub, temporaryDirectory } from './harness.ts';

t.test('of 30 Hubs started at once one serves, and the others report it and exit with 0', async (t) => {
  const home = temporaryDirectory(t);
  const hubs = Array.from({ length: 30 }, () => spawnHub(home));
  t.teardown(() => {
    for (const { child } of hubs) child.kill('SIGKILL');
  });
  // Unlike `exit`, `close` follows the last output.
  const left = new Set<unknown>();
  for (const { child } of hubs) child.once('close', () => left.add(child));
  const losers = () => hubs.filter(({ child }) => left.has(child));
  await eventually(() => losers().length === 29 || undefined, '29 have left', 600_000);
  t.same([...new Set(losers().map(({ child }) => child.exitCode))], [0]);
  for (const { output } of losers()) t.match(output(), /"kind":"yielded"/);
  const winner = hubs.find(({ child }) => child.exitCode === null);
  const published = () => JSON.parse(readFileSync(join(hubStatePath(home), 'hub.lock'), 'utf8')).pid;
  await eventually(() => winner?.output().includes('the Hub is serving') || undefined, 'the winner serves');
  t.equal(published(), winner?.child.pid);
});
