/** The registry of agents: odd entries of a list, its renewal, the stored list, and our own entry. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
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
    entry('terminal', npx({ env: { 'A\u001b[2J': 'x' } })),
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

/** Runs the command of the renewal. */
const renew = (source: string, target: string): Promise<{ code: number; stdout: string; stderr: string }> =>
  new Promise((resolve) => {
    const args = [
      '--disable-warning=ExperimentalWarning',
      '--conditions=development',
      join(root, 'scripts/agent-registry.ts'),
      source,
      target,
    ];
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });

const registry = JSON.stringify({ version: '1.0.0', agents: [entry('first'), entry('Upper')] });
/** Bodies of a hostile or broken server, with the words of the refusal. */
const answers: Readonly<Record<string, readonly [answer: (response: ServerResponse) => void, problem: RegExp]>> = {
  huge: [(response) => response.end('['.repeat(4_194_305)), /longer than 4194304 bytes/],
  deep: [(response) => response.end('['.repeat(1_000_000)), /JSON/],
  text: [(response) => response.end('\u001b[2J<html>'), /it is not JSON\./],
  schema: [(response) => response.end('{"agents":{}}'), /not a registry of agents/],
  empty: [(response) => response.end('{"agents":[]}'), /no usable entry/],
  useless: [(response) => response.end(JSON.stringify({ agents: [entry('Upper'), 7] })), /no usable entry/],
  gone: [(response) => response.writeHead(404).end(registry), /HTTP 404/],
  elsewhere: [(response) => response.writeHead(302, { location: '/good' }).end(), /redirect/],
  cut: [
    (response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('{');
      response.once('drain', () => {}).socket?.end();
    },
    /cannot be used/,
  ],
};

t.test('npm run agents:registry writes the usable agents of a server, and names the others', async (t) => {
  const { url } = await served(t, (_, response) => response.end(registry));
  const target = join(t.testdir(), 'list.json');
  t.match(await renew(url, target), { code: 0, stdout: /^1 agents\./, stderr: /! left out Upper: id cannot be used/ });
  t.match(JSON.parse(readFileSync(target, 'utf8')), { date: /^\d{4}-\d\d-\d\d$/, agents: [{ id: 'first' }] });
  const file = join(t.testdir({ 'copy.json': registry }), 'copy.json');
  t.match(await renew(file, target), { code: 0 }, 'a file');
});

t.test('a hostile or broken registry leaves the list unchanged, with a reason', async (t) => {
  const { url } = await served(t, (path, response) => answers[path]?.[0](response));
  const target = join(t.testdir({ 'list.json': 'before' }), 'list.json');
  const refused = async (source: string, problem: RegExp) => {
    const { code, stdout, stderr } = await renew(source, target);
    t.match([code, stdout], [1, ''], source);
    t.match(stderr, /^The registry .+ cannot be used, and the list stays unchanged: .+\.\n$/, source);
    t.match(stderr, problem, source);
    t.notMatch(stderr, '\u001b', source);
    t.equal(readFileSync(target, 'utf8'), 'before', source);
  };
  for (const [path, [, problem]] of Object.entries(answers)) await refused(`${url}/${path}`, problem);
  await refused('http://127.0.0.1:1/', /fetch failed|ECONNREFUSED|bad port/);
  await refused(join(t.testdirName, 'none.json'), /ENOENT/);
  writeFileSync(join(t.testdirName, 'long.json'), 'x'.repeat(4_194_305));
  await refused(join(t.testdirName, 'long.json'), /longer than/);
});

/** A server that answers each path. */
async function served(t: Test, answer: (path: string, response: ServerResponse) => void) {
  const server = createServer((request, response) => answer((request.url ?? '').slice(1), response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

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
