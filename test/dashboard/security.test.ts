/** A crawler over every route and method of a dashboard, with both HTTP servers, as an attacker would ask. */
import { readFileSync, statSync } from 'node:fs';
import t, { type Test } from 'tap';
import { dashboardPaths } from '../../src/protocol/index.ts';
import { dashboardTokenFile } from '../../src/supervise/index.ts';
import { lockFile } from '../appserver/harness.ts';
import { type Adapter, Exchanges, type RawAnswer, rawRequest } from '../http/support.ts';
import { type Scene, scene } from './harness.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'] as const;

/** Every path, with and without the prefix, also in other cases, and some unknown paths. */
const paths = Object.values(dashboardPaths)
  .map((path) => path.replace(':sessionKey', 'thread_1').replace(':id', '1'))
  .flatMap((path) => (path.startsWith('/api/') ? [path, `/dashboard${path}`, `/DASHBOARD${path}`] : [path]))
  .flatMap((path) => (/^\/dashboard\//i.test(path) ? [path, path.toUpperCase(), path.toLowerCase()] : [path]))
  .concat('/v1/inspect', '/ws', '/healthz', '/nothing', '/dashboard/api/nothing');

/** Routes that need no token. */
const isOpen = (method: string, path: string): boolean =>
  (path.toLowerCase() === '/dashboard/api/auth' && (method === 'GET' || method === 'HEAD')) ||
  (path === '/DashBoard' && (method === 'GET' || method === 'HEAD'));

/** Other spellings of the route that deletes all sessions: none of them may match it. */
const tricks = [
  '//api/sessions',
  '/api//sessions',
  '/x/../api/sessions',
  '/./api/sessions',
  '/%2e%2e/api/sessions',
  '/assets/../api/sessions',
  '/assets/..%2fapi/sessions',
  '/assets/%2e%2e/api/sessions',
  '/DashBoard/../api/sessions',
  '/api/sessions%2f',
  '/api/sessions/',
  '/api%2fsessions',
  '/%61pi/sessions',
  '/api/sessions;x',
  '/api\\sessions',
  '/api/sessions%00',
  '/DashBoard/api/sessions//',
  '/v1/../api/sessions',
];

const headersOf = (head: string): Map<string, string> =>
  new Map(
    head
      .split('\r\n')
      .slice(1)
      .flatMap((line) => {
        const colon = line.indexOf(':');
        return colon < 0 ? [] : [[line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const];
      }),
  );

const failed = (list: readonly string[]) => list.slice(0, 20);

type Play = (t: Test, stage: Stage) => Promise<void>;

interface Stage extends Scene {
  /** Sends a request and gives its answer. */
  exchange(request: string): Promise<RawAnswer>;
}

const plays: [name: string, play: Play][] = [];

function withBoth(name: string, play: Play): void {
  plays.push([name, play]);
}

withBoth('a request without the token gets only the page', async (t, { exchange, token, log, server }) => {
  const socketToken = new URL(server.webSocketUrl).searchParams.get('token') ?? '';
  const attempts: Readonly<Record<string, Record<string, string>>> = {
    nothing: {},
    'an empty token': { authorization: 'Bearer ' },
    'a wrong token': { authorization: `Bearer ${'x'.repeat(43)}` },
    'another scheme': { authorization: `Basic ${Buffer.from(`x:${token}`).toString('base64')}` },
    'the token of the WebSocket': { authorization: `Bearer ${socketToken}` },
    'a cookie': { cookie: `token=${token}; oratorio=${token}` },
    'a header of another name': { 'x-token': token },
  };
  const wrong: string[] = [];
  for (const [what, headers] of Object.entries(attempts)) {
    for (const path of paths) {
      for (const method of what === 'nothing' ? methods : (['GET', 'DELETE'] as const)) {
        // A token in the address is ignored, with any method: two of them stand for all.
        const isQueried = what === 'nothing' && (method === 'GET' || method === 'DELETE');
        for (const query of isQueried ? ['', `?token=${token}`] : ['']) {
          const { status, body, head } = await exchange(rawRequest(method, path + query, headers));
          const isFine = isOpen(method, path) ? status === 200 : status >= 300 && status < 500 && status !== 304;
          if (!isFine) wrong.push(`${what}: ${method} ${path}${query} → ${status}`);
          if ((head + body).includes(token)) wrong.push(`${method} ${path} says the token`);
          if (/access-control-/i.test(head)) wrong.push(`${method} ${path} has CORS headers`);
        }
      }
    }
  }
  t.same(failed(wrong), []);
  t.notMatch(log.join(''), token);
});

withBoth('every route of the table accepts the token and answers with security headers', async (t, scene) => {
  const { exchange, token } = scene;
  const wrong: string[] = [];
  for (const path of paths) {
    for (const method of methods) {
      // Reading the head is enough; an event stream has no end.
      const { status, head } = await exchange(rawRequest(method, path, { authorization: `Bearer ${token}` }));
      const headers = headersOf(head);
      if (status === 401 || status === 500 || (status < 400 && /TRACE|OPTIONS|PROPFIND/.test(method)))
        wrong.push(`${method} ${path} → ${status}`);
      for (const name of [
        'content-security-policy',
        'x-content-type-options',
        'referrer-policy',
        'cross-origin-opener-policy',
        'cross-origin-resource-policy',
      ]) {
        if (!headers.has(name)) wrong.push(`${method} ${path} (${status}) has no ${name}`);
      }
      if (/api/i.test(path) && headers.get('cache-control') !== 'no-store') wrong.push(`${path} may be kept`);
      if (/access-control-|set-cookie/i.test(head)) wrong.push(`${method} ${path}: ${head}`);
    }
  }
  t.same(failed(wrong), []);
  const page = await scene.ask('/DashBoard', { token: null });
  t.match(page.headers.get('content-security-policy'), /default-src 'none'.*require-trusted-types-for 'script'/);
});

withBoth(
  'a host name that a foreign page can have is refused for every route',
  async (t, { exchange, port, token }) => {
    const bad = [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      'localhost@evil.example',
      'evil.example@localhost',
      'localhost,evil.example',
      '127.0.0.1.evil.example',
      'evil.example#localhost',
      '192.168.1.10',
      '0.0.0.0',
      '[2001:db8::1]',
      ':8080',
      'localhost:port',
    ];
    const good = [
      '127.0.0.1',
      `127.0.0.1:${port}`,
      'localhost:9000',
      'LOCALHOST',
      'localhost.',
      'LocalHost.:1',
      '[::1]',
    ];
    const wrong: string[] = [];
    for (const path of [...paths, ...tricks, '/assets/x.js', '/']) {
      for (const method of ['GET', 'DELETE', 'OPTIONS']) {
        for (const Host of path === '/api/sessions' ? bad : bad.slice(0, 2)) {
          const authorization = `Bearer ${token}`;
          const { status } = await exchange(rawRequest(method, path, { Host, authorization }));
          // A request that the parser refuses is answered 400.
          if (status !== 403 && status !== 400) wrong.push(`${method} ${path} for ${Host} → ${status}`);
        }
      }
    }
    for (const Host of good) {
      const { status } = await exchange(
        rawRequest('GET', '/DashBoard/api/summary', { Host, authorization: `Bearer ${token}` }),
      );
      if (status !== 200) wrong.push(`${Host} → ${status}`);
    }
    const missing = `GET /DashBoard/api/summary HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const twice = `DELETE /api/sessions HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const empty = rawRequest('GET', '/DashBoard/api/summary', { Host: '', authorization: `Bearer ${token}` });
    for (const request of [missing, empty]) {
      const { status } = await exchange(request);
      if (status !== 403 && status !== 400) wrong.push(`${JSON.stringify(request)} → ${status}`);
    }
    const { status } = await exchange(twice);
    t.comment(`two Host headers: ${status}`);
    t.same(failed(wrong), []);
  },
);

withBoth('a page of another origin is refused with and without the token', async (t, { exchange, port, token }) => {
  /** The first three for every route, all for some: the check comes before the route. */
  const foreign: readonly Record<string, string>[] = [
    { origin: 'null' },
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { origin: 'http://127.0.0.1:1' },
    { origin: `http://localhost:${port}` },
    { origin: `http://127.0.0.1:${port}/` },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'anything' },
    { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site', origin: `http://127.0.0.1:${port}` },
  ];
  const wrong: string[] = [];
  for (const path of paths.filter((each) => !/^\/dashboard\/?$/i.test(each))) {
    const isChosen = ['/api/sessions', '/dashboard/api/sessions', '/v1/inspect', '/nothing'].includes(path);
    for (const headers of isChosen ? foreign : foreign.slice(0, 3)) {
      for (const method of ['GET', 'DELETE', 'OPTIONS']) {
        const asked = { Host: `127.0.0.1:${port}`, authorization: `Bearer ${token}`, ...headers };
        const { status, body } = await exchange(rawRequest(method, path, asked));
        if (status !== 403) wrong.push(`${method} ${path} ${JSON.stringify(headers)} → ${status} ${body.slice(0, 80)}`);
      }
    }
  }
  t.same(failed(wrong), []);
  const ours = { Host: `127.0.0.1:${port}`, authorization: `Bearer ${token}`, 'sec-fetch-site': 'same-origin' };
  const own = await exchange(rawRequest('GET', '/DashBoard/api/summary', ours));
  t.equal(own.status, 200);
  const link = { Host: `127.0.0.1:${port}`, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
  t.equal((await exchange(rawRequest('GET', '/DashBoard', link))).status, 200, 'a link to the page works');
});

withBoth('another spelling of a path does not match the route', async (t, { exchange, token, say, ask }) => {
  const sessionKey = await say('echo one');
  const wrong: string[] = [];
  for (const path of tricks) {
    for (const headers of [{}, { authorization: `Bearer ${token}` }]) {
      const { status } = await exchange(rawRequest('DELETE', path, headers));
      if (status < 400) wrong.push(`${path} → ${status}`);
    }
  }
  t.same(failed(wrong), []);
  const { body } = await ask('/DashBoard/api/sessions');
  t.match(body.sessions, [{ sessionKey }], 'nothing was deleted');
});

withBoth('the token is stored for its user only and in no answer', async (t, { home, token, ask, log, say, path }) => {
  t.equal(statSync(dashboardTokenFile(home, path)).mode & 0o777, 0o600);
  const sessionKey = await say(`echo ${token}`, `run: echo ${token}`);
  const places = [
    '/DashBoard',
    '/dashboard/api/page',
    '/DashBoard/api/summary',
    '/DashBoard/api/sessions',
    `/DashBoard/api/sessions/${sessionKey}/events?bodies=full`,
    '/dashboard/api/config',
    '/dashboard/api/config/schema',
    '/dashboard/api/logs',
    '/dashboard/api/nothing',
    `/DashBoard/api/sessions?limit=${token}`,
  ];
  for (const place of places) {
    const { text, headers } = await ask(place);
    t.notMatch(text + JSON.stringify([...headers]), token, place);
  }
  t.notMatch(log.join(''), token);
  t.notMatch(readFileSync(`${path}/.oratorio/appserver.lock`, 'utf8'), token);
  t.notMatch(readFileSync(lockFile(path), 'utf8'), token);
});

for (const adapter of ['uws', 'node'] satisfies Adapter[]) {
  t.test(`on ${adapter}`, async (t) => {
    process.env['ORATORIO_HTTP_ADAPTER'] = adapter;
    t.teardown(() => delete process.env['ORATORIO_HTTP_ADAPTER']);
    const served = await scene(t);
    const exchanges = new Exchanges(t, served.port);
    const stage = { ...served, exchange: (request: string) => exchanges.exchange(request) };
    for (const [name, play] of plays) await t.test(`${name} (${adapter})`, (t) => play(t, stage));
  });
}
