/** The HTTP faces that run commands, without a configured key: this user is served, other users of the machine need the generated key. */
import { once } from 'node:events';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { generatedKey } from '../../src/appserver/secrets.ts';
import { generatedKeyFile, workspaceStateDirectory } from '../../src/config/index.ts';
import { admitOwnerOrKey, HttpError } from '../../src/http/index.ts';
import { parseTcpTable, peerUidOf } from '../../src/http/peer-owner.ts';
import type { RequestContext } from '../../src/http/types.ts';
import { canBecomeOther, firstOutput, otherUid, runAsOther } from '../other-user.ts';
import { unusedPort } from '../ports.ts';
import { launchDocument, makeWorkspace, startServer, temporaryDirectory } from './harness.ts';

interface Asked {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

const json = { 'content-type': 'application/json' };
const hello = JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'echo hi' }] });
const aguiRun = JSON.stringify({
  threadId: 't1',
  runId: 'r1',
  state: {},
  messages: [{ id: 'm1', role: 'user', content: 'echo hi' }],
  tools: [],
  context: [],
  forwardedProps: {},
});

/** Every request that runs something or shows something. */
const requestsTo = (api: string, agui: string): Asked[] => [
  { url: `${api}/v1/models` },
  { url: `${api}/v1/chat/completions`, method: 'POST', headers: json, body: hello },
  { url: `${api}/v1/nothing` },
  { url: agui, method: 'POST', headers: { ...json, accept: 'text/event-stream' }, body: aguiRun },
  { url: `${agui}/approvals` },
];

const askAll = `
  const asked = JSON.parse(process.argv[1]);
  (async () => {
    const answers = [];
    for (const { url, ...request } of asked) {
      const answer = await fetch(url, request);
      answers.push({ status: answer.status, body: await answer.text() });
    }
    process.stdout.write(JSON.stringify(answers));
  })();`;

/** Makes the same requests as another local user. */
async function askAsOther(asked: readonly Asked[]): Promise<Answer[]> {
  const child = runAsOther(askAll, [JSON.stringify(asked)]);
  if (!child.stdout) throw new Error('no output');
  return JSON.parse(await text(child.stdout));
}

async function askAsOwner(asked: readonly Asked[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const { url, ...request } of asked) {
    const answer = await fetch(url, request);
    answers.push({ status: answer.status, body: await answer.text() });
  }
  return answers;
}

const withKey = (asked: readonly Asked[], key: string): Asked[] =>
  asked.map((each) => ({ ...each, headers: { ...each.headers, authorization: `Bearer ${key}` } }));
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status);
const served = [200, 200, 404, 200, 200];
const refused = [401, 401, 401, 401, 401];

async function checkFaces(t: Test, api: string, agui: string, key: string): Promise<void> {
  const asked = requestsTo(api, agui);
  t.same(statuses(await askAsOwner(asked)), served, 'this user needs no key');
  t.same(statuses(await askAsOwner(withKey(asked, 'unused'))), served, 'nor the right one');
  t.same(statuses(await askAsOwner(withKey(asked, key))), served);
  t.same(statuses(await askAsOwner([{ url: `${api}/v1/health` }])), [200]);
  if (!canBecomeOther) return;
  // One process for all: each answer depends on its request only.
  const groups = [asked, withKey(asked, 'unused'), withKey(asked, key), [{ url: `${api}/v1/health` }]];
  const all = await askAsOther(groups.flat());
  const [answers = [], unused = [], keyed = [], health = []] = groups.map(({ length }) => all.splice(0, length));
  t.same(statuses(answers), refused, 'another user gets nothing');
  for (const { body } of answers) {
    t.match(body, /api\.key/, 'a refusal names the file of the key');
    t.notMatch(body, key);
  }
  t.match(JSON.parse(answers[0]?.body ?? ''), { error: { code: 'invalid_api_key', param: null } });
  t.same(statuses(unused), refused);
  t.same(statuses(keyed), served, 'with the key another user is served');
  t.same(statuses(health), [200], 'health is open');
}

t.test('regression: H4 without a configured key another local user gets 401, this user is served', async (t) => {
  const { server, path, home, log } = await startServer(t, undefined, {
    mode: 'gateway',
    config: { Api: { Enabled: true, Port: 0 }, AgUi: { Enabled: true, Port: 0 }, DashBoard: { Enabled: false } },
  });
  const { api = '', agui = '' } = server.endpoints;
  const { key, file } = server.generatedKey ?? { key: '', file: '' };
  t.equal(file, generatedKeyFile(home, path));
  t.equal(readFileSync(file, 'utf8').trim(), key);
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.equal(statSync(workspaceStateDirectory(home, path)).mode & 0o777, 0o700);
  await checkFaces(t, api, agui, key);
  t.notMatch(log.join(''), key, 'no log holds the key');
});

t.test(
  'regression: H4 services that share a port, and those of a managed server, are protected in the same way',
  async (t) => {
    const port = await unusedPort();
    const shared = await startServer(t, undefined, {
      mode: 'gateway',
      config: { Api: { Enabled: true, Port: port }, AgUi: { Enabled: true, Port: port }, DashBoard: { Port: port } },
    });
    await checkFaces(
      t,
      shared.server.endpoints.api ?? '',
      shared.server.endpoints.agui ?? '',
      shared.server.generatedKey?.key ?? '',
    );
    const { path, home } = makeWorkspace(t);
    const { startAppServer } = await import('../../src/appserver/index.ts');
    const { createLogger } = await import('../../src/log/index.ts');
    const plain = launchDocument(path, `${home}/hub`);
    const listener = { host: '127.0.0.1', port: 0 };
    const launch = { ...plain, services: { ...plain.services, api: listener, agui: { ...listener, path: '/ag-ui' } } };
    const managed = await startAppServer({
      workspacePath: path,
      env: { ORATORIO_HOME: home },
      logger: createLogger({ name: 'test', level: 'silent' }),
      launch,
    });
    t.teardown(() => managed.close());
    await checkFaces(t, managed.endpoints.api ?? '', managed.endpoints.agui ?? '', managed.generatedKey?.key ?? '');
  },
);

t.test('regression: H4 an open connection of another user changes nothing for this user', async (t) => {
  const { server } = await startServer(t, undefined, { mode: 'api', config: { Api: { Port: 0 } } });
  const { api = '' } = server.endpoints;
  if (canBecomeOther) {
    const holding = runAsOther(
      `const socket = require('node:net').connect(${new URL(api).port}, '127.0.0.1', () => {
         socket.write('GET /v1/models HTTP/1.1\\r\\nhost: 127.0.0.1\\r\\n\\r\\n');
       });
       socket.once('data', (data) => process.stdout.write(data));`,
      [],
    );
    t.teardown(() => holding.kill('SIGKILL'));
    t.match(await firstOutput(holding), /^HTTP\/1\.1 401 /);
  }
  t.same(statuses(await askAsOwner([{ url: `${api}/v1/models` }])), [200]);
});

/** Opens connections, each with one request without a key, and replaces each one that closes. Prints each status line once. */
const flood = `
  const seen = new Set();
  const open = () => {
    const socket = require('node:net').connect(Number(process.argv[1]), '127.0.0.1');
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const line = String(data).split('\\r')[0];
      if (!seen.has(line)) process.stdout.write(line + '\\n');
      seen.add(line);
      socket.destroy();
    });
    socket.on('close', () => setImmediate(open));
    socket.write('POST /v1/chat/completions HTTP/1.1\\r\\nhost: 127.0.0.1\\r\\ncontent-length: 0\\r\\n\\r\\n');
  };
  for (let count = 0; count < 100; count += 1) open();`;

t.test('regression: H4 this user is served during a flood of requests of another user, who gets 401', async (t) => {
  const { server } = await startServer(t, undefined, { mode: 'api', config: { Api: { Port: 0 } } });
  const { api = '' } = server.endpoints;
  const args = [new URL(api).port];
  const flooding = canBecomeOther ? runAsOther(flood, args) : undefined;
  t.teardown(() => flooding?.kill('SIGKILL'));
  if (flooding) t.match(await firstOutput(flooding), /^HTTP\/1\.1 401 /);
  const models = { url: `${api}/v1/models` };
  for (let times = 0; times < 10; times += 1) {
    t.same(statuses(await askAsOwner([{ ...models, headers: { connection: 'close' } }])), [200]);
  }
  flooding?.stdout?.on('data', (line) => t.match(String(line), /^HTTP\/1\.1 (401|503) /));
});

t.test('a request of this user is served after the client has ended its own direction', async (t) => {
  const { server } = await startServer(t, undefined, { mode: 'api', config: { Api: { Port: 0 } } });
  const port = Number(new URL(server.endpoints.api ?? '').port);
  const ask = async (head: string) => {
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    t.teardown(() => client.destroy());
    client.end(`${head}\r\nhost: 127.0.0.1\r\n\r\n`);
    return text(client);
  };
  t.match(await ask('GET /v1/models HTTP/1.1'), /^HTTP\/1\.1 200 /);
  t.match(await ask('GET /v1/nothing HTTP/1.1'), /^HTTP\/1\.1 404 /);
  t.match(await ask('OPTIONS /v1/nothing HTTP/1.1'), /^HTTP\/1\.1 405 /);
});

t.test('with Api.ApiKey no key is generated, and this user needs the configured key too', async (t) => {
  const { server } = await startServer(t, undefined, {
    mode: 'api',
    config: { Api: { Port: 0, ApiKey: 'configured-key' } },
  });
  t.equal(server.generatedKey, undefined);
  const models = [{ url: `${server.endpoints.api}/v1/models` }];
  t.same(statuses(await askAsOwner(models)), [401]);
  t.same(statuses(await askAsOwner(withKey(models, 'configured-key'))), [200]);
});

t.test('the generated key survives restarts, and a key file readable by others is replaced', (t) => {
  const home = temporaryDirectory(t);
  const first = generatedKey(home, '/work/site');
  t.ok(first.isNew);
  t.same(generatedKey(home, '/work/site'), { ...first, isNew: false });
  t.not(generatedKey(home, '/work/other').key, first.key, 'each workspace has its own');
  chmodSync(first.file, 0o644);
  const second = generatedKey(home, '/work/site');
  t.ok(second.isNew);
  t.not(second.key, first.key);
  t.equal(statSync(second.file).mode & 0o777, 0o600);
  writeFileSync(second.file, 'short\n');
  t.match(generatedKey(home, '/work/site').key, /^[\w-]{43}$/);
  t.end();
});

t.test('a request is admitted with this uid or with the generated key only', async (t) => {
  const access = { key: 'the-key', keyFile: '/f' };
  const refuse = (message: string) => new HttpError(401, 'unauthorized', message);
  const admit = async (
    peerUid: RequestContext['peerUid'],
    authorization?: string,
    key: string | undefined = access.key,
  ) => {
    const header = (name: string) => (name === 'authorization' ? authorization : undefined);
    try {
      await admitOwnerOrKey({ peerUid, header }, { ...access, key }, refuse);
      return 200;
    } catch (error) {
      return error instanceof HttpError ? error.status : error;
    }
  };
  const own = process.getuid?.();
  for (const peerUid of [own, Promise.resolve(own)]) {
    t.equal(await admit(peerUid), 200);
    t.equal(await admit(peerUid, 'Bearer wrong'), 200);
  }
  for (const peerUid of [otherUid, undefined, Promise.resolve(otherUid), Promise.resolve(undefined)]) {
    t.equal(await admit(peerUid, 'Bearer the-key'), 200);
    t.equal(await admit(peerUid), 401, 'an unknown peer is not this user');
    t.equal(await admit(peerUid, 'Bearer ', ''), 401);
  }
  t.equal(await admit('busy'), 503);
  t.equal(await admit('busy', 'Bearer the-key'), 200, 'a key needs no look-up');
  t.match(
    await admit(Promise.reject(new Error('a fault of the look-up'))),
    Error,
    'a failed look-up admits no request',
  );
});

/** A server and one accepted connection. */
async function pairAt(t: Test, listenAt: string, connectTo: string) {
  const server: Server = createServer({ allowHalfOpen: true }).listen(0, listenAt);
  t.teardown(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const client = connect(port, connectTo);
  t.teardown(() => client.destroy());
  const [socket] = await once(server, 'connection');
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  return { client, socket };
}

t.test('the uid of an established loopback peer is known on Linux, for any spelling of the address', async (t) => {
  const expected = process.platform === 'linux' ? process.getuid?.() : undefined;
  for (const [listenAt, connectTo] of [
    ['127.0.0.1', '127.0.0.1'],
    ['::', '127.0.0.1'],
    ['::1', '::1'],
  ] as const) {
    const { socket } = await pairAt(t, listenAt, connectTo).catch(() => ({ socket: undefined }));
    // A machine without IPv6.
    if (socket) t.equal(await peerUidOf(socket), expected, `${listenAt} from ${connectTo}`);
  }
});

t.test('the uid of a peer that has ended only its own direction is known', async (t) => {
  const { client, socket } = await pairAt(t, '127.0.0.1', '127.0.0.1');
  socket.pause();
  client.allowHalfOpen = true;
  client.end();
  await once(client, 'finish');
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(await peerUidOf(socket), process.platform === 'linux' ? process.getuid?.() : undefined);
});

t.test('the uid of a peer that has closed its socket is unknown', async (t) => {
  const { client, socket } = await pairAt(t, '127.0.0.1', '127.0.0.1');
  socket.pause();
  client.destroy();
  await once(client, 'close');
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(await peerUidOf(socket), undefined);
});

t.test('the socket table of the kernel is read in full, and other lines are ignored', (t) => {
  const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
  const row = (sl: string, state: string, uid: string) =>
    `   ${sl}: 0100007F:1F90 0100007F:C350 ${state} 00000000:00000000 00:00000000 00000000 ${uid}        0 4711 1 0000000000000000 20 4 0 10 -1\n`;
  const rows = parseTcpTable(
    `${head}${row('0', '01', ' 1000')}${row('1', '06', '    0')}${row('2', '0A', '    7')}nonsense`,
  );
  t.match(rows, [{ uid: 1000, inode: '4711' }]);
  t.equal(rows.length, 1);
  t.match(rows[0]?.local, /7f000001:8080$/);
  t.match(rows[0]?.remote, /7f000001:50000$/);
  t.end();
});
