/** File accesses of a Hub with many known workspaces at rest. A page of its list costs as much as its rows, not as all workspaces. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { revokeTrust, trustWorkspace } from '../../src/config/index.ts';
import { eventually, hubStatePath, startTestHub, temporaryDirectory } from './harness.ts';

const number = 300;
const rows = 20;

const root = temporaryDirectory(t);
const home = temporaryDirectory(t, 'oratorio-home-');
const paths = Array.from({ length: number }, (_, index) => join(root, `site-${String(index).padStart(3, '0')}`));
const configOf = (path: string) => join(path, '.oratorio', 'config.json');
for (const path of paths) {
  mkdirSync(join(path, '.oratorio'), { recursive: true });
  writeFileSync(configOf(path), '{}');
}
const [first = ''] = paths;
trustWorkspace({ home, workspace: first });
mkdirSync(hubStatePath(home), { recursive: true, mode: 0o700 });
const nothing = { server: null, proxy: null, exitCode: null, lastError: null, lastStartedAt: null, lastExitedAt: null };
const appServers = paths.map((path) => ({ workspacePath: path, canonicalWorkspacePath: path, ...nothing }));
writeFileSync(
  join(hubStatePath(home), 'appservers.json'),
  JSON.stringify({ version: 1, updatedAt: '2026-01-01T00:00:00Z', appServers }),
  { mode: 0o600 },
);

/** Loaded by the Hub: counts synchronous accesses to settings of workspaces and reads of trust, and prints the counts on SIGUSR2. */
const counter = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const counts = { openSync: 0, statSync: 0, trust: 0 };
  for (const name of ['openSync', 'statSync']) {
    const original = fs[name];
    fs[name] = (path, ...more) => {
      if (String(path).endsWith('.oratorio/config.json')) counts[name] += 1;
      if (name === 'openSync' && String(path).endsWith('/trust.json')) counts.trust += 1;
      return original(path, ...more);
    };
  }
  syncBuiltinESMExports();
  let printed = 0;
  process.on('SIGUSR2', () => {
    console.log('counts ' + ++printed + ' ' + JSON.stringify(counts));
    counts.openSync = counts.statSync = counts.trust = 0;
  });
`;
const hub = await startTestHub(t, {
  home,
  env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(counter)}` },
});

let asked = 0;
/** Counts since the last call. */
async function counts(): Promise<{ readonly openSync: number; readonly statSync: number; readonly trust: number }> {
  asked += 1;
  hub.child.kill('SIGUSR2');
  const printed = new RegExp(`counts ${asked} (\\{.*\\})`);
  const [, text = ''] = await eventually(() => printed.exec(hub.output()) ?? undefined, 'the Hub prints its counts');
  return JSON.parse(text);
}
const list = (query = '') => hub.call('GET', `/v1/fleet/appservers?limit=${rows}${query}`);

t.test('the start reads the settings of each workspace once, and the first list reads none again', async (t) => {
  const { openSync, trust } = await counts();
  t.equal(trust, 1, 'reads of the trust decisions');
  t.ok(openSync >= number, `the counter sees the files: ${openSync}`);
  t.ok(openSync <= 2 * number, `trust and settings: ${openSync} reads`);
  t.match((await list()).body, { sums: [{ workspaces: number, stopped: number }], next: /site-019$/ });
  t.same((await counts()).openSync, 0);
});

t.test('a page, a filter and an order check the files of their rows', async (t) => {
  // The age of the settings is limited to one millisecond for each workspace.
  await list();
  await counts();
  for (const query of ['', '&order=attention', '&q=site-29', '&group=stopped', '&state=stopped']) {
    const begun = performance.now();
    t.equal((await list(query)).status, 200);
    const { statSync } = await counts();
    const rounds = 1 + Math.ceil((performance.now() - begun) / number);
    t.ok(statSync <= 2 * rows + rounds * number, `${query}: ${statSync}`);
  }
});

t.test('the Hub reads changed trust decisions once for all workspaces, and shows them at once', async (t) => {
  const trusts = async () => {
    const { body } = await list();
    return body.appServers.map(({ trust }: { readonly trust: string }) => trust).slice(0, 3);
  };
  t.same(await trusts(), ['trusted', 'restricted', 'restricted']);
  await counts();
  trustWorkspace({ home, workspace: paths[1] ?? '' });
  t.same(await trusts(), ['trusted', 'trusted', 'restricted']);
  t.equal((await counts()).trust, 1);
  revokeTrust({ home, workspace: first });
  t.same(await trusts(), ['restricted', 'trusted', 'restricted']);
});

t.test('a changed settings file shows in the page of its row at once', async (t) => {
  writeFileSync(configOf(first), '{"Turns": 3}');
  const { body } = await list();
  t.match(body.appServers[0], { canonicalWorkspacePath: first, problems: [{ code: 'restricted' }] });
});
