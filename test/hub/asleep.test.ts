/** Workspaces that sleep, and requests through each face that wake them. Real agent servers with the demo model. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import t from 'tap';
import { WebSocket } from 'ws';
import { AppServerClient } from '../../src/client/index.ts';
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { runInProcess } from '../cli/in-process.ts';
import { canBecomeOther, runAsOther } from '../other-user.ts';
import { eventually, makeWorkspace, quick, request, startTestHub, type TestHub } from './harness.ts';

const settings = { ...quick, Provider: 'demo', Api: { Enabled: true }, AgUi: { Enabled: true } };
// Longer than a request waits for a busy processor: a server must not fall asleep again before the request that woke it arrives.
const idle = { policy: { idleStopMs: 4_000 } };
const hub = await startTestHub(t, idle);

const asleep = (workspace: string, of: TestHub = hub) =>
  eventually(async () => {
    const record = await of.record(workspace);
    return record.phase === 'asleep' ? record : undefined;
  }, `${workspace} sleeps`);

const events = await hub.events();

/** Workspaces that sleep, and the addresses that their clients have. They are made together, because each takes its time to fall asleep. */
const sleepers = await Promise.all(
  Array.from({ length: 19 }, async () => {
    const workspace = makeWorkspace(t, settings);
    const { endpoints, page } = await hub.ensure(workspace);
    await asleep(workspace);
    const { api = '', agui = '', appServerWebSocket = '', dashboard = '' } = endpoints;
    return { workspace, api, agui, appServerWebSocket, dashboard, page: page ?? '' };
  }),
);
type Sleeper = (typeof sleepers)[number];
const { length: count } = sleepers;

/** The next one that nothing has woken. */
function sleeper(): Sleeper {
  const next = sleepers.pop();
  if (!next) throw new Error('all are awake');
  return next;
}

const messages = [{ role: 'user', content: 'say hello' }];
const chat = (api: string, more: object = {}) =>
  fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages, ...more }),
  });

const wasWoken = async (workspace: string) => (await hub.record(workspace)).incarnation === 2;

t.test('a workspace without work is asleep in records, list, status, metrics and events', async (t) => {
  const { workspace } = sleeper();
  t.match((await events.wait('appserver.exited')).data, { stopped: true, reason: 'idle', exitCode: 0 });
  t.match(await hub.record(workspace), {
    ...{ state: 'stopped', phase: 'asleep', pid: null, endpoints: {}, incident: null, problems: [] },
  });
  const listed: AppServerRecord[] = (await hub.call('GET', '/v1/appservers')).body;
  t.match(
    listed.find(({ canonicalWorkspacePath }) => canonicalWorkspacePath === workspace),
    { phase: 'asleep' },
  );
  t.match((await hub.call('GET', '/v1/status')).body, { asleep: count });
  t.match((await hub.call('GET', '/v1/metrics')).body, /state="asleep"[^\n]*\} 1/);
  t.match((await runInProcess(hub.home, 'list')).text, /asleep/);
  t.match((await runInProcess(hub.home, 'inspect', workspace)).text, /asleep/);
  t.match(await hub.ensure(workspace, { startIfMissing: false }), { phase: 'asleep' }, 'looking wakes nothing');
  t.match(await hub.record(workspace), { phase: 'asleep', incarnation: 1 });
});

t.test('each face wakes a workspace at the address that its clients have', async (t) => {
  const page = { ...hub.lock, token: pageToken(hub.home) };
  const faces: Record<string, (at: Sleeper) => Promise<void>> = {
    async 'chat API'({ api }) {
      const answer = await chat(api);
      t.equal(answer.status, 200);
      t.match(await answer.json(), { choices: [{ message: { role: 'assistant' }, finish_reason: 'stop' }] });
    },
    async 'streamed chat'({ api }) {
      const answer = await chat(api, { stream: true });
      t.match(await answer.text(), /data: \[DONE\]/);
    },
    async 'AG-UI'({ agui }) {
      const input = { threadId: 't', runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} };
      const answer = await fetch(agui, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
        body: JSON.stringify({ ...input, messages: [{ id: '1', role: 'user', content: 'say hello' }] }),
      });
      t.match(await answer.text(), /RUN_FINISHED/);
    },
    async MCP({ api }) {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
      const answer = await fetch(`${api}/v1/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
      });
      t.match(await answer.text(), /"serverInfo"/);
    },
    async 'JSON-RPC'({ appServerWebSocket }) {
      const client = await AppServerClient.connect(appServerWebSocket);
      t.match(await client.request('thread/start', {}), { thread: { id: /^thread_/ } });
      client.close();
    },
    async 'page of the Hub'({ page: path }) {
      const answer = await request(page, 'GET', `${path}dashboard/api/summary`);
      t.not(answer.status, 503);
    },
    async 'WebSocket of the page'({ page: path }) {
      const url = `${hub.lock.apiBaseUrl.replace('http', 'ws')}${path}dashboard/ws`;
      const socket = new WebSocket(url, ['oratorio', page.token]);
      await once(socket, 'open');
      socket.terminate();
    },
    async 'scoped token'({ page: path }) {
      const { body } = await hub.call('POST', '/v1/tokens', { name: 'lead', scopes: ['read'] });
      const read = { do: 'read', workspaceId: path.split('/')[2] };
      t.match(await request({ ...hub.lock, token: body.token }, 'POST', '/v1/delegated', read), {
        ...{ status: 200, body: { threads: [] } },
      });
    },
    async 'command line'({ workspace }) {
      const { code, text } = await runInProcess(hub.home, 'chat', 'say hello', '--workspace', workspace);
      t.equal(code, 0, text);
    },
    async ensure({ workspace, api }) {
      t.match(await hub.ensure(workspace), { state: 'running', endpoints: { api } });
    },
    async 'two half-open clients'({ api }) {
      const { port, hostname } = new URL(api);
      const answers = ['GET /v1/models', 'GET /v1/health'].map(async (line) => {
        const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
        socket.end(`${line} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nconnection: close\r\n\r\n`);
        let text = '';
        for await (const chunk of socket.setEncoding('utf8')) text += chunk;
        return text;
      });
      for (const text of await Promise.all(answers)) t.match(text, /^HTTP\/1\.1 200/);
    },
    async '32 chats at once'({ api }) {
      const answers = await Promise.all(Array.from({ length: 32 }, () => chat(api)));
      t.same([...new Set(answers.map(({ status }) => status))], [200]);
      await Promise.all(answers.map((answer) => answer.text()));
    },
  };
  for (const [name, wake] of Object.entries(faces)) {
    const place = sleeper();
    await wake(place);
    t.ok(await wasWoken(place.workspace), `${name}: the server was started once`);
  }
});

t.test('an address stays over many sleeps', async (t) => {
  const { workspace, api } = sleeper();
  for (const round of [2, 3]) {
    t.equal((await chat(api)).status, 200);
    t.equal((await hub.record(workspace)).incarnation, round);
    await asleep(workspace);
  }
});

t.test('a client that is connected keeps a workspace awake', async (t) => {
  const workspace = makeWorkspace(t, settings);
  const { endpoints } = await hub.ensure(workspace);
  const other = makeWorkspace(t, settings);
  await hub.ensure(other);
  const client = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '');
  await asleep(other);
  t.match(await hub.record(workspace), { state: 'running' });
  client.close();
  await asleep(workspace);
});

t.test('a workspace that cannot be started answers the waiting request with the reason', async (t) => {
  const { workspace, api } = sleeper();
  writeFileSync(`${workspace}/.oratorio/config.json`, '{');
  const answer = await chat(api);
  t.equal(answer.status, 503);
  t.match(await answer.json(), { error: { code: 'workspaceUnavailable', message: /has not started: .*config\.json/ } });
  t.match(await hub.record(workspace), { state: 'exited' });
  await t.rejects(chat(api), 'its ports are free');
});

t.test(
  'a service that its settings no longer enable is refused with the reason when the workspace wakes',
  async (t) => {
    const { workspace, api } = sleeper();
    writeFileSync(`${workspace}/.oratorio/config.json`, '{}');
    const answer = await chat(api);
    t.equal(answer.status, 503);
    t.match(await answer.json(), { error: { message: /no longer serves this address/ } });
    t.match(await hub.ensure(workspace), { state: 'running', incarnation: 2, endpoints: { api: undefined } });
  },
);

t.test('a stopped workspace does not sleep: its ports are free, and no request starts it', async (t) => {
  const { workspace, api } = sleeper();
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
  t.match(await hub.record(workspace), { state: 'stopped', phase: 'stopped' });
  await t.rejects(chat(api));
});

t.test('a connection that says nothing does not wake a workspace', async (t) => {
  const { workspace, api } = sleeper();
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(api).port) });
  await once(socket, 'connect');
  socket.end();
  await once(socket.resume(), 'close');
  t.match(await hub.record(workspace), { phase: 'asleep', incarnation: 1 });
});

const otherProgram = `
const socket = require('node:net').connect(Number(process.argv[1]), '127.0.0.1');
socket.write('GET /v1/models HTTP/1.1\\r\\nhost: 127.0.0.1\\r\\n\\r\\n');
socket.on('error', () => {}).pipe(process.stdout);
`;

if (canBecomeOther) {
  t.test('a connection of another user neither wakes a workspace nor reaches it', async (t) => {
    const { workspace, api } = sleeper();
    const child = runAsOther(otherProgram, [new URL(api).port]);
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    await once(child, 'close');
    t.equal(text, '');
    t.match(await hub.record(workspace), { phase: 'asleep', incarnation: 1 });
  });
}
