/** The Hub with the real agent server: handshake, scale, servers of others, taken ports, notifications, secrets. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import t from 'tap';
import { catalogue } from '../../machines/index.ts';
import { AppServerClient, type HubClient, type ReceivedEvent } from '../../src/client/index.ts';
import { type LaunchDocument, proofPaths } from '../../src/protocol/index.ts';
import { agentServerFixture, eventually, isAlive, makeWorkspace, startTestHub } from '../hub/harness.ts';
import {
  agentServersUnder,
  answerOf,
  type BuiltHub,
  command,
  followEvents,
  makePlace,
  oratorio,
  oratorioJson,
  type Place,
  processesUnder,
  runningHub,
  say,
  startHub,
  stateOf,
  type Teardown,
} from './harness.ts';

const webSocketOf = ({ endpoints }: { endpoints: Record<string, string> }) => endpoints['appServerWebSocket'] ?? '';
const portOf = (url: string) => Number(new URL(url).port);

/** Connects, talks, and gives the server's name; throws when anything of it does not work. */
async function converse(url: string, workspacePath: string) {
  const client = await AppServerClient.connect(url);
  try {
    const answer = await answerOf(await say(client, workspacePath, 'echo it works'));
    if (!answer.includes('it works')) throw new Error(`answered: ${answer}`);
    return client.server.serverInfo;
  } finally {
    client.close();
  }
}

/** A Hub with one workspace, for the tests that start and end nothing else. The last of them kills the Hub. */
const shared = makePlace(t);
const site = shared.workspace('site');
const sharedHub = await startHub(shared);

t.test('100 concurrent ensures through the SDK return one process and one record', async (t) => {
  const link = join(shared.root, 'link');
  symlinkSync(site, link);
  const records = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      sharedHub.client.ensure({ workspacePath: [site, link, `${site}/.`][index % 3] ?? site }),
    ),
  );
  t.same([...new Set(records.map(({ pid, state }) => `${state} ${pid}`))], [`running ${records[0]?.pid}`]);
  t.same(agentServersUnder(shared.root), [{ pid: records[0]?.pid, workspace: site }]);
});

t.test('ensure returns an endpoint for the SDK and for a bare WebSocket (specification §4.2 rule 2)', async (t) => {
  const record = await sharedHub.client.ensure({ workspacePath: site });
  t.match(record, {
    state: 'running',
    phase: 'running',
    startedByHub: true,
    adopted: false,
    serviceStatus: { appServerWebSocket: { state: 'running', url: webSocketOf(record), reason: null } },
  });
  const { name, version } = await converse(webSocketOf(record), site);
  t.ok(name);
  t.equal(version, record.serverVersion);

  const socket = new WebSocket(webSocketOf(record));
  await once(socket, 'open');
  const answers: { id: number; result?: { serverInfo: object }; error?: { code: number } }[] = [];
  socket.addEventListener('message', ({ data }) => answers.push(JSON.parse(data)));
  const request = (id: number, method: string, params: object) =>
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  request(1, 'thread/list', {});
  request(2, 'initialize', { clientInfo: { name: 'bare', version: '1' } });
  request(3, 'initialize', { clientInfo: { name: 'bare', version: '1' } });
  await eventually(() => answers.length === 3 || undefined, 'three answers');
  t.match(answers, [
    { id: 1, error: { code: -32_002 } },
    { id: 2, result: { serverInfo: { name, version } } },
    { id: 3, error: { code: -32_003 } },
  ]);
  socket.close();
});

t.test('an installation path with characters that a URL escapes works', async (t) => {
  const place = makePlace(t);
  const installed = join(place.root, 'söme où 100% else #1');
  for (const part of ['bin', 'dist', 'package.json']) {
    cpSync(join(dirname(command), '..', part), join(installed, part), { recursive: true });
  }
  symlinkSync(join(dirname(command), '..', 'node_modules'), join(installed, 'node_modules'));
  const elsewhere = { ...place, command: join(installed, 'bin', 'oratorio.js') };
  t.match(await oratorioJson(elsewhere, 'ensure', place.workspace('my site')), { state: 'running' });
  const hub = runningHub(place);
  t.match(await (await fetch(hub.lock.apiBaseUrl)).text(), '<title>');
  t.equal((await hub.call('GET', '/v1/machines')).body.length, Object.keys(catalogue).length);
  await hub.shutdown();
});

/** Runs `oratorio app-server` as a person would, until it serves. */
async function startByHand(place: Place, workspace: string, ...more: string[]) {
  const child = spawn(process.execPath, [command, 'app-server', '--workspace', workspace, ...more], {
    cwd: place.root,
    env: place.env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [, url] = await eventually(() => /Serving \S+ at (\S+)/.exec(output) ?? undefined, 'it serves');
  return { child, pid: child.pid ?? 0, url: url ?? '' };
}

t.test(
  'an agent server started by another program is used, and neither stopped nor restarted (specification §3, design §5)',
  async (t) => {
    const place = makePlace(t);
    const workspace = place.workspace('site');
    const unmanaged = await startByHand(place, workspace);
    const hub = await startHub(place);
    const events = await followEvents(t, hub.client);
    const inspected = await hub.client.byWorkspace(workspace);
    t.match(inspected, { state: 'running', pid: unmanaged.pid, startedByHub: false });

    const record = await hub.client.ensure({ workspacePath: workspace });
    t.match(record, { state: 'running', pid: unmanaged.pid, startedByHub: false, adopted: false });
    t.match(record.serviceStatus, { appServerWebSocket: { state: 'external', url: webSocketOf(record) } });
    t.match((await events.wait('appserver.running')).data, { pid: unmanaged.pid, external: true });
    await converse(webSocketOf(record), workspace);

    t.match(await hub.call('POST', '/v1/appservers/restart', { workspacePath: workspace }), {
      status: 409,
      body: { error: { code: 'workspaceLocked', details: { workspacePath: workspace, pid: unmanaged.pid } } },
    });
    await hub.client.stop(workspace);
    t.ok(isAlive(unmanaged.pid), 'the server is alive after stop');
    await converse(webSocketOf(record), workspace);

    await hub.client.ensure({ workspacePath: workspace });
    const ended = once(unmanaged.child, 'exit');
    const stopped = await oratorio(place, ['stop', workspace, '--json']);
    t.match(JSON.parse(stopped.stdout), { state: 'stopped', pid: null }, 'regression: the user ends it by name');
    t.strictSame(await ended, [0, null]);
    const listed = await oratorio(place, ['list', '--json']);
    t.match(JSON.parse(listed.stdout), [{ workspacePath: workspace, state: 'stopped' }]);
    const own = await eventually(async () => {
      const now = await hub.client.ensure({ workspacePath: workspace });
      return now.startedByHub ? now : undefined;
    }, 'the Hub starts its own server after the end of the unmanaged one');
    t.match(own, { state: 'running' });

    await t.test('the end of the Hub leaves an unmanaged agent server running', async (t) => {
      const other = place.workspace('other');
      const left = await startByHand(place, other);
      t.match(await hub.client.ensure({ workspacePath: other }), { pid: left.pid, startedByHub: false });
      await hub.shutdown();
      t.ok(isAlive(left.pid));
      left.child.kill('SIGTERM');
      await once(left.child, 'exit');
    });
  },
);

async function occupy(t: Teardown, port: number): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  t.teardown(() => server.close());
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => resolve(server));
  });
}

const isWebSocketPort = ({ kind, data }: ReceivedEvent) =>
  kind === 'port.allocated' && data['service'] === 'appServerWebSocket';

/** Restarts until this test was faster than the new agent server in binding the port it was given. */
async function takePortBeforeBind(t: Teardown, hub: BuiltHub, workspacePath: string) {
  const events = await followEvents(t, hub.client);
  for (let attempt = 0; attempt < 50; attempt++) {
    const known = events.seen.length;
    const allocated = () => events.seen.slice(known).find(isWebSocketPort);
    const restarting = hub.client.restart({ workspacePath });
    const port = Number((await eventually(allocated, 'a port was allocated')).data['port']);
    const occupied = await occupy(t, port);
    const record = await restarting;
    if (!occupied) continue;
    const real = portOf(webSocketOf(record));
    await eventually(
      () => events.seen.find((event) => isWebSocketPort(event) && event.data['port'] === real),
      'the new port is published',
    );
    return { port, record, ports: events.seen.slice(known).filter(isWebSocketPort) };
  }
  throw new Error('the agent server was always faster');
}

t.test('a port taken between its allocation and the bind is replaced, in the record and in events', async (t) => {
  await sharedHub.client.ensure({ workspacePath: site });
  const { port, record, ports } = await takePortBeforeBind(t, sharedHub, site);
  t.equal(record.state, 'running');
  t.not(portOf(webSocketOf(record)), port);
  await converse(webSocketOf(record), site);
  t.same(
    ports.map(({ data }) => data['port']),
    [port, portOf(webSocketOf(record))],
  );
  t.same(record.serviceStatus['appServerWebSocket'], { state: 'running', url: webSocketOf(record), reason: null });

  const unmanaged = await startByHand(shared, shared.workspace('other'), '--port', String(port));
  t.not(portOf(unmanaged.url), port, 'an unmanaged server takes another port too');
  unmanaged.child.kill('SIGTERM');
  await once(unmanaged.child, 'exit');
});

t.test('the end of a turn is published as a notification of the Hub (specification §2.5)', async (t) => {
  const events = await followEvents(t, sharedHub.client);
  const record = await sharedHub.client.ensure({ workspacePath: site });
  await converse(webSocketOf(record), site);
  const { workspacePath, data } = await events.wait('notification.requested');
  t.equal(workspacePath, site);
  t.match(data, { workspacePath: site, kind: 'turnCompleted', severity: 'success', source: 'appserver' });

  await sharedHub.kill('SIGKILL');
  const next = await startHub(shared);
  const adopted = await next.client.ensure({ workspacePath: site });
  t.match(adopted, { adopted: true, pid: record.pid });
  const later = await followEvents(t, next.client);
  await converse(webSocketOf(adopted), site);
  t.match((await later.wait('notification.requested')).workspacePath, site, 'also in that of the next Hub');
  await next.shutdown();
});

t.test('the token of an agent server permits notifications for its workspace only', async (t) => {
  const hub = await startTestHub(t, { agentServer: agentServerFixture('shows-launch-document.ts') });
  const workspace = makeWorkspace(t);
  await hub.ensure(workspace);
  const launch: LaunchDocument = JSON.parse(readFileSync(join(workspace, 'launch.json'), 'utf8'));
  t.notMatch(JSON.stringify(launch), hub.lock.token, 'the Hub token is not in the launch document');
  const headers = { authorization: `Bearer ${launch.notificationToken}` };

  const { body: api } = await hub.call('GET', '/v1/openapi.json');
  const open = ['/v1/status', proofPaths.hub, '/v1/notifications/request'];
  let refused = 0;
  for (const [path, methods] of Object.entries<Record<string, object>>(api.paths)) {
    for (const method of Object.keys(methods)) {
      if (open.includes(path)) continue;
      const body = method === 'post' ? { workspacePath: workspace } : undefined;
      const answer = await hub.call(method.toUpperCase(), path, body, headers);
      t.match(answer, { status: 401, body: { error: { code: 'unauthorized' } } }, `${method} ${path}`);
      refused += 1;
    }
  }
  t.ok(refused >= 10, `${refused} routes`);
  t.equal((await hub.record(workspace)).state, 'running');

  const events = await hub.events();
  const notify = (extra: Record<string, string>) =>
    hub.call('POST', '/v1/notifications/request', { title: 'x', workspacePath: '/of/somebody/else' }, extra);
  t.match(await notify(headers), { status: 200, body: { accepted: true } });
  t.equal((await events.wait('notification.requested')).workspacePath, workspace, 'whatever workspace it names');
  const forged = launch.notificationToken.replace(/.{4}$/, 'AAAA');
  t.match(await notify({ authorization: `Bearer ${forged}` }), { status: 401 });
  await hub.shutdown();
});

async function readStream(t: Teardown, hub: BuiltHub, path: string) {
  const closing = new AbortController();
  t.teardown(() => closing.abort());
  const response = await fetch(hub.lock.apiBaseUrl + path, {
    headers: { authorization: `Bearer ${hub.lock.token}` },
    signal: closing.signal,
  });
  const stream = { text: '' };
  const read = async () => {
    for await (const chunk of response.body ?? []) stream.text += Buffer.from(chunk as Uint8Array).toString();
  };
  read().catch(() => undefined);
  return stream;
}

async function churn(client: HubClient, workspacePath: string): Promise<void> {
  await client.ensure({ workspacePath });
  const { pid, endpoints } = await client.restart({ workspacePath });
  await converse(webSocketOf({ endpoints }), workspacePath);
  process.kill(pid ?? 0, 'SIGKILL');
  await eventually(async () => {
    const now = await client.byWorkspace(workspacePath);
    return (now.state === 'running' && now.pid !== pid) || undefined;
  }, 'it is revived');
}

t.test('no secret is in logs, command lines, the state file or answers of the Hub (design §4)', async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('site', { Supervision: { BackoffBaseMs: 20 } });
  const hub = await startHub(place);
  const inspection = await readStream(t, hub, '/v1/inspect');
  await churn(hub.client, workspace);
  const record = await hub.client.ensure({ workspacePath: workspace });
  const secrets = {
    'Hub token': hub.lock.token,
    'WebSocket token': new URL(webSocketOf(record)).searchParams.get('token') ?? '',
    'adoption key': readFileSync(join(place.home, 'hub', 'adoption.key'), 'utf8').trim(),
    'adoption proof': JSON.parse(readFileSync(join(stateOf(workspace), 'appserver.json'), 'utf8')).adoptionProof,
    'notification token': `ntf.${Buffer.from(workspace).toString('base64url')}`,
  };
  for (const [name, secret] of Object.entries(secrets)) t.ok(secret.length > 20, `there is a ${name}`);

  const processes = processesUnder(place.root);
  t.equal(processes.length, 2);
  const logs = await eventually(() => {
    const texts = readdirSync(join(place.home, 'hub'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.name.endsWith('.log'))
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));
    return /serving[\s\S]*serving/.test(texts.join('')) ? texts : undefined;
  }, 'the logs report all starts');
  t.match(logs.join(''), /serving[\s\S]*serving/, 'the logs report all starts');
  await eventually(
    () => inspection.text.split('event: transition').length > 10 || undefined,
    'transitions are streamed',
  );
  const places: Record<string, string> = {
    'command lines': processes.map(({ argv }) => argv.join('\n')).join('\n'),
    environments: processes.map(({ environment }) => environment.join('\n')).join('\n'),
    logs: logs.join('\n'),
    'state file': readFileSync(join(place.home, 'hub', 'appservers.json'), 'utf8'),
    'inspection stream': inspection.text,
    page: await (await fetch(hub.lock.apiBaseUrl)).text(),
    list: (await oratorio(place, ['list'])).stdout,
    'hub status': JSON.stringify(await oratorioJson(place, 'hub', 'status')),
    'logs over HTTP': await hub.client.logs(workspace, { bytes: 1_000_000 }),
    metrics: String((await hub.call('GET', '/v1/metrics')).body),
    openapi: JSON.stringify((await hub.call('GET', '/v1/openapi.json')).body),
  };
  for (const [where, text] of Object.entries(places)) {
    t.ok(text.length > 20, `there is something in the ${where}`);
    for (const [name, secret] of Object.entries(secrets)) t.notOk(text.includes(secret), `no ${name} in the ${where}`);
  }
  await hub.shutdown();
});
