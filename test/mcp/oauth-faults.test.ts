/** Authorization servers that answer wrongly, or for another server. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { beginLogin, McpFailure } from '../../src/mcp/index.ts';
import type { McpServerAuth } from '../../src/protocol/index.ts';
import { program, programEnvironment } from '../programs.ts';
import { http, inState, quick, reached, room } from './helpers.ts';
import { fileFor, logIn } from './oauth-helpers.ts';
import { json, OddAuthServer } from './odd-auth-server.ts';

async function place(t: Test, auth?: McpServerAuth) {
  const server = await OddAuthServer.start(t);
  const settings = http(server.url, { auth });
  const home = join(t.testdir(), 'home');
  /** The failure of a log-in. */
  const failure = async (): Promise<McpFailure> => {
    try {
      await logIn({ home }, settings);
    } catch (error) {
      if (error instanceof McpFailure) return error;
      throw error;
    }
    throw new Error('the log-in succeeded');
  };
  return { server, settings, home, failure, file: fileFor({ home }, server.url) };
}

t.test('a log-in sends PKCE, state, resource and the registered client', async (t) => {
  const { server, settings, home, file } = await place(t);
  await logIn({ home }, settings);
  const [authorize] = server.seen('/authorize');
  t.match(Object.fromEntries(authorize?.url.searchParams ?? []), {
    client_id: 'registered',
    code_challenge_method: 'S256',
    code_challenge: /^[\w-]{43}$/,
    state: /^[\w-]{43}$/,
    resource: server.url,
    redirect_uri: /^http:\/\/127\.0\.0\.1:\d+\/callback$/,
  });
  const [token] = server.seen('/token');
  t.match(Object.fromEntries(new URLSearchParams(token?.body)), {
    grant_type: 'authorization_code',
    code: 'code-secret-1',
    code_verifier: /^[\w.~-]{43,128}$/,
    resource: server.url,
  });
  t.match(file.read(), { serverUrl: server.url, issuer: server.origin, accessToken: 'access-secret-1' });
});

t.test('a client of the settings is not registered, and its scopes are requested', async (t) => {
  const { server, settings, home } = await place(t, { type: 'oauth', clientId: 'mine', scopes: ['read', 'write'] });
  await logIn({ home }, settings);
  t.equal(server.seen('/register').length, 0);
  const params = server.seen('/authorize')[0]?.url.searchParams;
  t.match([params?.get('client_id'), params?.get('scope')], ['mine', 'read write']);
});

t.test('a client metadata document is used where the authorization server reads it', async (t) => {
  const clientId = 'https://apps.example.com/oratorio.json';
  const { server, settings, home, failure } = await place(t, { type: 'oauth', clientId });
  server.metadata = { client_id_metadata_document_supported: true };
  await logIn({ home }, settings);
  t.equal(server.seen('/register').length, 0);
  t.equal(server.seen('/authorize')[0]?.url.searchParams.get('client_id'), clientId);
  server.metadata = { registration_endpoint: undefined };
  t.match(await failure(), { message: /does not support client metadata documents\. Register a client there/ });
});

for (const [name, prepare, expected] of [
  ['metadata of another issuer', { metadata: { issuer: 'https://evil.example.com' } }, /issuer mismatch/],
  ['no PKCE', { metadata: { code_challenge_methods_supported: ['plain'] } }, /does not offer PKCE/],
  [
    'an unencrypted token endpoint',
    { metadata: { token_endpoint: 'http://evil.example.com/t' } },
    /does not use https/,
  ],
  [
    'an unencrypted authorization endpoint',
    { metadata: { authorization_endpoint: 'http://evil.example.com/a' } },
    /does not use https/,
  ],
  ['a program as authorization endpoint', { metadata: { authorization_endpoint: 'file:///bin/sh' } }, /invalid|https/],
  [
    'a program behind another scheme',
    { metadata: { authorization_endpoint: 'vscode://localhost/open' } },
    /does not use https/,
  ],
  [
    'metadata for another resource',
    { resourceMetadata: { resource: 'https://other.example.com/mcp' } },
    /another address/,
  ],
  [
    'an unencrypted issuer',
    { resourceMetadata: { authorization_servers: ['http://evil.example.com'] } },
    /does not use https/,
  ],
  [
    'no client registration',
    { metadata: { registration_endpoint: undefined } },
    /does not register clients.*auth\.clientId/,
  ],
  ['a redirect with the iss of another server', { redirect: { iss: 'https://evil.example.com' } }, /issuer mismatch/],
  ['a redirect without the promised iss', { redirect: { iss: undefined } }, /issuer mismatch/],
  ['an error of another server', { redirect: { iss: 'https://evil.example.com', error: 'x' } }, /issuer mismatch/],
  ['a refusal of the user', { redirect: { code: undefined, error: 'access_denied' } }, /access_denied/],
] as const) {
  t.test(`${name} ends the log-in before a code is redeemed`, async (t) => {
    const { server, failure, file } = await place(t);
    Object.assign(server, prepare);
    const { message } = await failure();
    t.match(message, expected);
    t.notMatch(message, /evil\.example\.com.*secret|code-secret/);
    t.equal(server.seen('/token').length, 0);
    t.equal(file.read(), undefined);
  });
}

for (const [name, answer] of [
  ['rubbish', '<html>access-secret-1'],
  ['a huge body', `{"access_token":"${'x'.repeat(2 ** 20)}"}`],
  ['no token', '{"token_type":"Bearer"}'],
  ['an error that repeats the code', '{"error":"code-secret-1","error_description":"code-secret-1"}'],
] as const) {
  t.test(`a token endpoint that answers with ${name} ends the log-in`, async (t) => {
    const { server, failure, file } = await place(t);
    server.answers.set('/token', (_, response) => response.writeHead(200).end(answer));
    t.notMatch((await failure()).message, /secret|xxxx|html/);
    t.equal(file.read(), undefined);
  });
}

t.test('regression: H54 an authorization server that redirects elsewhere is not followed', async (t) => {
  const { server, failure } = await place(t);
  const other = await OddAuthServer.start(t);
  for (const path of ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration']) {
    server.answers.set(path, (_, response) => response.writeHead(302, { location: `${other.origin}${path}` }).end());
  }
  t.match((await failure()).message, /has no metadata/);
  t.equal(other.requests.length, 0);
});

t.test('a token endpoint that redirects gets the code, and no other server does', async (t) => {
  const { server, failure } = await place(t);
  const other = await OddAuthServer.start(t);
  server.answers.set('/token', (_, response) => response.writeHead(307, { location: `${other.origin}/token` }).end());
  await failure();
  t.equal(other.requests.length, 0);
});

t.test('a redirect with another state, method, path or host is refused, and the log-in continues', async (t) => {
  const { server, settings, home } = await place(t);
  const login = await beginLogin({ home, settings, signal: new AbortController().signal });
  t.teardown(() => login.close());
  const finished = login.finished();
  const { searchParams } = new URL(login.url);
  const redirect = new URL(searchParams.get('redirect_uri') ?? '');
  const state = searchParams.get('state') ?? '';
  const ask = async (query: string, { path = redirect.pathname, method = 'GET', host = redirect.host } = {}) => {
    const url = new URL(`${path}?${query}`, redirect);
    const { default: undici } = await import('undici');
    const { statusCode, body } = await undici.request(url, { method: method as 'GET', headers: { host } });
    return { statusCode, text: await body.text() };
  };
  t.match(await ask('code=stolen&state=wrong'), { statusCode: 400 });
  t.match(await ask('code=stolen'), { statusCode: 400 });
  t.match(await ask(`code=stolen&state=${state}&state=x`), { statusCode: 400 });
  t.match(await ask(`code=stolen&state=${state}`, { path: '/' }), { statusCode: 404 });
  t.match(await ask(`code=stolen&state=${state}`, { method: 'POST' }), { statusCode: 404 });
  t.match(await ask(`code=stolen&state=${state}`, { host: 'evil.example.com' }), { statusCode: 404 });
  const good = `code=code-secret-1&state=${state}&iss=${encodeURIComponent(server.origin)}`;
  t.match(await ask(good), { statusCode: 200, text: 'Logged in. You can close this page.\n' });
  await finished;
  await t.rejects(ask(good), 'the listener is gone');
});

t.test('a pasted redirect address of this log-in ends the log-in', async (t) => {
  const { server, settings, home } = await place(t);
  const login = await beginLogin({ home, settings, signal: new AbortController().signal });
  t.teardown(() => login.close());
  const finished = login.finished();
  const { searchParams } = new URL(login.url);
  const state = searchParams.get('state') ?? '';
  const redirect = new URL(searchParams.get('redirect_uri') ?? '');
  redirect.search = `${new URLSearchParams({ code: 'code-secret-1', state, iss: server.origin })}`;
  const other = (change: (url: URL) => void) => {
    const url = new URL(redirect);
    change(url);
    return login.paste(url.href);
  };
  t.match(login.paste('no address'), /does not belong to this log-in\. Paste the address that begins with http:/);
  t.match(
    other((url) => {
      url.port = '1';
    }),
    /does not belong to this log-in/,
  );
  t.match(
    other((url) => {
      url.pathname = '/other';
    }),
    /does not belong to this log-in/,
  );
  t.match(
    other((url) => url.searchParams.set('state', 'wrong')),
    /belongs to another log-in/,
  );
  t.match(
    other((url) => url.searchParams.append('state', 'x')),
    /belongs to another log-in/,
  );
  t.equal(login.paste(` ${redirect.href}\n`), undefined);
  t.match(login.paste(redirect.href), /already received its answer/);
  t.match(await finished, { accessToken: 'access-secret-1' });
});

t.test('a pasted address of another authorization server fails the log-in before its code is redeemed', async (t) => {
  const { server, settings, home } = await place(t);
  const login = await beginLogin({ home, settings, signal: new AbortController().signal });
  t.teardown(() => login.close());
  const { searchParams } = new URL(login.url);
  const redirect = new URL(searchParams.get('redirect_uri') ?? '');
  const state = searchParams.get('state') ?? '';
  redirect.search = `${new URLSearchParams({ code: 'code-secret-1', state, iss: 'https://evil.example' })}`;
  const finished = login.finished();
  t.equal(login.paste(redirect.href), undefined);
  await t.rejects(finished, McpFailure);
  t.equal(server.seen('/token').length, 0);
});

t.test('a path that is not a URL and a silent connection end neither the log-in nor its process', async (t) => {
  const { server, settings, home } = await place(t);
  const login = await beginLogin({ home, settings, signal: new AbortController().signal });
  t.teardown(() => login.close());
  const finished = login.finished();
  const { searchParams } = new URL(login.url);
  const redirect = new URL(searchParams.get('redirect_uri') ?? '');
  const open = async () => {
    const socket = connect(Number(redirect.port), redirect.hostname);
    t.teardown(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  const odd = await open();
  odd.end(`GET // HTTP/1.1\r\nhost: ${redirect.host}\r\n\r\n`);
  t.match(await text(odd), /^HTTP\/1\.1 404 /);
  const cut = once((await open()).resume(), 'close');
  redirect.search = `${new URLSearchParams({ code: 'code-secret-1', state: searchParams.get('state') ?? '', iss: server.origin })}`;
  t.equal(await fetch(redirect).then((response) => response.text()), 'Logged in. You can close this page.\n');
  t.match(await finished, { accessToken: 'access-secret-1' });
  await cut;
});

t.test('an ended log-in listens no longer', async (t) => {
  const { settings, home } = await place(t);
  const ending = new AbortController();
  const login = await beginLogin({ home, settings, signal: ending.signal });
  t.teardown(() => login.close());
  const finished = login.finished();
  ending.abort();
  await t.rejects(finished, { message: 'The log-in was ended.' });
  await t.rejects(fetch(new URL(login.url).searchParams.get('redirect_uri') ?? ''));
});

t.test('a server without encryption elsewhere gets no log-in', async (t) => {
  const settings = http('http://tracker.example.com/mcp');
  const home = t.testdir();
  await t.rejects(beginLogin({ home, settings, signal: new AbortController().signal }), {
    message: 'http://tracker.example.com does not use https: nothing is sent there. Correct the url.',
  });
});

t.test('regression: H54 a token of one server is not used for another one, nor from a damaged file', async (t) => {
  const { settings, home, server, file } = await place(t);
  await logIn({ home }, settings);
  const other = fileFor({ home }, `${server.origin}/other`);
  mkdirSync(dirname(other.path), { recursive: true });
  writeFileSync(other.path, readFileSync(file.path));
  t.equal(other.read(), undefined);
  writeFileSync(file.path, '{"version":1');
  t.equal(file.read(), undefined);
  chmodSync(file.path, 0o600);
});

t.test('a renewal that fails for now keeps the tokens, and is tried again', async (t) => {
  const server = await OddAuthServer.start(t);
  const mcp = room(t, { odd: http(server.url) }, { restartPolicy: { ...quick, maxRestarts: 2 } });
  await logIn(mcp, http(server.url));
  server.answers.set('/token', (_, response) => json(response, { error: 'temporarily_unavailable' }, 503));
  mcp.servers.start();
  const failed = await inState(mcp, 'odd', 'failed');
  t.match(failed.lastError, /refused for now: temporarily_unavailable/);
  t.match(fileFor(mcp, server.url).read(), { refreshToken: 'refresh-secret-1' });
  t.notMatch(JSON.stringify([mcp.logged, mcp.statuses]), /secret/);
});

t.test('a server that refuses each new token needs a log-in, without a loop', async (t) => {
  const server = await OddAuthServer.start(t);
  const mcp = room(t, { odd: http(server.url) }, { restartPolicy: quick });
  await logIn(mcp, http(server.url));
  let issued = 1;
  server.answers.set('/token', (_, response) => {
    issued += 1;
    // A clock that is wrong: the token has expired before it is used.
    json(response, { access_token: `access-secret-${issued}`, token_type: 'Bearer', expires_in: -1 });
  });
  mcp.servers.start();
  await reached(mcp, 'odd', ({ startupState }) => startupState === 'needsLogin');
  t.equal(issued, 2, 'it was renewed once');
  t.match(fileFor(mcp, server.url).read(), { accessToken: 'access-secret-2', refreshToken: 'refresh-secret-1' });
});

t.test('a token without a demanded scope names the scope and the log-in', async (t) => {
  const server = await OddAuthServer.start(t);
  const mcp = room(t, { odd: http(server.url) }, { restartPolicy: quick });
  await logIn(mcp, http(server.url));
  const challenge = 'Bearer error="insufficient_scope", scope="issues:write"';
  server.answers.set('/mcp', (_, response) => response.writeHead(403, { 'www-authenticate': challenge }).end());
  mcp.servers.start();
  t.match(await inState(mcp, 'odd', 'failed'), {
    lastError: 'The server demands more scopes (issues:write): add them to auth.scopes, then: oratorio mcp login odd',
  });
});

t.test('processes that renew one token at once renew it once', async (t) => {
  const { server, settings, home, file } = await place(t);
  await logIn({ home }, settings);
  let issued = 1;
  server.answers.set('/token', ({ body }, response) => {
    const { refresh_token: used } = Object.fromEntries(new URLSearchParams(body));
    // A refresh token serves once.
    if (used !== `refresh-secret-${issued}`) return json(response, { error: 'invalid_grant' }, 400);
    issued += 1;
    const [access_token, refresh_token] = [`access-secret-${issued}`, `refresh-secret-${issued}`];
    json(response, { access_token, refresh_token, token_type: 'Bearer' });
  });
  const renewals = Array.from({ length: 3 }, async () => {
    const child = spawn(process.execPath, [program('test/fixtures/mcp/renews-token.ts'), home, server.url], {
      env: { ...programEnvironment, NODE_OPTIONS: '--conditions=development --disable-warning=ExperimentalWarning' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [exited, output] = [once(child, 'exit'), text(child.stdout)];
    return { child, exited, output };
  });
  const children = await Promise.all(renewals);
  for (const { child } of children) child.stdin.end();
  for (const { exited, output } of children) {
    t.same(await exited, [0, null]);
    t.equal(await output, 'access-secret-2\n');
  }
  t.equal(issued, 2);
  t.match(file.read(), { refreshToken: 'refresh-secret-2' });
});
