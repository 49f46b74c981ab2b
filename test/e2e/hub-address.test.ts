/** The built command line when `hub.lock` of a running Hub is removed or damaged: every command finds the Hub. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { readIdentity } from '../../src/supervise/index.ts';
import { unusedPort } from '../ports.ts';
import { programEnvironment } from '../programs.ts';

const command = fileURLToPath(new URL('../../bin/oratorio.js', import.meta.url));
const directory = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-e2e-')));
const home = join(directory, 'state');
const lockFile = join(home, 'hub', 'hub.lock');
const workspace = join(directory, 'site');

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(...argv: string[]): ChildProcess {
  const env = { ...programEnvironment, HOME: directory, ORATORIO_HOME: home };
  return spawn(process.execPath, [command, ...argv], { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function oratorio(...argv: string[]): Promise<Ended> {
  const child = start(...argv);
  const exit = once(child, 'close');
  const read = (stream: NodeJS.ReadableStream | null) => (stream ? text(stream) : Promise.resolve(''));
  const [stdout, stderr] = await Promise.all([read(child.stdout), read(child.stderr)]);
  return { code: (await exit)[0], stdout, stderr };
}

const published = () =>
  JSON.parse(readFileSync(lockFile, 'utf8')) as { pid: number; apiBaseUrl: string; token: string };

t.teardown(async () => {
  await oratorio('hub', 'stop');
  rmSync(directory, { recursive: true, force: true });
});

t.test('regression: edge 1 commands find a Hub whose hub.lock was removed or damaged, and stop it', async (t) => {
  mkdirSync(workspace);
  t.match(await oratorio('init', workspace), { code: 0 });
  const first = await oratorio('ensure', workspace, '--json');
  t.match(first, { code: 0 }, first.stderr);
  const { pid } = JSON.parse(first.stdout);
  const hub = published().pid;

  rmSync(lockFile);
  t.match(await oratorio('hub', 'status'), { code: 0, stdout: new RegExp(String(hub)) });
  writeFileSync(lockFile, '{"pid":');
  t.match(JSON.parse((await oratorio('ensure', workspace, '--json')).stdout), { pid }, 'the same agent server');
  rmSync(lockFile);
  t.match(await oratorio('hub'), { code: 0, stdout: new RegExp(`Another Hub serves this user.*process ${hub}`) });
  rmSync(lockFile);
  t.match(await oratorio('hub', 'stop'), { code: 0, stdout: new RegExp(`process ${hub}\\) has stopped`) });
  t.equal(readIdentity(hub), 'gone');
  t.match(await oratorio('hub', 'stop'), { code: 0, stdout: /No Hub is running/ });
});

t.test('regression: edge 22 the built Hub redacts the key of a sidecar in its log file', async (t) => {
  t.match(await oratorio('hub', 'status'), { code: 3 });
  const serving = start('hub');
  await once(serving.stdout as NodeJS.ReadableStream, 'data');
  const { apiBaseUrl, token } = published();
  const port = await unusedPort();
  const apiKey = 'sk-e2e-never-on-disk';
  const binaryPath = join(directory, 'proxy.mjs');
  const configPath = join(directory, 'proxy.json');
  const fixture = fileURLToPath(new URL('../fixtures/sidecars/stand-in.mjs', import.meta.url));
  writeFileSync(binaryPath, `#!${process.execPath}\nawait import(${JSON.stringify(fixture)});\n`);
  chmodSync(binaryPath, 0o755);
  writeFileSync(configPath, JSON.stringify({ port, key: apiKey }));
  const answer = await fetch(`${apiBaseUrl}/v1/appservers/ensure`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({
      workspacePath: workspace,
      apiProxy: { binaryPath, configPath, endpoint: `http://127.0.0.1:${port}`, apiKey },
    }),
  });
  t.match(await answer.json(), { state: 'running', serviceStatus: { apiProxy: { state: 'running' } } });
  t.match(await oratorio('hub', 'stop'), { code: 0 });
  if (serving.exitCode === null) await once(serving, 'exit');
  const logs = join(home, 'hub', 'logs');
  const written = readdirSync(logs, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.parentPath.endsWith('sidecar'))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('');
  t.match(written, /line 0: key \[redacted\]/);
  t.notOk(written.includes(apiKey));
});
