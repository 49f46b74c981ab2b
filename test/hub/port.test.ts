/** The port of the Hub over its restarts. */
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { listenAtStablePort } from '../../src/hub/port.ts';
import { createLogger } from '../../src/log/index.ts';
import { defaults } from '../../src/protocol/index.ts';
import { temporaryDirectory } from './harness.ts';

function taken(code = 'EADDRINUSE'): Error {
  return Object.assign(new Error(code), { code });
}

/** Listens nowhere: `isTaken` decides. */
function scene(t: Parameters<typeof temporaryDirectory>[0], isTaken: (port: number) => boolean = () => false) {
  const statePath = temporaryDirectory(t);
  const tried: number[] = [];
  const log: string[] = [];
  const logger = createLogger({
    ...{ name: 'test', level: 'warn', pretty: false },
    stream: { write: (line: string) => log.push(line) },
  });
  const server = {
    async listen({ host, port }: { host: string; port: number }) {
      tried.push(port);
      if (isTaken(port)) throw taken();
      return { host, port: port === 0 ? 50_000 : port };
    },
  };
  const listen = (port = 0) => listenAtStablePort(server, { host: '127.0.0.1', port, statePath, logger });
  return { statePath, tried, log, listen };
}

t.test('the port of the first start is taken again', async (t) => {
  const { listen, statePath, tried, log } = scene(t);
  t.match(await listen(), { port: defaults.hub.firstPort });
  t.match(await listen(), { port: defaults.hub.firstPort });
  t.same(tried, [defaults.hub.firstPort, defaults.hub.firstPort]);
  t.equal(statSync(join(statePath, 'port.json')).mode & 0o777, 0o600);
  t.same(log, []);
});

t.test(
  'a port that is taken is left for the next free one, which is remembered, and the reason is logged',
  async (t) => {
    const busy = new Set<number>();
    const { listen, log } = scene(t, (port) => busy.has(port));
    const { port } = await listen();
    busy.add(port).add(port + 1);
    t.match(await listen(), { port: port + 2 });
    t.match(log.join(''), /cannot be had/);
    busy.clear();
    t.match(await listen(), { port: port + 2 }, 'it stays where the page has found it');
  },
);

t.test('the system chooses when all candidates are taken; a file without a port is written again', async (t) => {
  const { listen, statePath, log, tried } = scene(t, (port) => port !== 0);
  writeFileSync(join(statePath, 'port.json'), '{"version":1,"port":"x"}');
  t.match(await listen(), { port: 50_000 });
  t.equal(tried.length, defaults.hub.portTries + 1);
  t.match(log.join(''), /cannot be read/);
});

t.test('a port that the user has set is the only one tried', async (t) => {
  const { listen, tried } = scene(t, (port) => port === 4_000);
  await t.rejects(listen(4_000), { code: 'EADDRINUSE' });
  t.match(await listen(4_001), { port: 4_001 });
  t.same(tried, [4_000, 4_001]);
});

t.test('an error that another port does not cure ends the start', async (t) => {
  const { statePath } = scene(t);
  const logger = createLogger({ name: 'test', level: 'silent', pretty: false });
  const server = { listen: () => Promise.reject(taken('EADDRNOTAVAIL')) };
  await t.rejects(listenAtStablePort(server, { host: '192.0.2.1', port: 0, statePath, logger }), {
    code: 'EADDRNOTAVAIL',
  });
});
