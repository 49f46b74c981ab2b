/** Workspaces with files made by another user, a clone or a broken program: the Hub answers, serves others and signals no other process. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { acquireLock, ownIdentity, readIdentity } from '../../src/supervise/index.ts';
import { canBecomeOther, firstOutput, otherUid, runAsOther } from '../other-user.ts';
import { program, programEnvironment } from '../programs.ts';
import {
  agentServerFixture,
  eventually,
  hubStatePath,
  isAlive,
  makeWorkspace,
  startTestHub,
  type TestHub,
  temporaryDirectory,
} from './harness.ts';

const agentServer = agentServerFixture('well-behaved.ts');
const inside = (workspace: string, name: string): string => join(workspace, '.oratorio', name);
const ensure = (hub: TestHub, workspacePath: string) => hub.call('POST', '/v1/appservers/ensure', { workspacePath });

/** A process of this user that no Hub has started; leader of a group. */
async function bystander(t: Test, marker?: string) {
  const env = { ...process.env, ...(marker !== undefined && { ORATORIO_INCARNATION: marker }) };
  const child = spawn(process.execPath, ['-e', 'console.log("up"); setInterval(() => {}, 1000)'], {
    detached: true,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  await firstOutput(child);
  const identity = readIdentity(child.pid ?? 0);
  if (typeof identity === 'string') throw new Error(identity);
  return { pid: identity.pid, identity };
}

/** Listener that counts its connections. */
async function trap(t: Test) {
  const visits: string[] = [];
  const server = createServer((socket) => {
    visits.push('connection');
    socket.on('data', (data) => visits.push(String(data))).on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as { port: number };
  return { url: `ws://127.0.0.1:${port}/ws?token=mine`, visits };
}

const forged = (workspace: string, identity: object, url: string): string =>
  JSON.stringify({
    version: 1,
    pid: (identity as { pid: number }).pid,
    identity,
    workspacePath: workspace,
    managedByHub: false,
    incarnation: 'forged',
    adoptionProof: 'forged',
    startedAt: new Date().toISOString(),
    serverVersion: '9',
    endpoints: { appServerWebSocket: url },
  });

const entry = (workspace: string, identity: object, marker: string) => ({
  workspacePath: workspace,
  canonicalWorkspacePath: workspace,
  server: { marker, identity },
  proxy: null,
  exitCode: null,
  lastError: null,
  lastStartedAt: null,
  lastExitedAt: null,
});

/** Home of the three Hubs of this file. The first one finds a state that names processes of others. */
const home = temporaryDirectory(t);
const stateFile = join(hubStatePath(home), 'appservers.json');
const victim = await bystander(t);
const ours = await bystander(t, 'marker-of-ours');
mkdirSync(hubStatePath(home), { recursive: true, mode: 0o700 });
writeFileSync(
  stateFile,
  JSON.stringify({
    version: 1,
    updatedAt: new Date().toISOString(),
    appServers: [
      entry(makeWorkspace(t), victim.identity, 'marker-of-theirs'),
      entry(makeWorkspace(t), ours.identity, 'marker-of-ours'),
    ],
  }),
);
const hub = await startTestHub(t, { home, agentServer });

t.test(
  'regression: H7 only a process with our marker is ended; an identity in the state of the Hub does not suffice',
  async (t) => {
    await eventually(() => !isAlive(ours.pid) || undefined, 'what carries our marker is ended');
    await eventually(
      () => hub.output().includes('cannot be verified as ours') || undefined,
      'the other is spared and logged',
    );
    t.ok(isAlive(victim.pid));
  },
);

t.test('regression: C3 the Hub refuses a workspace of another user and a symlinked .oratorio', async (t) => {
  const shared = join(temporaryDirectory(t), 'shared');
  mkdirSync(shared);
  if (canBecomeOther) {
    chmodSync(join(shared, '..'), 0o755);
    chmodSync(shared, 0o777);
    const make = runAsOther(
      `const fs = require('node:fs'); fs.mkdirSync(process.argv[1] + '/.oratorio'); fs.writeFileSync(process.argv[1] + '/.oratorio/config.json', '{}')`,
      [shared],
    );
    t.same(await once(make, 'exit'), [0, null]);
    t.match(await ensure(hub, shared), {
      status: 404,
      body: { error: { code: 'workspaceNotFound', details: { workspacePath: shared, ownerUid: otherUid } } },
    });
    rmSync(inside(shared, ''), { recursive: true });
  }
  const own = makeWorkspace(t);
  symlinkSync(join(own, '.oratorio'), join(shared, '.oratorio'));
  const refused = await ensure(hub, shared);
  t.match(refused, { status: 404, body: { error: { code: 'workspaceNotFound', message: /symbolic link/ } } });
  t.match(await ensure(hub, own), { status: 200 });

  rmSync(inside(own, ''), { recursive: true });
  symlinkSync('/tmp', join(own, '.oratorio'));
  t.match(await ensure(hub, own), { status: 404 }, 'also when it is replaced while it is known');
});

t.test('regression: H7 a lock that another user holds is refused, and its owner is named', async (t) => {
  const workspace = makeWorkspace(t);
  const directory = inside(workspace, '');
  if (canBecomeOther) {
    for (const each of [join(workspace, '..'), workspace]) chmodSync(each, 0o755);
    chmodSync(directory, 0o777);
    const holder = runAsOther(
      `const { DatabaseSync } = require('node:sqlite'); const fs = require('node:fs');
       const database = new DatabaseSync(process.argv[1] + '/appserver.mutex');
       database.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE');
       fs.writeFileSync(process.argv[1] + '/appserver.lock', process.argv[2]);
       console.log('held'); setInterval(() => database, 1000);`,
      [directory, forged(workspace, ownIdentity(), 'ws://127.0.0.1:1/ws')],
    );
    t.teardown(() => holder.kill('SIGKILL'));
    await firstOutput(holder);
    t.match(await ensure(hub, workspace), {
      status: 409,
      body: {
        error: {
          code: 'workspaceLocked',
          message: new RegExp(`uid ${otherUid}`),
          details: { pid: null },
        },
      },
    });
    t.equal(statSync(directory).mode & 0o777, 0o700, 'the mode is restricted');
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    for (const name of ['appserver.mutex', 'appserver.lock']) rmSync(inside(workspace, name));
  }
  t.match(await ensure(hub, workspace), { status: 200 });
});

/** The kernel names the process that holds a lock, on Linux. */
const heldBy = (pid: number | undefined) => (process.platform === 'linux' ? (pid ?? null) : null);

/** Files on which a program that reads them as they come never ends. */
const endless: Readonly<Record<string, (file: string) => void>> = {
  'a symlink to /dev/zero': (file) => symlinkSync('/dev/zero', file),
  'a FIFO': (file) => execFileSync('mkfifo', [file]),
  '3 GB': (file) => {
    const fd = openSync(file, 'w');
    ftruncateSync(fd, 3 * 1024 ** 3);
    closeSync(fd);
  },
};

t.test('regression: M7 an appserver.lock without end, while the lock is held, ends in workspaceLocked', async (t) => {
  for (const [name, put] of Object.entries(endless)) {
    const workspace = makeWorkspace(t);
    const lock = acquireLock(inside(workspace, 'appserver.mutex'));
    put(inside(workspace, 'appserver.lock'));
    const details = { workspacePath: workspace, pid: heldBy(process.pid) };
    t.match(await ensure(hub, workspace), { status: 409, body: { error: { code: 'workspaceLocked', details } } }, name);
    if (lock !== 'held') lock.release();
    const freed = await ensure(hub, workspace);
    t.equal(freed.status, 200, `when it is free, it serves: ${JSON.stringify(freed.body.error ?? freed.body.state)}`);
  }
});

t.test(
  'regression: M9 an appserver.mutex that is a symlink, a FIFO or filled is refused, and its target is unchanged',
  async (t) => {
    const script = join(temporaryDirectory(t), 'script.sh');
    writeFileSync(script, '#!/bin/sh\n');
    chmodSync(script, 0o755);
    const cases: [string, (file: string) => void, RegExp][] = [
      ['a symlink', (file) => symlinkSync(script, file), /symbolic link/],
      ['a FIFO', (file) => execFileSync('mkfifo', [file]), /not a regular file/],
      ['a file with content', (file) => writeFileSync(file, 'x'.repeat(5_000)), /not empty/],
    ];
    for (const [name, put, message] of cases) {
      const workspace = makeWorkspace(t);
      put(inside(workspace, 'appserver.mutex'));
      t.match(
        await ensure(hub, workspace),
        { status: 409, body: { error: { code: 'workspaceLocked', message } } },
        name,
      );
      rmSync(inside(workspace, 'appserver.mutex'));
      t.match(await ensure(hub, workspace), { status: 200 });
    }
    t.equal(statSync(script).mode & 0o777, 0o755);
    t.equal(readFileSync(script, 'utf8'), '#!/bin/sh\n');
  },
);

t.test(
  'regression: H7 a forged lock gets neither a connection nor a signal, and a server of no Hub is not stored and never signalled',
  async (t) => {
    const forgery = makeWorkspace(t);
    const { url, visits } = await trap(t);
    writeFileSync(inside(forgery, 'appserver.lock'), forged(forgery, victim.identity, url));
    const lock = acquireLock(inside(forgery, 'appserver.mutex'));
    if (lock === 'held') throw new Error('held');
    t.match(await ensure(hub, forgery), {
      status: 409,
      body: {
        error: { code: 'workspaceLocked', details: { workspacePath: forgery, pid: heldBy(process.pid) ?? victim.pid } },
      },
    });
    t.match(await hub.record(forgery), { pid: heldBy(process.pid) }, 'no pid of the forged file');

    const workspace = makeWorkspace(t);
    const flags = ['--conditions=development', '--disable-warning=ExperimentalWarning'];
    const own = spawn(process.execPath, [...flags, program('src/appserver/main.ts'), '--workspace', workspace], {
      env: { ...programEnvironment, ORATORIO_HOME: home },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    t.teardown(() => own.kill('SIGKILL'));
    const seen = await eventually(async () => {
      const record = await hub.record(workspace);
      return record.pid === own.pid ? record : undefined;
    }, 'the server that was started by hand is seen');
    t.equal(seen.startedByHub, false);
    t.match(await hub.ensure(workspace), { pid: own.pid, startedByHub: false });
    const stored = JSON.parse(readFileSync(stateFile, 'utf8')).appServers.find(
      ({ workspacePath }: { workspacePath: string }) => workspacePath === workspace,
    );
    t.match(stored, { server: null, external: true });
    t.notMatch(JSON.stringify(stored), 'startedTicks');
    await hub.kill('SIGKILL');
    lock.release();

    const second = await startTestHub(t, { home, agentServer });
    t.match(await ensure(second, forgery), { status: 200, body: { startedByHub: true } }, 'when it is free, it serves');
    t.match(await second.ensure(workspace), { pid: own.pid, startedByHub: false }, 'the next Hub finds it again');
    await second.shutdown();
    t.ok(isAlive(victim.pid), 'the process that the lock named was not signalled');
    t.ok(isAlive(own.pid ?? 0));
    t.same(visits, []);
  },
);

t.test('regression: M7 a config.json without end stops neither the Hub nor its next start', async (t) => {
  const first = await startTestHub(t, { home, agentServer });
  const healthy = makeWorkspace(t);
  const bad: string[] = [];
  for (const [name, put] of Object.entries(endless)) {
    const workspace = makeWorkspace(t);
    t.match(await ensure(first, workspace), { status: 200 }, name);
    rmSync(inside(workspace, 'config.json'));
    put(inside(workspace, 'config.json'));
    const restarted = await first.call('POST', '/v1/appservers/restart', { workspacePath: workspace });
    t.match(restarted, { status: 500, body: { error: { code: 'invalidConfig', message: /config\.json/ } } }, name);
    t.match(await ensure(first, healthy), { status: 200 });
    bad.push(workspace);
  }
  await first.shutdown('detach');
  const next = await startTestHub(t, { home, agentServer });
  t.match(await ensure(next, healthy), { status: 200 });
  for (const path of bad) {
    // Until the next Hub knows that a server runs, the same file is the reason why it may not start.
    const record = await eventually(async () => {
      const { state, problems } = await next.record(path);
      return state === 'running' ? { problems } : undefined;
    }, 'the server is found again');
    const problems = [{ code: 'configUnusable', what: /config\.json.*keeps the earlier settings/ }];
    t.match(record, { problems }, 'it serves on, and the next start is announced to fail');
  }
});
