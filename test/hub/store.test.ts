import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createStore } from '../../src/hub/store.ts';

t.test('a save that is under way when the store ends is finished, and a later one writes nothing', async (t) => {
  const directory = t.testdir();
  const file = join(directory, 'appservers.json');
  const store = createStore(directory, () => []);
  const saved = store.save();
  await store.end();
  t.same(readdirSync(directory), ['appservers.json'], 'whole, without a temporary file');
  await saved;
  rmSync(file);
  await store.save();
  await store.end();
  t.notOk(existsSync(file));
});
