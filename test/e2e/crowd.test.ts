/** Many agent servers at once. Runs alone (`.taprc`), because it occupies all processors for a while. */
import t from 'tap';
import { agentServersUnder, makePlace, startHub, untilNoneRuns } from './harness.ts';

t.test('16 workspaces started at once each run one process, and all end with the Hub', async (t) => {
  const place = makePlace(t);
  const hub = await startHub(place);
  const workspaces = Array.from({ length: 16 }, (_, index) => place.workspace(`site-${index + 10}`));
  const records = await Promise.all(workspaces.map((workspacePath) => hub.client.ensure({ workspacePath })));
  t.same([...new Set(records.map(({ state }) => state))], ['running']);
  t.equal(new Set(records.map((record) => new URL(record.endpoints['appServerWebSocket'] ?? '').port)).size, 16);
  const servers = agentServersUnder(place.root);
  t.same(servers.map(({ workspace }) => workspace).sort(), workspaces);
  t.same(servers.map(({ pid }) => pid).sort(), records.map(({ pid }) => pid).sort());
  t.same(
    (await hub.client.list()).map(({ canonicalWorkspacePath }) => canonicalWorkspacePath),
    workspaces,
    'sorted',
  );
  await hub.shutdown();
  await untilNoneRuns(place);
});
