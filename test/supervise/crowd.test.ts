/** Many processes at once. Runs alone (`.taprc`), because it occupies all processors for a while. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { isAlive } from '../../src/supervise/index.ts';
import { firstLine, nothingLeft, start, startPlain, temporaryDirectory, until } from './helpers.ts';

t.test('of 30 competing processes exactly one holds the lock', async (t) => {
  const directory = temporaryDirectory(t);
  const gun = join(directory, 'go');
  execFileSync('mkfifo', [gun]);
  const racers = await Promise.all(
    Array.from({ length: 30 }, () => startPlain(t, 'takes-lock', [join(directory, 'hub.mutex'), gun])),
  );
  const answers = racers.map(({ nextLine }) => nextLine());
  // Wakes all at once, and lets those pass that come later.
  const fired = openSync(gun, 'r+');
  t.teardown(() => closeSync(fired));
  const said = await Promise.all(answers);
  t.equal(said.filter((line) => line === 'locked').length, 1);
  t.equal(said.filter((line) => line === 'held').length, 29);
});

/** Starts a child, prints its pid, and waits like the fixture `forks-grandchild`, in a tenth of its processor time. */
const family = { command: '/bin/sh', args: ['-c', 'sleep 600 & echo $!; wait'] };

t.test('many processes can be stopped at once', async (t) => {
  const children = await Promise.all(Array.from({ length: 20 }, () => start(t, 'waits', [], family)));
  await Promise.all(children.map(firstLine));
  for (const child of children) child.terminate();
  await Promise.all(children.map((child) => child.gone()));
  await until('all gone', () => children.every(({ identity }) => isAlive(identity) === 'gone'));
});

nothingLeft(t);
