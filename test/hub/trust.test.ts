/** Trust of a workspace in the records of a Hub, and workspaces with a bad configuration. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { revokeTrust, trustFile, trustWorkspace } from '../../src/config/index.ts';
import { agentServerFixture, eventually, makeWorkspace, startTestHub, temporaryDirectory } from './harness.ts';

const agentServer = agentServerFixture('well-behaved.ts');

/** A directory with an `.oratorio` that no user has trusted. */
function clone(t: { teardown(callback: () => unknown): void }, settings: unknown): string {
  const directory = join(temporaryDirectory(t, 'oratorio-clone-'), 'clone');
  mkdirSync(join(directory, '.oratorio'), { recursive: true });
  writeFileSync(join(directory, '.oratorio', 'config.json'), JSON.stringify(settings));
  return directory;
}

/** Hub of both tests: it has no workspace trusted by itself. */
const hub = await startTestHub(t, { agentServer, trustsWorkspaces: false });
const { home } = hub;

t.test('regression: C1 every record lists the ignored settings, and follows the decision of the user', async (t) => {
  const workspace = clone(t, { EndPoint: 'http://127.0.0.1:9', Tools: { Shell: { TimeoutMs: 5_000 } } });
  const restricted = { trust: 'restricted', restrictedSettings: ['EndPoint', 'Tools.Shell'] };
  const trusted = { trust: 'trusted', restrictedSettings: [] };
  const resting = await hub.call('GET', `/v1/appservers/by-workspace?path=${encodeURIComponent(workspace)}`);
  t.match(resting.body, { state: 'stopped', ...restricted });
  t.match(await hub.ensure(workspace), { state: 'running', ...restricted });
  t.match((await hub.call('GET', '/v1/appservers')).body, [restricted]);
  trustWorkspace({ home, workspace });
  t.match(await hub.record(workspace), trusted);
  await eventually(async () => (await hub.ensure(workspace)).trust === 'trusted' || undefined, 'ensure follows');
  writeFileSync(
    join(workspace, '.oratorio', 'config.json'),
    '{"McpServers":{"a":{"transport":"stdio","command":"x"}}}',
  );
  t.match(await hub.record(workspace), { trust: 'restricted', restrictedSettings: ['McpServers'] });
  writeFileSync(join(workspace, '.oratorio', 'config.json'), '{}');
  t.match(await hub.record(workspace), { trust: 'restricted', restrictedSettings: [] });
  trustWorkspace({ home, workspace });
  t.match(await hub.record(workspace), trusted);
  writeFileSync(trustFile(home), 'damaged');
  t.match(await hub.record(workspace), { trust: 'restricted' });
  rmSync(trustFile(home));
  trustWorkspace({ home, workspace });
  revokeTrust({ home, workspace });
  t.match(await hub.record(workspace), { trust: 'restricted' });
});

t.test('regression: M7 a configuration that is not a plain file fails its own workspace, never the Hub', async (t) => {
  const good = makeWorkspace(t);
  const bad = clone(t, {});
  trustWorkspace({ home, workspace: bad });
  const file = join(bad, '.oratorio', 'config.json');
  t.match(await hub.ensure(bad), { state: 'running' }, 'a plain file is read');
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: bad });
  const kinds: [string, () => void][] = [
    ['a FIFO', () => execFileSync('mkfifo', [file])],
    ['an endless device', () => symlinkSync('/dev/zero', file)],
    ['3 GB', () => execFileSync('truncate', ['--size=3G', file])],
  ];
  for (const [kind, make] of kinds) {
    rmSync(file, { force: true });
    make();
    const { status, body } = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: bad });
    t.match({ status, body }, { status: 500, body: { error: { code: 'invalidConfig' } } }, kind);
    t.match(body.error.message, file, kind);
    t.match(await hub.ensure(good), { state: 'running' }, `${kind}: others are served`);
  }
  await hub.shutdown();
  const next = await startTestHub(t, { home, agentServer });
  t.match(await next.ensure(good), { state: 'running' }, 'the next Hub starts although it knows the workspace');
});
