import { linkSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { changeSettings, SettingsSource } from '../../../src/review/settings/index.ts';
import { quiet } from '../store/databases.ts';

t.test('who reads the settings file while it is changed has the old one or the new one, never a part', async (t) => {
  const directory = join(t.testdir(), 'settings');
  mkdirSync(directory);
  const file = join(directory, 'oratorio.config.json');
  const before = JSON.stringify({ Oratorio: { Review: { MaxFindings: 3 } } });
  writeFileSync(file, before);
  // Whoever has the old file open goes on reading that.
  const opened = join(t.testdirName, 'opened.json');
  linkSync(file, opened);
  const source = new SettingsSource({ place: { file, env: {}, stateRoot: directory }, logger: quiet });
  t.teardown(() => source.close());
  const request = { baseRevision: source.loaded.revision, set: { 'Review.MaxFindings': 4 }, address: '::1' };
  await changeSettings(source, request, { store: { publish: async () => undefined }, logger: quiet });
  t.equal(readFileSync(opened, 'utf8'), before);
  t.match(JSON.parse(readFileSync(file, 'utf8')), { Oratorio: { Review: { MaxFindings: 4 } } });
  t.same(readdirSync(directory), ['oratorio.config.json'], 'nothing is left beside it');
});
