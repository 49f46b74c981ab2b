import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createStore } from '../../src/hub/store.ts';
import type { AgentInUse } from '../../src/protocol/index.ts';

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

const ready: AgentInUse = { kind: 'acp', name: 'codex', version: '2.6.0', state: 'ready', approvals: 'asks' };

/** State of a workspace with a report. */
const known = (): ReturnType<Parameters<typeof createStore>[1]> => [
  {
    ...{ workspacePath: '/w', canonicalWorkspacePath: '/w', directory: null },
    ...{ server: null, external: false, proxy: null },
    ...{ exitCode: null, lastError: null, lastStartedAt: null, lastExitedAt: null, rest: null },
    ...{ asleep: null, tokenSeed: null, stoppedByUser: false, configHash: null, failures: [] },
    report: {
      ...{ incarnation: 'i-1', health: 'healthy', lastTurn: null, failure: null, failuresInARow: 0, model: null },
      ...{ agent: null, mcpServers: { total: 0, down: [], toolProblems: [] }, costUsd: 0, sandbox: null },
      pendingApprovals: 0,
    },
  },
];

t.test('writes only a state that differs, without pending approvals, and a file that is missing', async (t) => {
  const directory = t.testdir();
  const file = join(directory, 'appservers.json');
  const [workspace] = known();
  if (!workspace?.report) throw new Error('the state has a report');
  const { report } = workspace;
  report.agent = ready;
  const store = createStore(directory, () => [workspace]);
  const inode = async () => {
    await store.save();
    return statSync(file).ino;
  };
  const first = await inode();
  report.pendingApprovals = 1;
  report.agent = { ...ready, state: 'busy' };
  t.equal(await inode(), first, 'a turn with an approval is not stored');
  t.notMatch(readFileSync(file, 'utf8'), 'pendingApprovals');
  t.match(store.load().workspaces, [{ report: { health: 'healthy', pendingApprovals: 0 } }]);
  report.health = 'failing';
  t.not(await inode(), first);
  t.match(store.load().workspaces, [{ report: { health: 'failing' } }]);
  rmSync(file);
  await store.save();
  t.ok(existsSync(file));
});
