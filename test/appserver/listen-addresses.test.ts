/** Every address that a setting allows: the server answers at the address that it prints, for its WebSocket, its API, AG-UI and its page. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import t from 'tap';
import { startAppServer } from '../../src/appserver/index.ts';
import { AppServerClient, proveServer } from '../../src/client/index.ts';
import { userConfigFile } from '../../src/config/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { dashboardToken } from '../../src/supervise/index.ts';
import { place, start } from '../review/backend/process.ts';
import { makeWorkspace, readLock } from './harness.ts';
import { enginesOfServer } from './shared-engines.ts';

const logger = createLogger({ name: 'test', pretty: false, stream: { write: () => undefined } });
const addresses = [
  ['::1', '[::1]'],
  ['0:0:0:0:0:0:0:1', '[::1]'],
  ['127.0.0.2', '127.0.0.2'],
  ['localhost', 'localhost'],
] as const;

/** Status with a `Host` of the caller's choice, which `fetch` does not send. */
async function statusFor(url: string, host: string): Promise<number | undefined> {
  const sent = request(url, { headers: { host } }).end();
  const [answer] = await once(sent, 'response');
  answer.resume();
  return answer.statusCode;
}

for (const [host, shown] of addresses) {
  t.test(`an agent server on ${host} answers at every address that it prints`, async (t) => {
    const { path, home } = makeWorkspace(t);
    const listener = { Host: host, Port: 0 };
    const settings = { AppServer: { WebSocket: listener }, Api: { Enabled: true, ...listener }, DashBoard: listener };
    writeFileSync(userConfigFile(home), JSON.stringify({ ...settings, AgUi: { Enabled: true, ...listener } }));
    const server = await startAppServer({
      ...{ workspacePath: path, env: { ORATORIO_HOME: home }, logger, mode: 'gateway' },
      checkpointEngines: enginesOfServer(),
    });
    t.teardown(() => server.close());
    const { api = '', dashboard = '', agui = '' } = server.endpoints;
    const webSocket = readLock(path)?.endpoints.appServerWebSocket ?? '';
    for (const url of [api, dashboard, agui, server.baseUrl, webSocket]) t.equal(new URL(url).hostname, shown, url);
    t.equal((await fetch(`${api}/v1/health`)).status, 200);
    t.equal((await fetch(`${api}/v1/models`)).status, 200, 'its user needs no key there');
    t.equal((await fetch(dashboard)).status, 200);
    const proof = { role: 'dashboard', url: new URL(dashboard).origin, token: dashboardToken(home, path) } as const;
    await t.resolves(proveServer(proof), 'it proves itself at this address');
    t.equal((await fetch(`${server.baseUrl}/healthz`)).status, 200);
    const client = await AppServerClient.connect(webSocket, { clientInfo: { name: 'test', version: '1' } });
    client.close();
    for (const url of [`${api}/v1/health`, dashboard, `${server.baseUrl}/healthz`])
      t.equal(await statusFor(url, 'evil.example'), 403, 'another name is refused');
  });
}

// `localhost` and long spellings take the same path in the same function; a backend needs seconds to start.
for (const [host, shown] of addresses.filter(([host]) => host === '::1' || host === '127.0.0.2')) {
  t.test(`a review backend on ${host} answers at the address that it prints`, async (t) => {
    const here = place(t);
    here.configure({ Server: { Host: host } });
    const { url } = await start(t, here).ready;
    t.equal(new URL(url).hostname, shown);
    t.equal((await fetch(`${url}/health`)).status, 200);
    await t.resolves(proveServer({ role: 'backend', url, token: here.token() }));
    t.equal(await statusFor(`${url}/health`, 'evil.example'), 403);
  });
}
