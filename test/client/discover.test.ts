/** Specification §4.2 rule 3: the lock file is believed only after the process and the status agree with it. */
import { spawn } from 'node:child_process';
import t, { type Test } from 'tap';
import { discoverHub, type NoHubReason } from '../../src/client/index.ts';
import { unusedPort } from '../ports.ts';
import { fakeHub, hubToken, lockOf, sendJson, statusOf, writeLock } from './fake-hub.ts';

async function serving(t: Test, changes: Record<string, unknown> = {}) {
  const hub = await fakeHub((_, response) => sendJson(response, 200, statusOf(hub.baseUrl, changes)));
  t.teardown(() => hub.close());
  return hub;
}

async function expectNone(t: Test, home: string, why: NoHubReason, message: RegExp, statusTimeoutMs = 120_000) {
  const found = await discoverHub({ home, statusTimeoutMs });
  t.match(found, { kind: 'none', why, message });
  t.notMatch(JSON.stringify(found), 'secret-token', 'the token is not in the result');
}

t.test('a Hub that matches its lock file is found', async (t) => {
  const hub = await serving(t, { unknownField: { tolerated: true } });
  const home = t.testdir();
  writeLock(home, lockOf(hub.baseUrl, { unknownField: 1 }));
  const found = await discoverHub({ home, statusTimeoutMs: 120_000 });
  t.match(found, { kind: 'found', lock: { token: hubToken }, status: { hubVersion: '9.9.9' } });
  t.equal(hub.requests[0]?.headers.authorization, undefined, 'the token is not sent before the Hub is verified');
});

t.test('a missing or invalid lock file is reported as the reason', async (t) => {
  await expectNone(t, t.testdir(), 'noLockFile', /no Hub is running/);
  const home = t.testdir();
  writeLock(home, '{"pid": 1, "token": "secret-token"');
  await expectNone(t, home, 'invalidLockFile', /is not JSON/);
  writeLock(home, lockOf('http://127.0.0.1:1', { pid: 'secret-token' }));
  await expectNone(t, home, 'invalidLockFile', /pid must be number/);
});

t.test('an address of another machine gets no request', async (t) => {
  const home = t.testdir();
  for (const url of [
    'http://192.0.2.1:80',
    'https://127.0.0.1:1',
    'http://user@127.0.0.1:1',
    'http://127.0.0.1.example.org:1',
  ]) {
    writeLock(home, lockOf(url));
    await expectNone(t, home, 'notLoopback', /not a loopback HTTP address/);
  }
});

t.test('the address of an ended process gets no request', async (t) => {
  const hub = await serving(t);
  const child = spawn(process.execPath, ['-e', '']);
  await new Promise((resolve) => child.once('exit', resolve));
  const home = t.testdir();
  writeLock(home, lockOf(hub.baseUrl, { pid: child.pid }));
  await expectNone(t, home, 'processGone', /is not running any more/);
  t.equal(hub.requests.length, 0, 'another owner of the port gets no request');
});

t.test('a Hub without a readable status is not reachable', async (t) => {
  const home = t.testdir();
  writeLock(home, lockOf(`http://127.0.0.1:${await unusedPort()}`));
  await expectNone(t, home, 'notReachable', /ECONNREFUSED/);

  const silent = await fakeHub(() => undefined);
  t.teardown(() => silent.close());
  writeLock(home, lockOf(silent.baseUrl));
  await expectNone(t, home, 'notReachable', /does not answer in time/, 300);

  const other = await fakeHub((_, response) => response.end('<html>hello</html>'));
  t.teardown(() => other.close());
  writeLock(home, lockOf(other.baseUrl));
  await expectNone(t, home, 'notReachable', /is not JSON/);
});

t.test('a status that differs from the lock file is refused', async (t) => {
  const cases: [NoHubReason, Record<string, unknown>, RegExp][] = [
    ['urlMismatch', { apiBaseUrl: 'http://127.0.0.1:1' }, /says that it is http:\/\/127.0.0.1:1/],
    ['pidMismatch', { pid: 1 }, /served by process 1/],
    ['versionMismatch', { hubVersion: '1.0.0' }, /is version 1.0.0, not 9.9.9/],
    ['missingCapability', { capabilities: { events: true } }, /does not offer appServerManagement/],
    ['missingCapability', { capabilities: { appServerManagement: true } }, /does not offer events/],
  ];
  for (const [why, changes, message] of cases) {
    const hub = await serving(t, changes);
    const home = t.testdir();
    writeLock(home, lockOf(hub.baseUrl));
    await expectNone(t, home, why, message);
  }
});

t.test('an abort rejects with the reason of the signal', async (t) => {
  const silent = await fakeHub(() => undefined);
  t.teardown(() => silent.close());
  const home = t.testdir();
  writeLock(home, lockOf(silent.baseUrl));
  await t.rejects(discoverHub({ home, signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' });
});
