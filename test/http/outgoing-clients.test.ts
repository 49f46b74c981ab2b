/** Each client of the product that leaves this machine uses the proxy of the environment, and none does so for this machine. */
import { execFileSync } from 'node:child_process';
import { createECDH, generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import tls from 'node:tls';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import t, { type Test } from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { refreshCatalogue } from '../../src/agent/providers/catalogue/refresh.ts';
import { OpenAiProvider } from '../../src/agent/providers/openai.ts';
import { search } from '../../src/agent/tools/web/search/search.ts';
import { findRelease, releaseAddress } from '../../src/cli/update/index.ts';
import { repositoryNamed } from '../../src/deploy/files/index.ts';
import { createAppClient, readApp } from '../../src/deploy/github/index.ts';
import { asReported } from '../../src/deploy/operations/place-repository.ts';
import { createTransport } from '../../src/github/index.ts';
import { sendToNtfy } from '../../src/hub/notices/ntfy.ts';
import { sendPush } from '../../src/hub/notices/push/send.ts';
import { createLogger } from '../../src/log/index.ts';
import { openHttpLink } from '../../src/mcp/http-link.ts';
import { ListReview } from '../../src/mcp/list-review.ts';
import { ExportNumbers } from '../../src/telemetry/export-numbers.ts';
import { createExporter } from '../../src/telemetry/exporter.ts';

const { signal } = new AbortController();
const directory = t.testdir();
/** A name that only the proxy resolves. Each client has its own, because tunnels stay open. */
const hostOf = (client: string) => `${client.toLowerCase().replaceAll(' ', '-')}.example.test`;

function certificate(): { key: string; cert: string } {
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', '/CN=far', '-addext', `subjectAltName=DNS:*.example.test`];
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert, ...names], { stdio: 'ignore' });
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}

async function portOf(t: Test, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  t.teardown(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const authority = certificate();
/** Requests: `proxy` for a plain one at the proxy, `tunnel` for CONNECT, `tls` behind it, `direct` at a server of this machine. */
let seen: string[] = [];
const noting =
  (way: string): RequestListener =>
  (request, response) => {
    const { pathname, host: named } = new URL(request.url ?? '/', `http://${request.headers.host}`);
    seen.push(`${way} ${named} ${pathname}`);
    request.resume();
    response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
  };
const tlsPort = await portOf(t, createHttpsServer(authority, noting('tls')));
const ownPort = await portOf(t, createHttpServer(noting('direct')));
const proxy = createHttpServer(noting('proxy'));
proxy.on('connect', (request, client: Socket, head: Buffer) => {
  seen.push(`tunnel ${request.url}`);
  const inner = connect(tlsPort, '127.0.0.1', () => {
    client.write('HTTP/1.1 200 OK\r\n\r\n');
    inner.write(head);
    client.pipe(inner).pipe(client);
  });
  for (const each of [client, inner]) each.on('error', () => {});
  client.once('close', () => inner.destroy());
});
const proxyUrl = `http://127.0.0.1:${await portOf(t, proxy)}`;

const authorities = tls.getCACertificates('default');
tls.setDefaultCACertificates([...authorities, authority.cert]);
t.teardown(() => tls.setDefaultCACertificates(authorities));
const variables = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'].flatMap((name) => [name, name.toUpperCase()]);
const before = variables.map((name) => [name, process.env[name]] as const);
for (const name of variables) delete process.env[name];
Object.assign(process.env, { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl });
t.teardown(() => {
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
});

const logger = createLogger({ name: 'test', level: 'silent' });
const notice = {
  ...{ id: 'n1', title: 'title', body: 'body', inboxPath: '/', actionUrl: 'http://127.0.0.1/', expiresAt: Date.now() },
};
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const appKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const point = () => {
  const curve = createECDH('prime256v1');
  curve.generateKeys();
  return { publicKey: curve.getPublicKey('base64url'), privateKey: curve.getPrivateKey('base64url') };
};

/** One request of each client to a server at `base`. Its answer is 404, so that the result does not matter. */
const clients: Readonly<Record<string, (base: string) => Promise<unknown>>> = {
  async 'model provider'(base) {
    const provider = new OpenAiProvider({ endPoint: `${base}/v1`, apiKey: 'key', model: 'm', proxy: '' });
    const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }];
    await provider.stream({ messages }, () => {}, signal).finally(() => provider.close());
  },
  'list of models': (base) => refreshCatalogue({ home: directory, url: `${base}/models.json`, signal }),
  async MCP(base) {
    const settings = { transport: 'streamableHttp', url: `${base}/mcp`, envHttpHeaders: {} } as unknown;
    const link = openHttpLink(
      settings as Parameters<typeof openHttpLink>[0],
      {},
      {
        makeTransport: (...args) => new StreamableHTTPClientTransport(...args),
        lists: new ListReview(1_000),
      },
    );
    await new Client({ name: 'test', version: '1' }).connect(link.transport).finally(() => link.terminate());
  },
  async OTLP(base) {
    const settings = { Endpoint: base, Headers: {} };
    const numbers = new ExportNumbers(logger);
    const exporter = createExporter({ settings, resource: {}, version: '1', numbers });
    exporter.tracer.startSpan('span').end();
    await exporter.shutdown();
  },
  async 'GitHub of the review backend'(base) {
    const limits = { requestTimeoutMs: 60_000, answerBytes: 1_000 };
    await createTransport(base, limits, { stop: signal, onRequest: () => {} })(`${base}/app`, {});
  },
  'GitHub of the deployment': (base) =>
    readApp(createAppClient({ endpoint: base, appId: '1', privateKey: appKey, timeoutMs: 60_000 })),
  'spelling of a repository': (base) =>
    asReported(repositoryNamed('octo/app'), { endpoint: base, app: null }, { signal }),
  ntfy: (base) => sendToNtfy({ Url: `${base}/topic`, Token: '' }, notice, signal),
  WebSearch: (base) =>
    search(
      { query: 'words', maxResults: 1 },
      { provider: 'searxng', url: base, apiKey: '', timeoutMs: 60_000, maxBytes: 1_000, secrets: [] },
      { signal } as Parameters<typeof search>[2],
    ),
};

/** Web push sends to https at the usual port of a public host only. */
const push = (base: string) => {
  const keys = { p256dh: point().publicKey, auth: randomBytes(16).toString('base64url') };
  const network = {
    resolve: async () => {
      throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
    },
    isPublic: () => true,
    request: {},
  };
  const sender = { keys: point(), subject: 'mailto:me@example.com', network };
  return sendPush(sender, { endpoint: `${base}/push`, keys }, notice, signal);
};

/** Requests that the proxy and the servers have seen during one call. */
async function requestsOf(client: (base: string) => Promise<unknown>, base: string): Promise<readonly string[]> {
  seen = [];
  await client(base).catch(() => {});
  return seen;
}

for (const [name, client] of Object.entries(clients)) {
  t.test(
    `${name}: requests leave through the proxy, with TLS in a tunnel, and reach this machine directly`,
    async (t) => {
      const host = hostOf(name);
      const plain = await requestsOf(client, `http://${host}`);
      t.ok(plain.length > 0, 'a request was made');
      for (const each of plain) t.ok(each.startsWith(`proxy ${host} /`), each);
      const [tunnel, ...inner] = await requestsOf(client, `https://${host}`);
      t.equal(tunnel, `tunnel ${host}:443`);
      t.ok(inner.length > 0, 'TLS was set up with the server behind the proxy');
      for (const each of inner) t.match(each, new RegExp(`^(tls ${host} /|tunnel ${host}:443$)`));
      const own = await requestsOf(client, `http://127.0.0.1:${ownPort}`);
      t.ok(own.length > 0);
      for (const each of own) t.ok(each.startsWith(`direct 127.0.0.1:${ownPort} /`), each);
    },
  );
}

t.test('web push: requests leave through the proxy, which resolves the name', async (t) => {
  const host = hostOf('push');
  t.same(await requestsOf(push, `https://${host}`), [`tunnel ${host}:443`, `tls ${host} /push`]);
});

t.test('self-update: requests go through the proxy, in a tunnel', async (t) => {
  const host = hostOf('release');
  const find = (base: string) => findRelease(releaseAddress(base), directory, signal);
  t.same(await requestsOf(find, `https://${host}`), [`tunnel ${host}:443`, `tls ${host} /SHA256SUMS`]);
});

t.test('a client without the proxy is noticed', async (t) => {
  t.same(await requestsOf((base) => fetch(base), `http://${hostOf('none')}`), []);
});

t.test('every file that makes requests of its own uses the proxy, or asks this machine only', (t) => {
  /** Servers of this machine, addresses that are checked first (WebFetch, gateway of the stack), or the user's cluster. */
  const direct = [
    'src/cli/commands/backend-api.ts',
    'src/client/app-server-client.ts',
    'src/deploy/doctor/checks/backend.ts',
    'src/deploy/doctor/gateway.ts',
    'src/deploy/operations/status.ts',
    'src/hub/pages/forward.ts',
    'src/hub/pages/tunnel.ts',
    'src/lib/local-http.ts',
    'src/places/engine-api.ts',
    'src/places/kube-api.ts',
    'src/review/demo/source.ts',
  ];
  const makesRequests =
    /(?<![.\w#])fetch\(|new WebSocket\(|import (?!type)[^;]*\b(?:request|get|Agent)\b[^;]* from 'node:https?'|import\('node:https?'\)|getBuiltinModule\('node:https?'\)/;
  const usesProxy = /\b(?:outgoingFetch|throughProxy)\(/;
  const found = globSync('src/**/*.ts', { cwd: root }).filter((file) => {
    if (/^src\/(?:ui|http)\//.test(file)) return false;
    const text = readFileSync(join(root, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
    return makesRequests.test(text) && !usesProxy.test(text);
  });
  t.same(found.toSorted(), direct);
  t.end();
});
