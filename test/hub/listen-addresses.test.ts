/** Every address that `Hub.Host` allows: lock file, proof, events, commands and the page of a workspace work there. */
import { writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { discoverHub } from '../../src/client/index.ts';
import { runInProcess } from '../cli/in-process.ts';
import { makeWorkspace, startTestHub, temporaryDirectory } from './harness.ts';

/** Status of `GET path` with another `Host`, which `fetch` does not send. */
const statusFor = (base: string, path: string, host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest(`${base}${path}`, { headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.once('error', reject).end();
  });

for (const [host, shown] of [
  ['::1', '[::1]'],
  ['[::1]', '[::1]'],
  ['127.0.0.2', '127.0.0.2'],
  ['localhost', 'localhost'],
] as const) {
  t.test(`a Hub on ${host} is found, commanded and stopped at the address that it publishes`, async (t) => {
    const home = temporaryDirectory(t, 'oratorio-home-');
    writeFileSync(join(home, 'config.json'), JSON.stringify({ Hub: { Host: host } }));
    const hub = await startTestHub(t, { home });
    t.equal(new URL(hub.lock.apiBaseUrl).hostname, shown);
    t.match(await discoverHub({ home, statusTimeoutMs: 60_000 }), { kind: 'found' }, 'status and proof are right');
    t.equal(await statusFor(hub.lock.apiBaseUrl, '/v1/status', 'evil.example'), 403, 'another name is refused');
    const tap = await hub.events();
    const workspace = makeWorkspace(t);
    const { page } = await hub.ensure(workspace);
    await tap.wait('appserver.running');
    const summary = await hub.call('GET', `${page}DashBoard/api/summary`);
    t.equal(summary.status, 200, 'the page reaches the agent server');
    const listed = await runInProcess(home, 'hub', 'status');
    t.match(listed, { code: 0, stdout: shown });
    t.match(await runInProcess(home, 'list'), { code: 0, stdout: /ready/ });
    t.match(await runInProcess(home, 'hub', 'stop'), { code: 0 });
    t.match(await discoverHub({ home }), { kind: 'none' }, 'it has stopped');
  });
}
