/** A Hub that was killed leaves its address behind: another user who takes the port gets neither token nor command. */
import { join } from 'node:path';
import t from 'tap';
import { connectHub, discoverHub, HubClient } from '../../src/client/index.ts';
import { acquireLock, lockHolder } from '../../src/supervise/index.ts';
import { makeWorkspace, startTestHub, temporaryDirectory } from '../hub/harness.ts';
import { stealPort } from '../port-thief.ts';
import { fakeHub, hubToken, lockOf, sendJson, statusOf, writeLock } from './fake-hub.ts';

const patient = { statusTimeoutMs: 60_000 };

t.test('regression: M8 a program that takes the port of a killed Hub gets neither token nor command', async (t) => {
  // Sockets of node:http let the kernel give their port away at once; those of uWebSockets.js only after a minute.
  const hub = await startTestHub(t, { env: { ORATORIO_HTTP_ADAPTER: 'node' } });
  const { home, lock } = hub;
  const workspacePath = makeWorkspace(t);
  const { hub: client } = await connectHub({ home, autoStart: false, ...patient });
  t.match(await client.ensure({ workspacePath }), { state: 'running' }, 'the real Hub takes commands');
  await client.stop(workspacePath);
  const leaving = new AbortController();
  const open = Promise.withResolvers<void>();
  const events = client.events({ acrossRestarts: true, signal: leaving.signal, onOpen: open.resolve });
  const reading = events.next();
  await open.promise;
  const status = await (await fetch(`${lock.apiBaseUrl}/v1/status`)).json();

  await hub.kill('SIGKILL');
  // The thief imitates every public property of the dead Hub except the pid. The lock below names the pid of the thief, as if
  // the other user had waited for a recycled number.
  const answers = { '/v1/status': { ...status, pid: 'OWN_PID' }, '*': { ok: true } };
  const thief = await stealPort({ port: Number(new URL(lock.apiBaseUrl).port), answers });
  t.teardown(() => thief.close());
  t.match(await discoverHub({ home, ...patient }), { why: 'processGone' }, 'the process has another start time');
  const { identity: _, ...earlierVersion } = lock;
  writeLock(home, { ...earlierVersion, pid: thief.pid });
  t.match(await discoverHub({ home, ...patient }), { kind: 'none', why: 'notProven' });

  await t.rejects(client.list(), { name: 'HubUnavailableError' });
  await t.rejects(client.ensure({ workspacePath }), { name: 'HubUnavailableError' });
  await t.rejects(connectHub({ home, autoStart: false, ...patient }), { name: 'HubUnavailableError' });
  const raw = new HubClient(lock);
  await t.rejects(raw.shutdown(), { name: 'HubUnavailableError', message: /did not prove itself/ });
  await thief.until(4);
  leaving.abort();
  await reading;
  for (const { line, text } of thief.requests) {
    t.notMatch(text, lock.token, line);
    t.notMatch(text, workspacePath, line);
    t.match(line, /^GET \/v1\/(status|proof)$/, 'questions only');
  }
});

t.test('a Hub without a proof route is accepted only while its process holds the mutex', async (t) => {
  const home = temporaryDirectory(t);
  const hub = await fakeHub((request, response) => {
    if (request.url?.startsWith('/v1/proof'))
      sendJson(response, 404, { error: { code: 'notFound', message: '', details: null } });
    else sendJson(response, 200, statusOf(hub.baseUrl));
  }, null);
  t.teardown(() => hub.close());
  writeLock(home, lockOf(hub.baseUrl));
  t.match(await discoverHub({ home, ...patient }), { kind: 'none', why: 'notProven', message: /has no proof route/ });
  const lock = acquireLock(join(home, 'hub', 'hub.mutex'));
  if (lock === 'held') throw new Error('another process holds the lock');
  t.teardown(() => lock.release());
  const isListed = lockHolder(lock.file) === process.pid;
  t.equal(isListed, process.platform === 'linux', 'the kernel lists the holder');
  t.equal((await discoverHub({ home, ...patient })).kind, isListed ? 'found' : 'none');
  lock.release();
  t.equal((await discoverHub({ home, ...patient })).kind, 'none');
  t.ok(hub.requests.every(({ headers }) => headers.authorization === undefined));
});

t.test('a Hub without a proof, or with one of another token, is not found', async (t) => {
  const home = temporaryDirectory(t);
  const impostor = await fakeHub(
    (_, response) => sendJson(response, 200, statusOf(impostor.baseUrl)),
    ['another-token-altogether'],
  );
  t.teardown(() => impostor.close());
  writeLock(home, lockOf(impostor.baseUrl));
  t.match(await discoverHub({ home, ...patient }), { why: 'notProven', message: /does not know the token/ });
  const babbler = await fakeHub((_, response) => sendJson(response, 200, statusOf(babbler.baseUrl)), null);
  t.teardown(() => babbler.close());
  writeLock(home, lockOf(babbler.baseUrl));
  t.match(await discoverHub({ home, ...patient }), { why: 'notProven', message: /not a proof/ });
  const right = await fakeHub((_, response) => sendJson(response, 200, statusOf(right.baseUrl)), [hubToken]);
  t.teardown(() => right.close());
  writeLock(home, lockOf(right.baseUrl));
  t.match(await discoverHub({ home, ...patient }), { kind: 'found' });
});
