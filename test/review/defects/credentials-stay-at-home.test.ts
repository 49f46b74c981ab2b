import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { changeSettings, SettingsSource } from '../../../src/review/settings/index.ts';
import { quiet } from '../store/databases.ts';

t.test('nobody can have the credentials sent elsewhere over the API, or a file read as a key', async (t) => {
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
