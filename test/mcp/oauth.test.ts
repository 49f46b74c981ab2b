/** Log-ins at MCP servers, with the authorization server of the official SDK. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { call, http, inState, quick, reached, room } from './helpers.ts';
import { fileFor, GuardedServer, logIn } from './oauth-helpers.ts';

t.test('a server that answers 401 needs a log-in, and is ready after it without a restart', async (t) => {
  const server = await GuardedServer.start(t);
  const mcp = room(t, { tracker: http(server.url) }, { restartPolicy: quick });
  mcp.servers.start();
  const waiting = await inState(mcp, 'tracker', 'needsLogin');
  t.match(waiting, { lastError: 'The server wants you to log in: oratorio mcp login tracker', toolCount: 0 });
  t.same(await mcp.servers.settled(), ['tracker']);
  const stored = await logIn(mcp, http(server.url));
  t.match(stored, { issuer: new URL('/', server.url).href, resource: server.url, scope: 'tools' });
  t.match(await inState(mcp, 'tracker', 'ready'), { toolCount: 1, serverName: 'guarded', lastError: null });
  t.match(await call(mcp, '__whoami', {}), { isError: false, text: /^client with \[redacted\]$/ });
  const { path } = fileFor(mcp, server.url);
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.equal(statSync(join(mcp.home, 'mcp')).mode & 0o777, 0o700);
  const { resources } = await server.seen();
  t.same(resources, [server.url]);
  t.notMatch(JSON.stringify([mcp.logged, mcp.statuses]), /access-|refresh-|code-/);
});

t.test('a refused token is renewed once, and the call succeeds', async (t) => {
  const server = await GuardedServer.start(t);
  const mcp = room(t, { tracker: http(server.url) }, { restartPolicy: quick });
  const { accessToken } = await logIn(mcp, http(server.url));
  mcp.servers.start();
  await inState(mcp, 'tracker', 'ready');
  await server.control('expire');
  t.match(await call(mcp, '__whoami', {}), { isError: false });
  t.equal((await server.seen()).renewed, 1);
  t.not(fileFor(mcp, server.url).read()?.accessToken, accessToken);
});

t.test('a revoked refresh token leads to a log-in, without a loop', async (t) => {
  const server = await GuardedServer.start(t);
  const mcp = room(t, { tracker: http(server.url) }, { restartPolicy: quick });
  await logIn(mcp, http(server.url));
  mcp.servers.start();
  await inState(mcp, 'tracker', 'ready');
  await server.control('revoke');
  t.match(await call(mcp, '__whoami', {}), { isError: true, text: /wants you to log in: oratorio mcp login tracker/ });
  await inState(mcp, 'tracker', 'needsLogin');
  t.equal(fileFor(mcp, server.url).read(), undefined, 'the tokens are gone');
  t.equal((await server.seen()).renewed, 1);
  await logIn(mcp, http(server.url));
  await inState(mcp, 'tracker', 'ready');
});

t.test('servers that share a token renew it once', async (t) => {
  const server = await GuardedServer.start(t);
  const [one, other] = [http(server.url), http(server.url)];
  const mcp = room(t, { one, other }, { restartPolicy: quick });
  await logIn(mcp, one);
  await server.control('expire');
  mcp.servers.start();
  await Promise.all([inState(mcp, 'one', 'ready'), inState(mcp, 'other', 'ready')]);
  t.equal((await server.seen()).renewed, 1);
});

t.test('JSON-RPC begins a log-in and ends it', async (t) => {
  const server = await GuardedServer.start(t);
  const mcp = room(t, { tracker: http(server.url) }, { restartPolicy: quick });
  mcp.servers.start();
  await inState(mcp, 'tracker', 'needsLogin');
  const url = await mcp.servers.login('tracker');
  t.equal((await fetch(url)).status, 200);
  await inState(mcp, 'tracker', 'ready');
  await mcp.servers.logout('tracker');
  t.equal(fileFor(mcp, server.url).read(), undefined);
  t.match(await call(mcp, '__whoami', {}), { isError: true });
  await reached(mcp, 'tracker', ({ startupState }) => startupState === 'needsLogin');
  await t.rejects(mcp.servers.login('nobody'), { message: 'MCP server not found' });
});

t.test('a server with a credential of its own gets no log-in', async (t) => {
  const server = await GuardedServer.start(t);
  const settings = http(server.url, { bearerTokenEnvVar: 'TRACKER_TOKEN' });
  const mcp = room(t, { tracker: settings }, { env: { TRACKER_TOKEN: 'tok-static' } });
  mcp.servers.start();
  t.match(await inState(mcp, 'tracker', 'failed'), { lastError: /wants a credential \(HTTP 401\)/ });
  await t.rejects(mcp.servers.login('tracker'), { message: 'Log-in failed' });
});
