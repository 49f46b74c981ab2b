/** Many processes at once. Runs alone (`.taprc`), because it occupies all processors for a while. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { isAlive } from '../../src/supervise/index.ts';
import { firstLine, nothingLeft, start, startPlain, temporaryDirectory, until } from './helpers.ts';

t.test('of 50 competing processes exactly one holds the lock', async (t) => {
  const directory = temporaryDirectory(t);
  const gun = join(directory, 'go');
  const racers = await Promise.all(
    Array.from({ length: 50 }, () => startPlain(t, 'takes-lock', [join(directory, 'hub.mutex'), gun])),
  );
  const answers = racers.map(({ nextLine }) => nextLine());
  writeFileSync(gun, '');
  const said = await Promise.all(answers);
  t.equal(said.filter((line) => line === 'locked').length, 1);
  t.equal(said.filter((line) => line === 'held').length, 49);
});

t.test('many processes can be stopped at once', async (t) => {
  const children = await Promise.all(Array.from({ length: 20 }, () => start(t, 'forks-grandchild')));
  await Promise.all(children.map(firstLine));
  for (const child of children) child.terminate();
  await Promise.all(children.map((child) => child.gone()));
  await until('all gone', () => children.every(({ identity }) => isAlive(identity) === 'gone'));
});

nothingLeft(t);
