/** The registry of agents: odd entries of a list, the stored list, and our own entry. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import packageJson from '../../package.json' with { type: 'json' };
import { entriesOf } from '../../scripts/agents/registry-entries.ts';
import { acpIcon, acpManifest } from '../../scripts/release/acp-manifest.ts';
import { root } from '../../scripts/toolchain.mjs';
import { agentsIn, registryAgents, registryCommand } from '../../src/external/registry.ts';

const entry = (id: string, changes: object = {}) => ({
  ...{ id, name: 'An agent', version: '1.2.3', description: 'does', website: 'https://example.com/', license: 'MIT' },
  distribution: { npx: { package: 'an-agent@1.2.3', args: ['--acp'] } },
  ...changes,
});

t.test('entries of the registry become entries of the list, with a fixed version or a program', (t) => {
  const target = { archive: 'https://example.com/a.tar.gz', cmd: './bin/third', args: ['acp'] };
  const { agents, leftOut } = entriesOf({
    version: '1.0.0',
    agents: [
      entry('third', {
        distribution: { binary: { 'darwin-aarch64': target } },
        website: undefined,
        repository: 'https://example.com/r',
      }),
      entry('second', { distribution: { uvx: { package: 'second-agent==1.2.3', env: { SECOND_QUIET: '1' } } } }),
      entry('first'),
      entry('codex-acp'),
    ],
  });
  t.strictSame(leftOut, []);
  t.match(agents, [
    { id: 'first', how: 'npx', what: 'an-agent@1.2.3', args: ['--acp'], env: {} },
    { id: 'second', how: 'uvx', env: { SECOND_QUIET: '1' } },
    { id: 'third', how: 'program', what: 'third', site: 'https://example.com/r' },
  ]);
  t.strictSame(agents.map(registryCommand), [
    ['npx', '--yes', 'an-agent@1.2.3', '--acp'],
    ['uvx', 'second-agent==1.2.3'],
    ['third', 'acp'],
  ]);
  t.equal(agents.length, 3, 'an agent with a preset is not listed twice');
  t.end();
});

t.test('odd entries are left out with a reason', (t) => {
  const npx = (changes: object) => ({ distribution: { npx: { package: 'an-agent@1.2.3', ...changes } } });
  const odd = [
    7,
    null,
    {},
    entry('Upper'),
    entry('../up'),
    entry('codex'),
    entry('a\u001b[2J'),
    entry('newest', npx({ package: 'an-agent@latest' })),
    entry('unpinned', npx({ package: 'an-agent' })),
    entry('git', npx({ package: 'git+ssh://example.com/x' })),
    entry('option', npx({ package: '--call=rm@1.2.3' })),
    entry('named', npx({ cmd: 'another' })),
    entry('loader', npx({ env: { NODE_OPTIONS: '--require ./x.js' } })),
    entry('line', npx({ args: ['a\nb'] })),
    entry('many', npx({ args: Array.from({ length: 21 }, () => 'x') })),
    entry('nowhere', { website: 'javascript:alert(1)' }),
    entry('escape', { name: 'x\u001b[2J' }),
    entry('shell', { distribution: { binary: { 'linux-x86_64': { archive: 'x', cmd: 'sh -c x' } } } }),
    entry('nothing', { distribution: {} }),
  ];
  const { agents, leftOut } = entriesOf({ agents: [entry('good'), ...odd, entry('good')] });
  t.strictSame(
    agents.map(({ id }) => id),
    ['good'],
  );
  t.equal(leftOut.length, odd.length + 1);
  t.notMatch(JSON.stringify(leftOut), '\u001b');
  for (const document of [null, [], { agents: 7 }, { agents: Array.from({ length: 1_001 }, () => 7) }])
    t.throws(() => entriesOf(document), /not a registry/);
  const again = agentsIn([...agents, ...odd, ...agents]);
  t.strictSame(again, agents, 'a stored list is checked as well');
  t.end();
});

t.test('each stored agent is usable', (t) => {
  const path = join(root, 'src/external/agent-registry.generated.json');
  const stored = JSON.parse(readFileSync(path, 'utf8')) as { agents: unknown[]; date: string };
  t.match(stored.date, /^\d{4}-\d\d-\d\d$/);
  t.equal(registryAgents.length, stored.agents.length);
  t.ok(registryAgents.length > 7);
  t.end();
});

t.test('our entry for the registry has the version of the package and a monochrome icon', (t) => {
  const manifest = acpManifest(packageJson);
  t.match(manifest, {
    id: /^[a-z][a-z0-9-]*$/,
    name: 'Oratorio',
    version: packageJson.version,
    description: /./,
    repository: /^https:\/\/[^#]+[^t]$/,
    license_url: /^https:\/\/.+\/LICENSE$/,
    distribution: { npx: { package: `oratorio@${packageJson.version}`, args: ['acp'] } },
  });
  const archive = { os: 'linux', arch: 'x64', address: 'https://example.com/a.tar.gz', directory: 'oratorio-1.0.0' };
  const withArchive = acpManifest(packageJson, [archive]);
  t.match(withArchive.distribution.binary, {
    'linux-x86_64': { archive: archive.address, cmd: './oratorio-1.0.0/bin/oratorio', args: ['acp'] },
  });
  const { agents } = entriesOf({ version: '1.0.0', agents: [{ ...withArchive, id: 'ours' }] });
  t.match(agents, [{ id: 'ours', how: 'npx' }]);
  t.throws(() => acpManifest({ ...packageJson, version: '1.0.0-rc.1' }), /takes no version/);
  t.match(acpIcon, /width="16" height="16" viewBox="0 0 16 16"/);
  t.strictSame(
    [...acpIcon.matchAll(/(?:fill|stroke)="([^"]*)"/g)].map(([, colour]) => colour),
    ['none', 'currentColor', 'currentColor'],
  );
  t.end();
});
