/** Specification §4.2 rule 3, second half: with no Hub to trust, one is started, and the lock file is read again. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { type ConnectProgress, connectHub, hubLogFile } from '../../src/client/index.ts';
import { readIdentity } from '../../src/supervise/index.ts';
import { fakeHub, hubToken, lockOf, sendJson, statusOf, writeLock } from './fake-hub.ts';

const fixture = fileURLToPath(new URL('../fixtures/client/stand-in-hub.mjs', import.meta.url));
const hub = (...args: string[]) => ({ command: process.execPath, args: [fixture, ...args] });

const patient = { startTimeoutMs: 180_000, statusTimeoutMs: 120_000 };

/** A home of its own; the Hubs that were started there are ended with the test. */
function temporaryHome(t: Test): string {
  const home = mkdtempSync(join(tmpdir(), 'oratorio-client-'));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

/** Shell process that runs without serving until it is ended. It writes its pid to a file at once and needs no directory. */
const lingers = { command: 'sh', args: ['-c', 'echo $$ > "$ORATORIO_HOME/hub/pid"; exec sleep 600'] };

async function endLingering(home: string): Promise<void> {
  const file = join(home, 'hub', 'pid');
  const deadline = performance.now() + 180_000;
  while (!existsSync(file) || readFileSync(file, 'utf8') === '') {
    if (performance.now() > deadline) throw new Error('it has not written its pid');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const pid = Number(readFileSync(file, 'utf8'));
  process.kill(pid, 'SIGKILL');
  rmSync(file);
  await untilGone(pid);
}

async function untilGone(pid: number): Promise<void> {
  const deadline = performance.now() + 180_000;
  while (readIdentity(pid) !== 'gone') {
    if (performance.now() > deadline) throw new Error(`process ${pid} lives`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

t.test('a running Hub is used, and no other started', async (t) => {
  const running = await fakeHub((_, response) => sendJson(response, 200, statusOf(running.baseUrl)));
  t.teardown(() => running.close());
  const home = temporaryHome(t);
  writeLock(home, lockOf(running.baseUrl));
  const { started, hub: client } = await connectHub({
    home,
    ...patient,
    command: { command: 'does-not-exist', args: [] },
  });
  t.equal(started, false);
  t.equal(client.address.token, hubToken);
});

t.test('without auto-start the error has the reason', async (t) => {
  const home = temporaryHome(t);
  await t.rejects(connectHub({ home, autoStart: false }), {
    name: 'HubUnavailableError',
    message: /no Hub is running/,
  });
  writeLock(home, lockOf('http://127.0.0.1:1', { pid: 2 ** 22 + 1 }));
  await t.rejects(connectHub({ home, autoStart: false }), { message: /is not running any more/ });
});

t.test('a Hub is started in its own session, with a log readable by its owner only', async (t) => {
  const home = temporaryHome(t);
  // The address in the lock leads nowhere, so the client starts a Hub, which replaces it.
  writeLock(home, lockOf('http://127.0.0.1:1'));
  const progress: ConnectProgress['kind'][] = [];
  const {
    hub: client,
    status,
    started,
  } = await connectHub({
    home,
    command: hub('serve'),
    ...patient,
    onProgress: ({ kind }) => progress.push(kind),
  });
  t.teardown(() => untilGone(status.pid));
  t.equal(started, true);
  t.strictSame(progress, ['starting', 'found']);
  t.equal(statSync(hubLogFile(home)).mode & 0o777, 0o600);
  t.equal(statSync(join(home, 'hub')).mode & 0o777, 0o700);
  t.match(readFileSync(hubLogFile(home), 'utf8'), `home=${home} cwd=${home}`);
  await client.shutdown();
});

t.test('concurrent clients start one Hub', async (t) => {
  const home = temporaryHome(t);
  const connections = await Promise.all(
    Array.from({ length: 6 }, () => connectHub({ home, command: hub('serve'), ...patient })),
  );
  const pids = new Set(connections.map(({ status }) => status.pid));
  t.equal(pids.size, 1);
  const [first] = connections;
  await first?.hub.shutdown();
  for (const pid of pids) await untilGone(pid);
});

t.test('a Hub that does not start is an error with the reason and the end of its log', async (t) => {
  const home = temporaryHome(t);
  await t.rejects(connectHub({ home, command: hub('fail'), ...patient }), {
    name: 'HubUnavailableError',
    message: /ended with 3/,
    logTail: /the disk is on fire/,
  });
  writeFileSync(hubLogFile(home), `${'words of an earlier Hub '.repeat(9)}\n`, { flag: 'a' });
  const { logTail } = await connectHub({ home, command: hub('fail'), ...patient }).catch((error) => error);
  t.match(logTail, /^(?!.*earlier).*the disk is on fire/s, 'of this start only');
  await t.rejects(connectHub({ home, command: lingers, startTimeoutMs: 200 }), {
    message: /not ready after 200 ms/,
  });
  await endLingering(home);
  await t.rejects(connectHub({ home, command: { command: join(home, 'nothing-here'), args: [] } }), {
    name: 'HubUnavailableError',
    message: /cannot be started: .*ENOENT/,
  });
  await t.rejects(connectHub({ home, command: lingers, signal: AbortSignal.timeout(100) }), Error);
  await endLingering(home);
});
