/** Decision of an idle agent server whether to sleep, while connections arrive. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import { startAppServer } from '../../src/appserver/index.ts';
import { AppServerClient } from '../../src/client/index.ts';
import { userConfigFile } from '../../src/config/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { makeWorkspace, readLock } from './harness.ts';
import { enginesOfServer } from './shared-engines.ts';

const logger = createLogger({ name: 'test', pretty: false, stream: { write: () => undefined } });

async function start(t: Test) {
  const { path, home } = makeWorkspace(t);
  const address = { Host: '127.0.0.1', Port: 0 };
  writeFileSync(userConfigFile(home), JSON.stringify({ Provider: 'demo', Api: { Enabled: true, ...address } }));
  const server = await startAppServer({
    ...{ workspacePath: path, env: { ORATORIO_HOME: home }, logger, mode: 'gateway' },
    checkpointEngines: enginesOfServer(),
  });
  t.teardown(() => server.close());
  const webSocket = readLock(path)?.endpoints.appServerWebSocket ?? '';
  const token = new URL(webSocket).searchParams.get('token') ?? '';
  const ask = (body: unknown = { idleMs: 0 }, bearer = token) =>
    fetch(`${server.baseUrl}/v1/sleep`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${bearer}`, connection: 'close' },
      body: JSON.stringify(body),
    });
  const sleeps = async (idleMs = 0) => ((await (await ask({ idleMs })).json()) as { sleeps: boolean }).sleeps;
  return { server, api: server.endpoints.api ?? '', webSocket, ask, sleeps };
}

/** `answered`, or the reason that it was not. */
async function visit(url: string): Promise<string> {
  try {
    await (await fetch(url, { headers: { connection: 'close' } })).text();
    return 'answered';
  } catch (error) {
    return ((error as Error).cause as NodeJS.ErrnoException).code ?? 'unknown';
  }
}

t.test('a server stays awake for a client, an open connection and recent use, and answers again', async (t) => {
  const { api, webSocket, ask, sleeps, server } = await start(t);
  t.equal((await ask({ idleMs: 0 }, 'wrong')).status, 401);
  t.equal((await ask({ idleMs: -1 })).status, 400);
  t.equal(await sleeps(60_000), false, 'it was used a moment ago');
  const client = await AppServerClient.connect(webSocket);
  t.equal(await sleeps(), false, 'a client is connected');
  client.close();
  const silent = connect({ host: '127.0.0.1', port: Number(new URL(api).port) });
  await once(silent, 'connect');
  t.equal(await sleeps(), false, 'a request may follow on an open connection');
  t.equal(await visit(`${api}/v1/health`), 'answered');
  t.equal(await visit(`${server.baseUrl}/readyz`), 'answered');
  silent.destroy();
});

t.test('a server that agrees to sleep resets no connection that it has accepted', async (t) => {
  const { api, sleeps, server } = await start(t);
  for (let agreed = false; !agreed; ) {
    const visits = Array.from({ length: 20 }, () => visit(`${api}/v1/health`));
    agreed = await sleeps();
    const results = await Promise.all(visits);
    t.same(
      results.filter((each) => each !== 'answered' && each !== 'ECONNREFUSED'),
      [],
    );
    agreed ||= await sleeps();
  }
  await server.asleep;
  t.equal(await visit(`${api}/v1/health`), 'ECONNREFUSED', 'the Hub listens there now');
});
