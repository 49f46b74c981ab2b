import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Writable } from 'node:stream';
import t from 'tap';
import { run } from '../../src/cli/commands/backend.ts';
import { Output } from '../../src/cli/output.ts';

t.test('regression: --config overrides ORATORIO_CONFIG_PATH', async (t) => {
  const home = t.testdir();
  for (const name of ['of-the-environment', 'of-the-option'])
    writeFileSync(join(home, `${name}.json`), '{"Oratorio":{"Server":{"Port":"x"}}}');
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const start = (options: Readonly<Record<string, string>>) =>
    run({
      argument: undefined,
      options,
      lists: {},
      output: new Output({ stdout: nowhere, stderr: nowhere, env: {}, json: false }),
      env: { ORATORIO_CONFIG_PATH: join(home, 'of-the-environment.json') },
      cwd: home,
      absolute: (path) => resolve(home, path),
      home,
      signal: new AbortController().signal,
    });
  await t.rejects(start({}), { code: 'settingsInvalid', message: /of-the-environment/ });
  await t.rejects(start({ config: 'of-the-option.json' }), { code: 'settingsInvalid', message: /of-the-option/ });
});
