import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { startHub } from '../../src/client/start-hub.ts';

t.test(
  'regression: a Hub started by a backend inherits the environment without the settings of the backend',
  async (t) => {
    const given = {
      Oratorio__GitHub__PrivateKey: 'key',
      oratorio__storage__connectionstring: 'postgres://u:p@h/d',
      ORATORIO_SERVICE_TOKEN: 'token',
      ORATORIO_GITHUB_WEBHOOK_SECRET: 'secret',
      ORATORIO_LOG: 'warn',
      MODEL_KEY: 'of a model',
    };
    for (const [name, value] of Object.entries(given)) {
      const before = process.env[name];
      process.env[name] = value;
      t.teardown(() => {
        if (before === undefined) delete process.env[name];
        else process.env[name] = before;
      });
    }
    const home = t.testdir();
    const file = join(home, 'env.json');
    const script = `const {renameSync: move, writeFileSync: write} = require('node:fs');
    write(process.argv[1] + '.new', JSON.stringify(process.env)); move(process.argv[1] + '.new', process.argv[1])`;
    const hub = await startHub(home, { command: process.execPath, args: ['-e', script, file] });
    while (!existsSync(file)) await pause(10);
    hub.release();
    const { ORATORIO_HOME, ORATORIO_LOG, MODEL_KEY, ...rest } = JSON.parse(readFileSync(file, 'utf8'));
    t.same(
      { ORATORIO_HOME, ORATORIO_LOG, MODEL_KEY },
      { ORATORIO_HOME: home, ORATORIO_LOG: 'warn', MODEL_KEY: 'of a model' },
    );
    t.same(
      Object.keys(rest).filter((name) => Object.hasOwn(given, name)),
      [],
    );
  },
);
