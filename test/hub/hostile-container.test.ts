/** Files that the commands of a container can write, read by the Hub: they end no process of this machine, and hide no container. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { endRecordedProcesses } from '../../src/hub/leftovers.ts';
import { createLogger } from '../../src/log/index.ts';
import { acquireLock, processRecords, readIdentity, workspaceFiles } from '../../src/supervise/index.ts';
import { details, fakeEngine } from '../places/fake-engine.ts';
import { eventually, makeWorkspace, startTestHub, temporaryDirectory } from './harness.ts';

/** A process of the user that has nothing to do with Oratorio. */
function innocent(t: Test): { readonly child: ChildProcess; readonly identity: object } {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  const identity = readIdentity(child.pid ?? 0);
  if (typeof identity === 'string') throw new Error('it runs');
  return { child, identity };
}

const isAlive = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

t.test('regression: a record of processes from a container ends no process of this machine', async (t) => {
  const home = temporaryDirectory(t);
  const { child, identity } = innocent(t);
  const canonicalWorkspacePath = '/site';
  const records = processRecords(home, canonicalWorkspacePath);
  mkdirSync(records, { recursive: true });
  const record = { version: 1, owner: { ...identity, bootId: 'another' }, leader: identity, processes: [identity] };
  writeFileSync(`${records}/0.json`, JSON.stringify(record));
  const container = { kind: 'container', engine: '/e', id: 'x', image: 'i', pid: null, ports: {} } as const;
  const hub = { home, logger: createLogger({ name: 'test', pretty: false, stream: { write: () => undefined } }) };
  await endRecordedProcesses(hub, { canonicalWorkspacePath, server: { marker: 'm', identity: null, container } });
  t.ok(isAlive(child));
  t.notOk(existsSync(records), 'a later start beside the Hub does not read it');
});

/** Engine with at most one container, which ends when it is removed. */
async function engineWithOne(t: Test) {
  const engine = await fakeEngine(t);
  const state = { name: '', labels: {} as Record<string, string>, onRemoved: () => {} };
  engine.answer = async (request, response, incoming) => {
    const body = await text(incoming);
    const { name } = state;
    if (request.startsWith('DELETE')) {
      state.name = '';
      state.onRemoved();
    }
    if (request === 'POST /containers/create') {
      state.name = new URL(incoming.url ?? '', 'http://engine').searchParams.get('name') ?? '';
      state.labels = JSON.parse(body).Labels;
      response.writeHead(201).end('{"Id":"x"}');
    } else if (request === 'GET /containers/json')
      response.end(JSON.stringify(name === '' ? [] : [{ Id: 'x', Names: [`/${name}`], Labels: state.labels }]));
    else if (/^GET \/containers\/.*\/json$/.test(request)) {
      if (name === '') response.writeHead(404).end();
      else response.end(details(state.labels, true, 0, name));
    } else if (!request.endsWith('/wait')) response.end('{}');
  };
  return { engine, state };
}

const forgeries = [
  { about: 'names another start', forged: { incarnation: 'another' } },
  { about: 'does not prove its start', forged: { adoptionProof: null } },
  { about: 'publishes the address of another program', forged: {} },
  { about: 'publishes a text that is not an address', forged: { endpoints: { appServerWebSocket: 'nowhere' } } },
];
for (const { about, forged } of forgeries) {
  t.test(
    `regression: a container that ${about} is ended, not lost, and the Hub connects to nothing else`,
    async (t) => {
      const { engine, state } = await engineWithOne(t);
      const home = temporaryDirectory(t, 'oratorio-home-');
      const Container = { Engine: engine.socket, Image: 'i', AllowRoot: true };
      writeFileSync(`${home}/config.json`, JSON.stringify({ Place: { Container } }), { mode: 0o600 });
      const workspacePath = makeWorkspace(t);
      const first = await startTestHub(t, { home });
      first
        .call('POST', '/v1/appservers/ensure', { workspacePath, place: { kind: 'container' } })
        .catch(() => undefined);
      await eventually(() => engine.input.endsWith('\n') || undefined, 'the container has its launch document');
      await first.kill('SIGKILL');

      const { child, identity } = innocent(t);
      const outside = createServer();
      const visits: unknown[] = [];
      outside.on('connection', (socket) => visits.push(socket.destroy()));
      await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve));
      t.teardown(() => outside.close());
      const files = workspaceFiles(home, workspacePath);
      const lock = acquireLock(files.mutexPath);
      if (lock === 'held') throw new Error('the lock is free');
      state.onRemoved = () => lock.release();
      const { adoptionProof, incarnation } = JSON.parse(engine.input);
      const address = {
        ...{ version: 1, pid: child.pid, identity, workspacePath, managedByHub: true, adoptionProof, incarnation },
        ...{ startedAt: new Date().toISOString(), serverVersion: '1' },
        endpoints: { appServerWebSocket: `ws://127.0.0.1:${(outside.address() as AddressInfo).port}/?token=x` },
        ...forged,
      };
      writeFileSync(files.serverPath, JSON.stringify(address), { mode: 0o600 });
      engine.requests.length = 0;
      await startTestHub(t, { home });
      await eventually(
        () => engine.requests.includes('DELETE /containers/x') || undefined,
        () => `the container is removed: ${engine.requests.join(', ')}`,
      );
      t.ok(isAlive(child));
      t.same(visits, []);
    },
  );
}
