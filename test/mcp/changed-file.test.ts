import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { filesOfServer } from '../../src/config/index.ts';
import { Connection } from '../../src/mcp/connection.ts';
import { stdio } from './helpers.ts';

t.test('regression: C4 a server whose file in the workspace has changed is not started', async (t) => {
  const workspacePath = t.testdir({ 'server.mjs': 'process.exit(7);' });
  const settings = stdio(['server.mjs']);
  const files = filesOfServer(settings, workspacePath);
  const end = async () => {
    const { promise, resolve } = Promise.withResolvers<{ readonly code: string; readonly error: string }>();
    const ignore = () => undefined;
    new Connection({
      ...{ serverName: 'server', settings, workspacePath, files, env: process.env, isOlderEra: false, onEnd: resolve },
      ...{
        onSpawned: ignore,
        onReady: ignore,
        onChanged: ignore,
        onLost: ignore,
        onOlderEra: ignore,
        onTrouble: ignore,
      },
    });
    return promise;
  };
  t.match(await end(), { code: 'exited' }, 'control: it starts');
  writeFileSync(join(workspacePath, 'server.mjs'), 'process.exit(8);');
  t.match(await end(), { code: 'notStarted', error: /server\.mjs of the workspace has changed.*oratorio trust/ });
});
