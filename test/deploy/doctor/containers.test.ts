import { mkdirSync, readdirSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { WebSocketServer } from 'ws';
import { DeployError } from '../../../src/deploy/errors.ts';
import { ask, askFor, canaries, checkoutPath, FakeEngine, makeStack, originConfig, put, scratch } from './harness.ts';

const stack = (t: Test, options: Parameters<typeof makeStack>[1] = {}) => {
  const layout = makeStack(t, options);
  return { layout, engine: new FakeEngine(layout) };
};

t.test('without an engine everything that needs one is skipped, and one check says why', async (t) => {
  const layout = makeStack(t, { hasIngress: true });
  const engine = new DeployError('engineUnreachable', 'The Docker engine is not running.', 'Start it.');
  const results = await ask(t, layout, { engine, timeoutMs: 20_000, gateway: { httpPort: 1, httpsPort: 1 } });
  t.match(results.get('runtime.engine'), {
    status: 'fail',
    saw: 'The Docker engine is not running.',
    hint: 'Start it.',
  });
  for (const id of [
    'runtime.compose',
    'compose.config',
    'container.agent',
    'ports.loopback',
    'mount.workspace',
    'agent.reachable',
    'ingress.secret',
  ])
    t.match(results.get(id), { status: 'skip', hint: null }, id);
});

t.test('the versions of engine, composition tool and git are reported', async (t) => {
  const { layout } = stack(t);
  const old = new FakeEngine(layout, {
    compose: { version: '2.40.3' },
    runtime: { kind: 'podman', version: '4.3.1', isRootless: false },
  });
  t.match(await askFor(t, 'runtime.engine', layout, { engine: old }), { status: 'warn', saw: 'podman 4.3.1.' });
  t.match(await askFor(t, 'runtime.compose', layout, { engine: old }), {
    status: 'ok',
    saw: 'Compose 2.40.3.',
  });
  const rootless = new FakeEngine(layout, { runtime: { kind: 'docker', version: '28.0.0', isRootless: true } });
  t.match(await askFor(t, 'runtime.engine', layout, { engine: rootless }), {
    status: 'ok',
    saw: 'docker 28.0.0, rootless.',
  });
  const git = async () => ({ exitCode: 0, stdout: 'git version 2.25.1', stderr: '' });
  t.match(await askFor(t, 'runtime.git', layout, { engine: old, git }), { status: 'warn', saw: 'git 2.25.1.' });
  const missing = new DeployError('gitMissing', 'git is not installed.', 'Install it.');
  t.match(await askFor(t, 'runtime.git', layout, { engine: old, git: missing }), {
    status: 'fail',
    hint: 'Install it.',
  });
});

t.test('a container is checked for state, health, restarts, memory and image', async (t) => {
  const { layout, engine } = stack(t);
  const cases = [
    [{}, 'ok', /Running, healthy, image oratorio/],
    [{ health: null }, 'ok', /Running, image/],
    [{ health: 'starting' }, 'warn', /starting/],
    [{ health: 'unhealthy' }, 'fail', /unhealthy/],
    [{ state: 'exited', exitCode: 137, isOutOfMemory: true }, 'fail', /exited, out of memory/],
    [{ state: 'exited', exitCode: 1 }, 'fail', /exited, exit code 1/],
    [{ state: 'restarting' }, 'fail', /It is restarting/],
    [{ restarts: 5 }, 'warn', /started again 5 times/],
    [{ isOutOfMemory: true }, 'warn', /ran out of memory/],
    [{ image: 'oratorio:old' }, 'warn', /runs oratorio:old, and \.env says oratorio/],
    [{ imageId: 'sha256:2222' }, 'warn', /another image called oratorio/],
    [{ health: 'unhealthy', restarts: 9 }, 'fail', /unhealthy; it was started again 9 times/],
  ] as const;
  for (const [own, status, saw] of cases) {
    engine.containers['backend'] = own;
    t.match(await askFor(t, 'container.backend', layout, { engine }), { status, saw }, JSON.stringify(own));
  }
  delete engine.containers['backend'];
  t.match(await askFor(t, 'container.backend', layout, { engine }), { status: 'fail', saw: 'There is no container.' });
});

t.test('an invalid composition fails with the message of Compose, without secrets', async (t) => {
  const { layout, engine } = stack(t);
  t.match(await askFor(t, 'compose.config', layout, { engine }), { status: 'ok' });
  t.ok(engine.commands.includes('compose config --quiet'), 'quietly: otherwise it prints secrets');
  engine.answers.set('compose config', {
    exitCode: 1,
    stderr: `warning\nservices.agent must be a mapping, not ${canaries.ORATORIO_AGENT_TOKEN}\u001b[31m`,
  });
  t.match(await askFor(t, 'compose.config', layout, { engine }), {
    status: 'fail',
    saw: /must be a mapping, not \[redacted\]$/,
  });
});

t.test('a port of the stack that others reach fails', async (t) => {
  const { layout, engine } = stack(t);
  t.match(await askFor(t, 'ports.loopback', layout, { engine }), {
    status: 'ok',
    saw: '19100, 18080, 5087: on the loopback only.',
  });
  for (const HostIp of ['0.0.0.0', '::', '', '192.168.1.4']) {
    engine.containers['backend'] = { ports: { '5087/tcp': [{ HostIp, HostPort: '5087' }] } };
    t.match(
      await askFor(t, 'ports.loopback', layout, { engine }),
      { status: 'fail', saw: /Port 5087 of backend is open/ },
      HostIp,
    );
  }
  engine.containers['backend'] = { ports: { '5087/tcp': [{ HostIp: '::1', HostPort: '5087' }] } };
  t.match(
    await askFor(t, 'ports.loopback', layout, { engine: engine.withGateway() }),
    { status: 'ok' },
    'the gateway is meant to be open',
  );
});

t.test('a file that one container writes into the workspace is read by the other and removed', async (t) => {
  const { layout, engine } = stack(t);
  t.match(await askFor(t, 'mount.workspace', layout, { engine }), { status: 'ok' });
  t.strictSame(readdirSync(layout.workspace).sort(), ['.oratorio', 'acme__shop']);
  const elsewhere = scratch(t);
  mkdirSync(join(elsewhere, 'other'));
  engine.containers['agent'] = { workspace: join(elsewhere, 'other') };
  t.match(await askFor(t, 'mount.workspace', layout, { engine }), {
    status: 'fail',
    saw: /does not read the files of the backend/,
  });
  t.strictSame(readdirSync(layout.workspace).sort(), ['.oratorio', 'acme__shop']);
  engine.containers['backend'] = { workspace: join(elsewhere, 'none') };
  t.match(await askFor(t, 'mount.workspace', layout, { engine }), { status: 'fail', saw: /cannot write/ });
  engine.containers['backend'] = { state: 'exited' };
  t.match(await askFor(t, 'mount.workspace', layout, { engine }), {
    status: 'skip',
    saw: 'The container of backend does not run.',
  });
});

t.test('a repository is the same directory in both containers', async (t) => {
  const { layout, engine } = stack(t);
  const id = 'repo.acme/shop.mount';
  t.match(await askFor(t, id, layout, { engine }), { status: 'ok', saw: `Both containers see it at ${checkoutPath}.` });
  const other = scratch(t);
  mkdirSync(join(other, 'workspace', 'acme__shop'), { recursive: true });
  engine.containers['agent'] = { workspace: join(other, 'workspace') };
  t.match(await askFor(t, id, layout, { engine }), { status: 'fail', saw: /another directory in each container/ });
  engine.containers['agent'] = { workspace: other };
  t.match(await askFor(t, id, layout, { engine }), {
    status: 'fail',
    saw: `The agent server does not see ${checkoutPath}.`,
  });
});

t.test('a changed checkout is reported, and git runs only in the container', async (t) => {
  const { layout, engine } = stack(t);
  const id = 'repo.acme/shop.clean';
  t.match(await askFor(t, id, layout, { engine }), {
    status: 'fail',
    saw: /git cannot read the checkout in the container/,
  });
  const git = (stdout: string) => engine.answers.set('exec test-backend-1 git', { stdout });
  git('');
  t.match(await askFor(t, id, layout, { engine }), { status: 'ok' });
  git('?? .oratorio/\n');
  t.match(await askFor(t, id, layout, { engine }), { status: 'ok' }, 'our own directory does not count');
  git(' M a.ts\n?? b.ts\n');
  t.match(await askFor(t, id, layout, { engine }), { status: 'warn', saw: /^2 files/ });
  const command = engine.commands.find((each) => each.startsWith('exec test-backend-1 git')) ?? '';
  t.match(command, /core\.fsmonitor=false/, 'the checkout does not say what git runs');
});

t.test('route and checkout of a repository', async (t) => {
  const { layout, engine } = stack(t);
  const checkout = () => askFor(t, 'repo.acme/shop.checkout', layout, { engine });
  t.match(await checkout(), { status: 'ok' });
  const config = (path: string | null): void => {
    const routes = path === null ? [] : [{ Project: 'acme/shop', WorkspacePath: path }];
    const GitHub = { AppId: 1, PrivateKeyPath: '/secrets/github-app.pem', Repositories: ['acme/shop'] };
    put(
      layout.config,
      JSON.stringify({ Oratorio: { GitHub, AgentServer: { RepositoryWorkspaceRoutes: routes } } }),
      0o640,
    );
  };
  config(null);
  t.match(await checkout(), { status: 'fail', saw: /no route/, hint: 'oratorio server add-repo github:acme/shop' });
  for (const path of ['/srv/shop', '/workspace/../etc', '/workspace']) {
    config(path);
    t.match(await checkout(), { status: 'fail', saw: /is not below \/workspace/ }, path);
  }
  config('/workspace/none');
  t.match(await checkout(), { status: 'fail', saw: /does not exist/ });
  mkdirSync(join(layout.workspace, 'empty'));
  config('/workspace/empty');
  t.match(await checkout(), { status: 'fail', saw: /is not a git repository/ });
});

t.test('the remote of a checkout is that of the repository and carries no credentials', async (t) => {
  const { layout, engine } = stack(t);
  const file = join(layout.workspace, 'acme__shop', '.git', 'config');
  const cases = [
    ['https://github.com/acme/shop.git', 'ok', /acme\/shop at github\.com/],
    ['https://github.com/Acme/Shop', 'ok', /github\.com/],
    ['git@github.com:acme/shop.git', 'ok', /github\.com/],
    ['ssh://git@github.com:22/acme/shop.git', 'ok', /github\.com/],
    ['git@work:acme/shop.git', 'warn', /origin is at work, not at github\.com/],
    ['https://github.com/acme/other.git', 'fail', /origin is acme\/other/],
    ['https://x-access-token:ghs_canarycanary0123456789@github.com/acme/shop.git', 'fail', /carries credentials/],
    ['https://canarytoken@github.com/acme/shop.git', 'fail', /carries credentials/],
    ['/srv/git/shop.git', 'warn', /a directory of this host/],
    ['../shop.git', 'fail', /not the address of a repository/],
  ] as const;
  for (const [url, status, saw] of cases) {
    put(file, originConfig(url), 0o644);
    const result = await askFor(t, 'repo.acme/shop.origin', layout, { engine });
    t.match(result, { status, saw }, url);
    t.notMatch(JSON.stringify(result), /canary/);
  }
  put(file, '[core]\n', 0o644);
  t.match(await askFor(t, 'repo.acme/shop.origin', layout, { engine }), {
    status: 'fail',
    saw: /no remote called origin/,
  });
});

/** Serves answers of a backend, on a port of its own. */
async function backend(t: Test, routes: Readonly<Record<string, { status?: number; body: unknown }>>): Promise<number> {
  const server = createServer((request, response) => {
    const route = routes[request.url ?? ''];
    const isKnown =
      request.url === '/health' || request.headers.authorization === `Bearer ${canaries.ORATORIO_SERVICE_TOKEN}`;
    response.writeHead(isKnown ? (route?.status ?? 200) : 401);
    response.end(JSON.stringify(isKnown ? route?.body : {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}
const at = (port: number) => ({ ports: { '5087/tcp': [{ HostIp: '127.0.0.1', HostPort: String(port) }] } });

t.test('the backend answers, and it is ours', async (t) => {
  const { layout, engine } = stack(t);
  const health = { service: 'oratorio', status: 'ok' };
  engine.containers['backend'] = at(await backend(t, { '/health': { body: health } }));
  t.match(await askFor(t, 'backend.health', layout, { engine }), { status: 'ok' });
  engine.containers['backend'] = at(await backend(t, { '/health': { status: 503, body: health } }));
  t.match(await askFor(t, 'backend.health', layout, { engine }), { status: 'fail', saw: /503.*database/ });
  engine.containers['backend'] = at(await backend(t, { '/health': { body: { service: 'other' } } }));
  t.match(await askFor(t, 'backend.health', layout, { engine }), { status: 'fail', saw: /Something else answers/ });
  engine.containers['backend'] = at(1);
  t.match(await askFor(t, 'backend.health', layout, { engine }), {
    status: 'fail',
    saw: /does not answer \(ECONNREFUSED\)/,
  });
});

t.test('problems that the backend reports of its settings and its work are findings', async (t) => {
  const { layout, engine } = stack(t);
  const settings = { writable: false, problem: null, warnings: [], restartNeededFor: [] };
  const status = { version: '0.1.0', deadJobs: 0, source: { state: 'ready' } };
  const report = async (more: object, about: object = {}): Promise<void> => {
    const routes = {
      '/api/v1/settings/diagnostics': { body: { ...settings, ...more } },
      '/api/v1/status': { body: { ...status, ...about } },
    };
    engine.containers['backend'] = at(await backend(t, routes));
  };
  const look = async (id: string) => askFor(t, id, layout, { engine });
  await report({});
  t.match(await look('backend.settings'), { status: 'ok' });
  t.match(await look('backend.work'), { status: 'ok', saw: /Version 0\.1\.0/ });
  await report({ writable: true });
  t.match(await look('backend.settings'), { status: 'fail', saw: 'Settings can be changed over the API' });
  await report({ problem: 'GitHub.AppId: must be a text', restartNeededFor: ['Server'] });
  t.match(await look('backend.settings'), {
    status: 'fail',
    saw: /settings in use differ from the file.*Server changed since the start/,
  });
  await report({ warnings: ['oratorio.config.json: unknown key GitHub.Repos'] }, { deadJobs: 2 });
  t.match(await look('backend.settings'), { status: 'warn', saw: /unknown key GitHub\.Repos/ });
  t.match(await look('backend.work'), { status: 'warn', saw: /gave up 2/ });
  await report({}, { source: { state: 'failed', message: 'no key' } });
  t.match(await look('backend.work'), { status: 'fail', saw: 'It cannot ask GitHub: no key' });
  put(layout.env, 'ORATORIO_SERVICE_TOKEN=somethingelse\nCOMPOSE_PROJECT_NAME=x\n', 0o600);
  t.match(await look('backend.work'), { status: 'fail', saw: /does not take the service token/ });
});

t.test('the agent server is asked from the container of the backend, with its address and token', async (t) => {
  const { layout, engine } = stack(t);
  const server = createServer((_, response) => void response.end('{}'));
  const sockets = new WebSocketServer({
    server,
    verifyClient: ({ req }: { req: IncomingMessage }) => req.url === `/ws?token=${canaries.ORATORIO_AGENT_TOKEN}`,
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const started = (url: string, token: string) => {
    engine.containers['backend'] = {
      env: { Oratorio__AgentServer__AppServerUrl: url, Oratorio__AgentServer__AppServerToken: token },
    };
  };
  const look = () => askFor(t, 'agent.reachable', layout, { engine });
  started(`ws://127.0.0.1:${port}/ws`, canaries.ORATORIO_AGENT_TOKEN);
  t.match(await look(), { status: 'ok' });
  started(`ws://127.0.0.1:${port}/ws`, 'wrong');
  t.match(await look(), { status: 'fail', saw: /does not let the backend in/ });
  started('ws://127.0.0.1:1/ws', canaries.ORATORIO_AGENT_TOKEN);
  t.match(await look(), { status: 'fail', saw: /does not reach it/ });
  engine.containers['backend'] = {};
  t.match(await look(), { status: 'fail', saw: /started without its address or token/ });
});

t.test('room on the disk', async (t) => {
  const { layout, engine } = stack(t);
  const free = (GiB: number) =>
    askFor(t, 'host.disk', layout, { engine, host: { freeBytes: async () => GiB * 1024 ** 3 } });
  t.match(await free(20), { status: 'ok', saw: '20.0 GiB are free.' });
  t.match(await free(3), { status: 'warn' });
  t.match(await free(0.1), { status: 'fail' });
  t.match(await askFor(t, 'host.disk', layout, { engine }), { saw: /GiB are free/ }, 'of this machine');
});
