import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { unusedPort } from '../ports.ts';
import { call, everything, http, inState, quick, reached, room, toolOf, until } from './helpers.ts';
import { ModernServer } from './modern-server.ts';

/** `server-everything` over HTTP: the era of 2025, with sessions. */
async function startEverything(t: Test, port: number) {
  const child = spawn(process.execPath, [everything, 'streamableHttp'], {
    env: { PATH: process.env['PATH'], PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    output += chunk;
  });
  const end = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  t.teardown(end);
  await until('it listens', () => output.includes('listening on port'));
  return { url: `http://127.0.0.1:${port}/mcp`, end, output: () => output };
}

t.test(
  '2025: server-everything over HTTP supports calls, progress, cancellation and the end of the session',
  async (t) => {
    const server = await startEverything(t, await unusedPort());
    const mcp = room(t, { all: http(server.url) });
    mcp.servers.start();
    t.match(await inState(mcp, 'all', 'ready'), { protocolVersion: '2025-11-25', transport: 'streamableHttp' });
    t.same(await call(mcp, '__echo', { message: 'hello' }), { text: 'Echo: hello', isError: false });
    const controller = new AbortController();
    const running = call(
      mcp,
      '__trigger-long-running-operation',
      { duration: 600, steps: 6_000 },
      {
        signal: controller.signal,
        onOutput: () => controller.abort(new Error('the turn was interrupted')),
      },
    );
    await t.rejects(running, { message: 'the turn was interrupted' });
    t.match(await call(mcp, '__get-sum', { a: 1, b: 2 }), { text: /3/ });
    await mcp.servers.close();
    await until('the session is ended', () => server.output().includes('session termination request'));
  },
);

t.test('2025: a restarted server without the session gets a new one', async (t) => {
  const port = await unusedPort();
  const first = await startEverything(t, port);
  const mcp = room(t, { all: http(first.url) }, { restartPolicy: quick });
  mcp.servers.start();
  await inState(mcp, 'all', 'ready');
  const running = call(
    mcp,
    '__trigger-long-running-operation',
    { duration: 600, steps: 6_000 },
    {
      onOutput: () => void first.end(),
    },
  );
  t.match(await running, { isError: true, text: /went away during the call/ });
  const down = await reached(mcp, 'all', ({ lastError }) => lastError !== null);
  t.match(down, { startupState: 'restarting', lastError: /cannot be reached|event stream has ended/ });
  await startEverything(t, port);
  await inState(mcp, 'all', 'ready');
  t.same(await call(mcp, '__echo', { message: 'again' }), { text: 'Echo: again', isError: false });
});

t.test('2026: a server is recognised and called with the headers of its era', async (t) => {
  const server = await ModernServer.start(t);
  const mcp = room(
    t,
    {
      small: http(server.url, {
        bearerTokenEnvVar: 'SMALL_TOKEN',
        httpHeaders: { 'x-plain': 'plain-value' },
        envHttpHeaders: { 'x-from-env': 'SMALL_HEADER' },
      }),
    },
    { env: { SMALL_TOKEN: 'tok-very-secret-3', SMALL_HEADER: 'from-env' } },
  );
  mcp.servers.start();
  const status = await inState(mcp, 'small', 'ready');
  t.match(status, { protocolVersion: '2026-07-28', serverName: 'small', toolCount: 8 });
  t.same(await call(mcp, '__say', { text: 'hello' }), { text: 'hello', isError: false });
  t.match(await call(mcp, '__refuse', {}), { isError: true, text: /error -32602: no refuse today/ });
  t.notOk(
    server.requests.some(({ rpcMethod }) => rpcMethod === 'initialize'),
    'no request began a session',
  );
  for (const { headers } of server.requests) {
    t.match(headers, {
      authorization: 'Bearer tok-very-secret-3',
      'x-plain': 'plain-value',
      'x-from-env': 'from-env',
      'mcp-protocol-version': '2026-07-28',
    });
  }
  t.notMatch(JSON.stringify([mcp.servers.list(), mcp.statuses, mcp.logged]), /tok-very-secret|plain-value/);
});

t.test('2026: a traced call carries its place in the trace, and an untraced one does not', async (t) => {
  const server = await ModernServer.start(t);
  const traced = room(t, { small: http(server.url) }, { traceparent: ({ callId }) => `00-${callId}-01` });
  const untraced = room(t, { small: http(server.url) });
  for (const { servers } of [traced, untraced]) servers.start();
  await Promise.all([traced, untraced].map((each) => inState(each, 'small', 'ready')));
  t.match(JSON.parse((await call(traced, '__say', {})).text), { traceparent: '00-call-01' });
  t.notHas(JSON.parse((await call(untraced, '__say', {})).text), { traceparent: String });
});

t.test('2026: a cancelled call closes its stream', async (t) => {
  const server = await ModernServer.start(t);
  const mcp = room(t, { small: http(server.url) });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  const controller = new AbortController();
  const running = call(mcp, '__wait', {}, { signal: controller.signal, onOutput: () => controller.abort() });
  await t.rejects(running, { name: 'AbortError' });
  await until('the server has seen it', () => server.cancelled.length === 1);
});

t.test('2026: changed tools are received on the subscription, also after a cut', async (t) => {
  const server = await ModernServer.start(t);
  const mcp = room(t, { small: http(server.url) });
  const listens = () => server.requests.filter(({ rpcMethod }) => rpcMethod === 'subscriptions/listen').length;
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  await call(mcp, '__grow', {});
  await reached(mcp, 'small', ({ toolCount }) => toolCount === 9);
  t.match(await call(mcp, '__die', {}), { isError: true, text: /broke off.*unknown/ });
  await until('it has subscribed again', () => listens() === 2);
  await call(mcp, '__grow', {});
  await reached(mcp, 'small', ({ toolCount }) => toolCount === 10);
  t.notOk(mcp.statuses.some(({ startupState }) => startupState === 'restarting'));
});

t.test('2026: an unreachable server is retried until it is back', async (t) => {
  const port = await unusedPort();
  const server = await ModernServer.start(t, port);
  const mcp = room(t, { small: http(server.url) }, { restartPolicy: quick });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  await server.stop();
  await reached(mcp, 'small', ({ lastError }) => lastError !== null);
  await ModernServer.start(t, port);
  await inState(mcp, 'small', 'ready');
  t.same(await call(mcp, '__say', { text: 'again' }), { text: 'again', isError: false });
});

t.test('an unreachable server is retried up to the limit', async (t) => {
  const port = await unusedPort();
  const mcp = room(t, { gone: http(`http://127.0.0.1:${port}/mcp`) }, { restartPolicy: { ...quick, maxRestarts: 2 } });
  mcp.servers.start();
  t.match(await inState(mcp, 'gone', 'failed'), { lastError: 'The server cannot be reached (ECONNREFUSED).' });
  t.equal(mcp.statuses.filter(({ startupState }) => startupState === 'restarting').length, 2);
});

t.test('a refused credential is not retried, and is in no message', async (t) => {
  const server = await ModernServer.start(t);
  server.status = 401;
  const settings = http(server.url, { bearerTokenEnvVar: 'SMALL_TOKEN' });
  const mcp = room(t, { small: settings }, { env: { SMALL_TOKEN: 'tok-very-secret-4' } });
  mcp.servers.start();
  t.match(await inState(mcp, 'small', 'failed'), { lastError: /wants a credential \(HTTP 401\)/ });
  t.notMatch(JSON.stringify([mcp.statuses, mcp.logged]), 'tok-very-secret');
});

t.test('an error of the server is retried, and an error of a call does not affect the connection', async (t) => {
  const server = await ModernServer.start(t);
  const mcp = room(t, { small: http(server.url) }, { restartPolicy: quick });
  server.status = 503;
  mcp.servers.start();
  t.match(await reached(mcp, 'small', ({ lastError }) => lastError !== null), { lastError: /HTTP 503/ });
  server.status = undefined;
  await inState(mcp, 'small', 'ready');
  server.status = 500;
  t.match(await call(mcp, '__say', { text: 'hello' }), { isError: true, text: /HTTP 500/ });
  server.status = undefined;
  t.same(await call(mcp, '__say', { text: 'hello' }), { text: 'hello', isError: false });
});

t.test('an unset or invalid header value fails before any request', async (t) => {
  const server = await ModernServer.start(t);
  const mcp = room(
    t,
    {
      unset: http(server.url, { bearerTokenEnvVar: 'NOT_SET_ANYWHERE' }),
      crooked: http(server.url, { envHttpHeaders: { 'x-key': 'CROOKED' } }),
    },
    { env: { CROOKED: 'tok-very-secret-5\nx: y' } },
  );
  mcp.servers.start();
  t.match(await inState(mcp, 'unset', 'failed'), {
    lastError: 'The environment variable NOT_SET_ANYWHERE is not set.',
  });
  t.match(await inState(mcp, 'crooked', 'failed'), { lastError: /^The header x-key has characters/ });
  t.same(server.requests, []);
  t.notMatch(JSON.stringify([mcp.statuses, mcp.logged]), 'tok-very-secret');
});

t.test('a credential is not sent to the target of a redirect', async (t) => {
  const other = await ModernServer.start(t);
  const redirects = createServer((_, response) => response.writeHead(307, { location: other.url }).end());
  redirects.listen(0, '127.0.0.1');
  await once(redirects, 'listening');
  t.teardown(() => {
    redirects.closeAllConnections();
    redirects.close();
  });
  const { port } = redirects.address() as AddressInfo;
  const settings = http(`http://127.0.0.1:${port}/mcp`, { httpHeaders: { authorization: 'Bearer tok-very-secret-6' } });
  const mcp = room(t, { moved: settings }, { restartPolicy: { ...quick, maxRestarts: 0 } });
  mcp.servers.start();
  await inState(mcp, 'moved', 'failed');
  t.same(other.requests, []);
});

t.test('an endless answer is refused', async (t) => {
  const floods = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const block = 'x'.repeat(1_048_576);
    const go = () => response.write(block, () => !response.destroyed && setImmediate(go));
    go();
  });
  floods.listen(0, '127.0.0.1');
  await once(floods, 'listening');
  t.teardown(() => {
    floods.closeAllConnections();
    floods.close();
  });
  const { port } = floods.address() as AddressInfo;
  const mcp = room(t, { flood: http(`http://127.0.0.1:${port}/`) }, { restartPolicy: { ...quick, maxRestarts: 0 } });
  mcp.servers.start();
  t.match(await inState(mcp, 'flood', 'failed'), { lastError: /longer than 16777216 bytes/ });
});

t.test('tools of a server need no approval when the user has configured it', async (t) => {
  const server = await ModernServer.start(t);
  const mcp = room(t, { small: http(server.url), trusted: http(server.url, { trusted: true }) });
  mcp.servers.start();
  await Promise.all([inState(mcp, 'small', 'ready'), inState(mcp, 'trusted', 'ready')]);
  const workspacePath = mcp.workspace;
  t.match(await toolOf(mcp, '__small__grow').approvalFor({}, { workspacePath }), { kind: 'remoteResource' });
  t.match(
    await toolOf(mcp, '__small__say').approvalFor({}, { workspacePath }),
    { kind: 'remoteResource' },
    'the hint of a server that is not trusted does not count',
  );
  t.equal(await toolOf(mcp, '__trusted__grow').approvalFor({}, { workspacePath }), undefined);
  t.equal(toolOf(mcp, '__trusted__grow').isReadOnly, false);
});
