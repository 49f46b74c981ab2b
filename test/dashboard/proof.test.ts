/** A page whose server has ended, and another user's program on the port: it gets no token. */
import { createHmac, randomBytes } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { type AppServer, startAppServer } from '../../src/appserver/index.ts';
import { proveServer } from '../../src/client/index.ts';
import { trustWorkspace } from '../../src/config/index.ts';
import { keyIdOf } from '../../src/http/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { exchangeMessage, exchangePath, proofPaths } from '../../src/protocol/index.ts';
import { revokeDashboardTokens } from '../../src/supervise/index.ts';
import { eventually, makeWorkspace, startServer } from '../appserver/harness.ts';
import { launchBrowser } from '../browser.ts';
import { stealPort } from '../port-thief.ts';
import { unusedPort } from '../ports.ts';
import { request } from './harness.ts';

// Sockets of node:http let the kernel give their port away at once; those of uWebSockets.js only after a minute.
process.env['ORATORIO_HTTP_ADAPTER'] = 'node';

let browser: Browser;
t.before(async () => {
  browser = await launchBrowser();
});

/** A workspace whose server can be ended and started again at the same address. */
async function stage(t: Test) {
  const port = await unusedPort();
  const { path, home } = makeWorkspace(t, { DashBoard: { Port: port } });
  trustWorkspace({ home, workspace: path });
  const logger = createLogger({ name: 'test', pretty: false, stream: { write: () => undefined } });
  let server: AppServer | undefined;
  t.teardown(() => server?.close());
  const begin = async () => {
    server = await startAppServer({ workspacePath: path, env: { ORATORIO_HOME: home }, logger });
    t.equal(server.endpoints.dashboard, `http://127.0.0.1:${port}/DashBoard`);
    return server.dashboardToken ?? '';
  };
  return { port, home, origin: `http://127.0.0.1:${port}`, begin, end: () => server?.close() };
}

const storageKey = 'oratorio.token';
const tokenOf = (page: Page): Promise<string | null> =>
  page.evaluate((key) => (globalThis as unknown as { sessionStorage: Store }).sessionStorage.getItem(key), storageKey);

interface Store {
  getItem(key: string): string | null;
}

t.test('regression: H2 a program that takes the port of a dashboard gets no token', async (t) => {
  const { port, origin, begin, end } = await stage(t);
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  t.teardown(() => context.close());
  context.setDefaultTimeout(180_000);
  const first = await begin();
  const pages: Page[] = [];
  for (const view of ['/sessions', '/events']) {
    const page = await context.newPage();
    await page.goto(`${origin}/DashBoard#token=${first}&at=${view}`);
    await page.locator('.connection.live').waitFor();
    pages.push(page);
  }
  await end();
  const headings: [number, string][] = [
    [200, 'The server did not prove itself'],
    [401, 'This page needs a token'],
  ];
  for (const [status, name] of headings) {
    const thief = await stealPort({ port, status });
    for (const page of pages) await page.getByRole('heading', { name }).waitFor();
    await thief.until(4);
    for (const { line, text } of thief.requests) {
      t.notMatch(text, first, line);
      t.notMatch(text, /authorization/i, line);
    }
    await thief.close();
  }

  const second = await begin();
  t.not(second, first, 'each start has a token of its own');
  for (const page of pages) {
    await page.locator('.connection.live').waitFor();
    t.equal(await tokenOf(page), second, 'the page has exchanged its token for that of this start');
  }
});

t.test('a page reports that another address leads to its server', async (t) => {
  const { port, begin } = await stage(t);
  const token = await begin();
  const relay = await stealPort({ port: 0, relayTo: port });
  t.teardown(() => relay.close());
  const page = await browser.newPage({ reducedMotion: 'reduce' });
  page.setDefaultTimeout(180_000);
  await page.goto(`http://127.0.0.1:${relay.port}/DashBoard#token=${token}`);
  await page.getByText('The server does not listen at').waitFor();
  for (const { line, text } of relay.requests) {
    t.notMatch(text, token, line);
    t.notMatch(text, /authorization/i, line);
  }
  await page.close();
});

t.test('a page open across a restart gets the new token unless its token was revoked', async (t) => {
  const { home, origin, begin, end } = await stage(t);
  const first = await begin();
  const page = await browser.newPage({ reducedMotion: 'reduce' });
  page.setDefaultTimeout(180_000);
  await page.goto(`${origin}/DashBoard#token=${first}`);
  await page.locator('.connection.live').waitFor();
  await end();
  const second = await begin();
  await eventually(async () => (await tokenOf(page)) === second || undefined, 'the page has the new token');
  await page.locator('.connection.live').waitFor();
  revokeDashboardTokens(home);
  await end();
  await begin();
  await page.getByRole('heading', { name: 'This page needs a token' }).waitFor();
  await page.close();
});

t.test(
  'the token of an earlier start is accepted by the exchange only, and that of another workspace by no route',
  async (t) => {
    const { origin, begin, end } = await stage(t);
    const { server: other } = await startServer(t, undefined, { config: { DashBoard: { Port: 0 } } });
    const earlier = await begin();
    await end();
    const present = await begin();
    const status = async (token: string) => (await request(origin, '/DashBoard/api/summary', { token })).status;
    t.equal(await status(present), 200);
    t.equal(await status(earlier), 401);
    t.equal(await status(other.dashboardToken ?? ''), 401, 'one workspace does not open another');
    await t.rejects(proveServer({ role: 'dashboard', url: origin, token: other.dashboardToken ?? '' }), {
      name: 'ServerNotProvenError',
      reason: 'unknownToken',
    });
    await proveServer({ role: 'dashboard', url: origin, token: present });

    const exchange = async (token: string) => {
      const key = keyIdOf(token);
      const authority = new URL(origin).host;
      const nonce = randomBytes(32).toString('base64url');
      const { body } = await request(origin, `${proofPaths.dashboard}?nonce=${nonce}&key=${key}`, { token: null });
      const message = exchangeMessage({ role: 'dashboard', nonce, authority, instance: body.instance ?? '' });
      const proof = createHmac('sha256', token).update(message).digest('base64url');
      return request(origin, exchangePath, { method: 'POST', body: { key, nonce, proof }, token: null });
    };
    t.match(await exchange(earlier), { status: 200, body: { token: present } });
    t.match(await exchange(present), { status: 401 });
    t.match(await exchange(other.dashboardToken ?? ''), { status: 401 });
    t.match(await exchange('x'.repeat(43)), { status: 401 });
    for (const body of [undefined, 'x', [], {}, { key: 1, nonce: 2, proof: 3 }]) {
      t.match(await request(origin, exchangePath, { method: 'POST', body, token: null }), { status: 400 });
    }
  },
);

t.test('the browser closes', () => browser.close());
