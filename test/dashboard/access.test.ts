/** Token, logins, and addresses on which the dashboard may listen. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { Access } from '../../src/dashboard/index.ts';
import type { HttpError } from '../../src/http/index.ts';
import { defaults } from '../../src/protocol/index.ts';
import {
  dashboardToken,
  dashboardTokenFile,
  revokeDashboardTokens,
  rotateDashboardToken,
  watchedDashboardTokens,
} from '../../src/supervise/index.ts';
import { launchDocument, makeWorkspace, startServer, temporaryDirectory } from '../appserver/harness.ts';
import { scene } from './harness.ts';

t.test('the token of a workspace is created once, with mode 0600, of 32 random bytes', async (t) => {
  const home = join(temporaryDirectory(t), 'not', 'there', 'yet');
  const workspace = '/work/space';
  const file = dashboardTokenFile(home, workspace);
  const tokens = new Set(Array.from({ length: 10 }, () => dashboardToken(home, workspace)));
  t.equal(tokens.size, 1);
  const [token = ''] = tokens;
  t.match(token, /^[\w-]{43}$/);
  t.equal(Buffer.from(token, 'base64url').byteLength, 32);
  const mode = () => statSync(file).mode & 0o777;
  t.equal(mode(), 0o600);
  t.equal(statSync(dirname(file)).mode & 0o777, 0o700);
  chmodSync(file, 0o644);
  t.equal(dashboardToken(home, workspace), token);
  t.equal(mode(), 0o600, 'opened by accident, closed again');
  for (const nonsense of ['', 'short', `${token}\n${token}`, 'ü'.repeat(43)]) {
    writeFileSync(file, nonsense);
    const made = dashboardToken(home, workspace);
    t.match(made, /^[\w-]{43}$/, 'a file without a token is replaced');
    t.equal(dashboardToken(home, workspace), made);
  }
  t.not(dashboardToken(home, '/work/other'), dashboardToken(home, workspace), 'another workspace has another token');
});

t.test(
  'each start creates a new token, and the latest earlier ones can be exchanged for an hour unless revoked',
  async (t) => {
    const home = temporaryDirectory(t);
    const workspace = '/work/space';
    const userWide = join(home, 'dashboard.token');
    writeFileSync(userWide, 'x'.repeat(43), { mode: 0o600 });
    const watched = watchedDashboardTokens(home, workspace);
    const first = watched().current;
    rotateDashboardToken(home, workspace);
    t.notOk(existsSync(userWide), 'the token for all workspaces is gone');
    const second = watched();
    t.not(second.current, first);
    t.same(second.earlier, [first]);
    for (let start = 0; start < 5; start += 1) rotateDashboardToken(home, workspace);
    t.equal(watched().earlier.length, 4, 'only the last ones');
    t.notOk(watched().earlier.includes(first));
    const dir = dirname(dashboardTokenFile(home, workspace));
    t.ok(readdirSync(dir).every((name) => (statSync(join(dir, name)).mode & 0o077) === 0));

    revokeDashboardTokens(home);
    t.same(watched().earlier, [], 'a revoked token cannot be exchanged');
    const revoked = watched().current;
    rotateDashboardToken(home, workspace, Date.now() - 3_600_000);
    t.same(watched().earlier, [], 'a token replaced an hour ago cannot be exchanged');
    t.not(watched().current, revoked);
    rmSync(dashboardTokenFile(home, workspace));
    t.match(watched().current, /^[\w-]{43}$/);
    t.equal(watched().current, dashboardToken(home, workspace));
  },
);

t.test('a revoked token is refused at once', async (t) => {
  const { ask, home, server } = await scene(t);
  t.equal((await ask('/DashBoard/api/summary')).status, 200);
  revokeDashboardTokens(home);
  t.equal((await ask('/DashBoard/api/summary')).status, 401, 'the revoked token is refused');
  const renewed = dashboardToken(home, server.workspacePath);
  t.equal((await ask('/DashBoard/api/summary', { token: renewed })).status, 200);
});

t.test('a server that cannot store the token uses a temporary one and warns', async (t) => {
  const { path, home } = makeWorkspace(t);
  mkdirSync(dashboardTokenFile(home, path), { recursive: true, mode: 0o700 });
  const { server, log } = await startServer(t, undefined, { workspacePath: path, env: { ORATORIO_HOME: home } });
  t.match(log.join(''), /the dashboard token cannot be stored.*dashboard\.token is not a regular file/);
  const url = `${new URL(server.endpoints.dashboard ?? '').origin}/DashBoard/api/summary`;
  const authorization = `Bearer ${server.dashboardToken}`;
  t.equal((await fetch(url, { headers: { authorization } })).status, 200);
  t.equal((await fetch(url)).status, 401);
  t.notMatch(log.join(''), server.dashboardToken);
});

t.test('a managed server takes the token from the home of its Hub', async (t) => {
  const home = temporaryDirectory(t);
  const { server, path } = await startServer(t);
  await server.close();
  const document = launchDocument(path, join(home, 'hub'));
  const launch = { ...document, services: { ...document.services, dashboard: { host: '127.0.0.1', port: 0 } } };
  const { startAppServer } = await import('../../src/appserver/index.ts');
  const { createLogger } = await import('../../src/log/index.ts');
  const logger = createLogger({ name: 'test', pretty: false, stream: { write: () => undefined } });
  const managed = await startAppServer({ workspacePath: path, env: {}, logger, launch });
  t.teardown(() => managed.close());
  t.equal(managed.dashboardToken, readFileSync(dashboardTokenFile(home, managed.workspacePath), 'utf8').trim());
  const url = `${new URL(managed.endpoints.dashboard ?? '').origin}/DashBoard/api/summary`;
  const authorization = `Bearer ${managed.dashboardToken}`;
  t.equal((await fetch(url, { headers: { authorization } })).status, 200);
});

t.test('a managed server without a dashboard creates no token', async (t) => {
  const home = temporaryDirectory(t);
  const { server, path } = await startServer(t);
  await server.close();
  const { startAppServer } = await import('../../src/appserver/index.ts');
  const { createLogger } = await import('../../src/log/index.ts');
  const logger = createLogger({ name: 'test', pretty: false, stream: { write: () => undefined } });
  const launch = launchDocument(path, join(home, 'hub'));
  const managed = await startAppServer({ workspacePath: path, env: {}, logger, launch });
  t.teardown(() => managed.close());
  t.notOk(existsSync(dashboardTokenFile(home, managed.workspacePath)));
});

const credentials = { Username: 'ada', Password: 'correct horse battery' };
const login = (body: unknown) => ({ method: 'POST', body, token: null });

t.test('login by name and password opens a session, and logout ends it', async (t) => {
  const { ask, log } = await scene(t, { DashBoard: credentials });
  t.same((await ask('/dashboard/api/auth', { token: null })).body, { methods: ['token', 'password'] });
  const answer = await ask('/dashboard/api/login', login({ username: 'ada', password: credentials.Password }));
  t.match(answer, { status: 200, body: { token: /^[\w-]{43}$/, expiresAt: /Z$/ } });
  t.notOk(answer.headers.has('set-cookie'));
  const { token } = answer.body;
  t.equal((await ask('/Dashboard/API/Summary', { token })).status, 200);
  t.equal((await ask('/dashboard/api/logout', { method: 'POST', token })).status, 204);
  t.equal((await ask('/DashBoard/api/summary', { token })).status, 401);
  t.equal((await ask('/DashBoard/api/summary')).status, 200, 'the token of the user is not logged out');
  for (const body of [
    { username: 'ada', password: 'wrong' },
    { username: 'eve', password: credentials.Password },
    { username: '', password: '' },
  ]) {
    t.match(await ask('/dashboard/api/login', login(body)), {
      status: 401,
      body: { error: { code: 'unauthorized', message: 'The name or the password is wrong.' } },
    });
  }
  for (const body of [undefined, 'nonsense', {}, { username: 'ada' }, { username: 1, password: 2 }, []]) {
    t.match(await ask('/dashboard/api/login', login(body)), { status: 400 });
  }
  t.equal((await ask('/dashboard/api/login', login({ username: 'x'.repeat(10_000), password: '' }))).status, 413);
  t.notMatch(log.join(''), credentials.Password);
  t.notMatch(JSON.stringify((await ask('/dashboard/api/config')).body), credentials.Password);
});

t.test('login is refused without a configured name and password', async (t) => {
  const { ask } = await scene(t);
  t.match(await ask('/dashboard/api/login', login({ username: '', password: '' })), {
    status: 403,
    body: { error: { code: 'loginDisabled' } },
  });
});

function access(more: Partial<ConstructorParameters<typeof Access>[0]> = {}) {
  let now = 0;
  const made = new Access({
    tokens: () => ({ current: 'token', earlier: [] }),
    auth: 'token',
    username: 'ada',
    password: 'right',
    now: () => now,
    wallClock: () => now,
    ...more,
  });
  const asks = (token: string) => {
    try {
      made.authenticate({ header: () => `Bearer ${token}`, query: new URLSearchParams(), path: '/', method: 'GET' });
      return true;
    } catch {
      return false;
    }
  };
  const attempt = (password: string): number | string => {
    try {
      return made.login({ username: 'ada', password }).token;
    } catch (error) {
      return (error as { status: number }).status;
    }
  };
  return {
    made,
    asks,
    attempt,
    pass(ms: number) {
      now += ms;
    },
  };
}

t.test('wrong passwords delay all logins increasingly, up to a limit', async (t) => {
  const { attempt, pass, made } = access();
  const { loginFailures, loginPauseMs, loginPauseMaxMs } = defaults.dashboard;
  for (let nth = 1; nth <= loginFailures; nth += 1) t.equal(attempt('wrong'), 401);
  t.equal(attempt('wrong'), 429);
  t.equal(attempt('right'), 429, 'the right one too');
  try {
    made.login({ username: 'ada', password: 'x' });
    t.fail('it was let in');
  } catch (error) {
    t.same((error as HttpError).headers, [['retry-after', '1']]);
  }
  let pause: number = loginPauseMs;
  for (let nth = 0; nth < 10; nth += 1) {
    pass(pause - 1);
    t.equal(attempt('wrong'), 429);
    pass(1);
    t.equal(attempt('wrong'), 401);
    pause = Math.min(pause * 2, loginPauseMaxMs);
  }
  t.equal(pause, loginPauseMaxMs);
  pass(pause);
  t.type(attempt('right'), 'string');
  t.equal(attempt('wrong'), 401, 'and all is forgiven');
});

t.test('sessions expire, and their number is bounded', async (t) => {
  const { attempt, asks, pass } = access();
  const first = String(attempt('right'));
  t.ok(asks(first));
  pass(defaults.dashboard.loginTtlMs - 1);
  t.ok(asks(first));
  pass(1);
  t.notOk(asks(first));
  const many = Array.from({ length: defaults.dashboard.logins + 1 }, () => String(attempt('right')));
  t.notOk(asks(many[0] ?? ''), 'the oldest gives way');
  t.ok(many.slice(1).every(asks));
  t.notOk(asks(''));
});

t.test(
  'without authentication local requests are served with a warning, and pages of other origins are refused',
  async (t) => {
    const { ask, log, port } = await scene(t, { DashBoard: { Auth: 'none' } });
    t.same((await ask('/dashboard/api/auth', { token: null })).body, { methods: ['none'] });
    t.equal((await ask('/DashBoard/api/summary', { token: null })).status, 200);
    t.equal((await ask('/DashBoard/api/summary', { token: 'anything' })).status, 200);
    for (const headers of [
      { origin: 'http://evil.example' },
      { origin: `http://localhost:${port}` },
      { 'sec-fetch-site': 'same-site' },
    ]) {
      t.equal((await ask('/api/sessions', { method: 'DELETE', token: null, headers })).status, 403);
    }
    t.match(log.join(''), 'without authentication');
  },
);

t.test('a dashboard reachable by other machines requires name and password', async (t) => {
  for (const DashBoard of [
    { Enabled: true, Host: '0.0.0.0', Port: 0 },
    { Enabled: true, Host: '0.0.0.0', Port: 0, Username: 'ada' },
    { Enabled: true, Host: '0.0.0.0', Port: 0, Password: 'x' },
    { Enabled: true, Host: '0.0.0.0', Port: 0, ...credentials, Auth: 'none' },
    { Enabled: true, Host: '::', Port: 0 },
  ]) {
    await t.rejects(startServer(t, undefined, { config: { DashBoard } }), {
      name: 'StartupError',
      message: /DashBoard\.\S+ .*must be set to listen on (0\.0\.0\.0|::), which others can reach/,
    });
  }
  const { server } = await startServer(t, undefined, { config: { DashBoard: { Host: '0.0.0.0' } } });
  t.equal(server.endpoints.dashboard, undefined, 'switched off unless it is switched on');

  const { ask, port } = await scene(t, {
    DashBoard: { Enabled: true, Host: '0.0.0.0', ...credentials, AllowedHosts: ['Box.Example'] },
  });
  const { exchange, rawRequest } = await import('../http/support.ts');
  const statusFor = async (Host: string) => (await exchange(port, rawRequest('GET', '/DashBoard', { Host }))).status;
  for (const host of [
    '192.168.1.10',
    `10.0.0.1:${port}`,
    '[2001:db8::1]:80',
    'box.example',
    'BOX.example.:80',
    'localhost',
  ]) {
    t.equal(await statusFor(host), 200, host);
  }
  for (const host of ['evil.example', 'sub.box.example', 'box.example.evil', '999.1.1.1', '1.2.3.4.5', '[::zz]']) {
    t.equal(await statusFor(host), 403, host);
  }
  // By its plain address, as `fetch` has it.
  t.equal((await ask('/DashBoard/api/summary')).status, 200);
  t.equal((await ask('/DashBoard/api/summary', { token: null })).status, 401);
});
