import { linkSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { changeSettings, SettingsSource } from '../../../src/review/settings/index.ts';
import { quiet } from '../store/databases.ts';

t.test('regression: the API changes no endpoint and no key path', async (t) => {
  const stateRoot = t.testdir();
  const file = join(stateRoot, 'oratorio.config.json');
  const text = JSON.stringify({ Oratorio: { GitHub: { AppId: 1 } } });
  writeFileSync(file, text);
  const source = new SettingsSource({ place: { file, env: {}, stateRoot }, logger: quiet });
  t.teardown(() => source.close());
  const store = { publish: async () => undefined };
  for (const [path, value] of [
    ['GitHub.Endpoint', 'https://thief.example'],
    ['github.gitendpoint', 'https://thief.example'],
    ['GitHub.PrivateKeyPath', '/etc/shadow'],
    ['DotCraft.AppServerUrl', 'ws://thief.example/ws'],
    ['Settings.Writable', false],
  ] as const) {
    const request = { baseRevision: source.loaded.revision, set: { [path]: value }, address: '::1' };
    const expected = { code: 'configurationOfDeployment', issues: [{ path, message: /deployment/ }] };
    await t.rejects(changeSettings(source, request, { store, logger: quiet }), expected, path);
  }
  t.equal(readFileSync(file, 'utf8'), text);
});

t.test('regression: a reader of the settings file never sees a part of a change', async (t) => {
  const directory = join(t.testdir(), 'settings');
  mkdirSync(directory);
  const file = join(directory, 'oratorio.config.json');
  const before = JSON.stringify({ Oratorio: { Review: { MaxFindings: 3 } } });
  writeFileSync(file, before);
  // A process that has the old file open continues to read that.
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
