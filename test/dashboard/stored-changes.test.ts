/** Changes of turns without an agent server. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { Config, generatedKeyFile, workspaceStateDirectory } from '../../src/config/index.ts';
import { readChanges } from '../../src/dashboard/stored-changes.ts';
import type { Thread } from '../../src/protocol/index.ts';
import { bench, checkpointsOf } from '../checkpoints/tree-of-files.ts';

t.test('the diff shows no secret that a running agent server would take out', async (t) => {
  const place = bench(t);
  const home = dirname(place.stores);
  const stores = `${workspaceStateDirectory(home, place.root)}/checkpoints`;
  const key = 'k'.repeat(43);
  mkdirSync(dirname(generatedKeyFile(home, place.root)), { recursive: true });
  writeFileSync(generatedKeyFile(home, place.root), `${key}\n`, { mode: 0o600 });
  const agent = 'secret-of-the-agent';
  const config = v.parse(Config, {
    ApiKey: 'key-of-the-model',
    Agent: { Env: { AGENT_TOKEN: agent, COLOUR: 'green-as-grass' } },
  });
  const { turn, checkpoints } = checkpointsOf(t, { ...place, stores });
  const secrets = [config.ApiKey, agent, key, 'word-of-the-page'];
  await turn('turn_001', () => place.write('notes.txt', [...secrets, 'green-as-grass', ''].join('\n')));
  await checkpoints.close();
  const read = readChanges({ home, workspacePath: place.root, config, secrets: ['word-of-the-page'] });
  const thread = { id: 'thread' } as Thread;
  const { diff = '' } = await read(thread, { threadId: 'thread', turnId: 'turn_001', format: 'unified' });
  t.match(diff, /\+green-as-grass/);
  for (const secret of secrets) t.notMatch(diff, secret);
});
