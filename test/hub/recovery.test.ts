/** kill -9 of Hub and servers at any moment: the next start recovers without a duplicate and without killing another process (design §3). */
import { spawn } from 'node:child_process';
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { workspaceFiles } from '../../src/supervise/index.ts';
import {
  agentServerFixture,
  eventually,
  hubStatePath,
  isAlive,
  killIfThere,
  makeWorkspace,
  processesOf,
  quick,
  startTestHub,
  temporaryDirectory,
} from './harness.ts';

const agentServer = agentServerFixture('well-behaved.ts');

t.test('a killed Hub leaves its agent servers running; the next one adopts, restarts and stops them', async (t) => {
  const home = temporaryDirectory(t);
  const first = await startTestHub(t, { home, agentServer });
  const workspace = makeWorkspace(t, quick);
  const { pid, endpoints } = await first.ensure(workspace);
  await first.kill('SIGKILL');
  t.ok(isAlive(pid ?? 0));

  const second = await startTestHub(t, { home, agentServer });
  const adopted = await second.ensure(workspace);
  t.match(adopted, { pid, endpoints, state: 'running', startedByHub: true, adopted: true });
  const events = await second.events();
  process.kill(pid ?? 0, 'SIGKILL');
  t.match((await events.wait('appserver.exited')).data, { pid, exitCode: null });
  const revived = await events.wait('appserver.running');
  t.not(revived.data['pid'], pid, 'the exit of an adopted server is detected and followed by a restart');
  t.match(await second.record(workspace), { adopted: false, startedByHub: true });
  await second.shutdown();
  t.same(processesOf(home), []);
});

t.test('an adopted server stops like any other', async (t) => {
  const home = temporaryDirectory(t);
  const workspace = makeWorkspace(t, quick);
  const first = await startTestHub(t, { home, agentServer });
  const { pid } = await first.ensure(workspace);
  await first.kill('SIGKILL');
  const second = await startTestHub(t, { home, agentServer });
  t.match(await second.call('POST', '/v1/appservers/stop', { workspacePath: workspace }), {
    body: { state: 'stopped' },
  });
  t.notOk(isAlive(pid ?? 0));
});

t.test('a stop or restart during an adoption waits for it', async (t) => {
  for (const action of ['stop', 'restart']) {
    const home = temporaryDirectory(t);
    const workspace = makeWorkspace(t, quick);
    const first = await startTestHub(t, { home, agentServer });
    const { pid } = await first.ensure(workspace);
    await first.kill('SIGKILL');
    // While the holder of the lock publishes no address, the next Hub waits for it.
    const { serverPath, lockPath } = workspaceFiles(home, workspace);
    for (const file of [serverPath, lockPath]) renameSync(file, `${file}.aside`);
    const second = await startTestHub(t, { home, agentServer });
    const answer = second.call('POST', `/v1/appservers/${action}`, { workspacePath: workspace });
    await second.call('GET', '/v1/status');
    for (const file of [serverPath, lockPath]) renameSync(`${file}.aside`, file);
    const { body } = await answer;
    t.equal(body.state, action === 'stop' ? 'stopped' : 'running');
    t.not(body.pid, pid);
    t.notOk(isAlive(pid ?? 0), `${action}: the adopted server is gone`);
  }
});

t.test('a server detached at shutdown keeps running and is adopted', async (t) => {
  const home = temporaryDirectory(t);
  const workspace = makeWorkspace(t, quick);
  const first = await startTestHub(t, { home, agentServer });
  const { pid } = await first.ensure(workspace);
  await first.shutdown('detach');
  t.ok(isAlive(pid ?? 0));
  const second = await startTestHub(t, { home, agentServer });
  t.match(await second.ensure(workspace), { pid, adopted: true });
});

t.test('after kill -9 of Hub and server the next Hub reports the exit, and ensure starts a new server', async (t) => {
  const home = temporaryDirectory(t);
  const workspace = makeWorkspace(t, quick);
  const first = await startTestHub(t, { home, agentServer });
  const { pid } = await first.ensure(workspace);
  await first.kill('SIGKILL');
  process.kill(pid ?? 0, 'SIGKILL');
  await eventually(() => !isAlive(pid ?? 0), 'the server is dead');
  const second = await startTestHub(t, { home, agentServer });
  const record = await eventually(async () => {
    const now = await second.record(workspace);
    return now.state === 'exited' ? now : undefined;
  }, 'the server is known to have ended');
  t.match(record, { lastError: /ended while no Hub was watching/, exitCode: null, pid: null });
  t.match(await second.ensure(workspace), { state: 'running', adopted: false });
});

t.test('kill -9 of Hub or server at random moments of a start leaves one process and no leak, 10 rounds', async (t) => {
  const home = temporaryDirectory(t);
  const workspace = makeWorkspace(t, quick);
  for (let round = 0; round < 10; round++) {
    const hub = await startTestHub(t, { home, agentServer });
    const started = hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace }).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, round * 40));
    if (round % 3 === 2) processesOf(home).forEach(killIfThere);
    await hub.kill('SIGKILL');
    await started;
  }
  const hub = await startTestHub(t, { home, agentServer });
  const record = await hub.ensure(workspace);
  t.equal(record.state, 'running');
  await eventually(() => processesOf(home).length === 2 || undefined, 'one Hub and one agent server');
  await hub.shutdown();
  await eventually(() => processesOf(home).length === 0 || undefined, 'nothing is left');
});

t.test('a process with a recycled pid of the state file is not killed', async (t) => {
  const home = temporaryDirectory(t);
  const workspace = makeWorkspace(t, quick);
  const first = await startTestHub(t, { home, agentServer });
  const { pid } = await first.ensure(workspace);
  await first.kill('SIGKILL');
  process.kill(pid ?? 0, 'SIGKILL');
  const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore', detached: true });
  t.teardown(() => bystander.kill('SIGKILL'));
  const stateFile = join(hubStatePath(home), 'appservers.json');
  writeFileSync(stateFile, readFileSync(stateFile, 'utf8').replace(`"pid": ${pid}`, `"pid": ${bystander.pid}`));
  const second = await startTestHub(t, { home, agentServer });
  await second.ensure(workspace);
  await second.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
  t.ok(isAlive(bystander.pid ?? 0));
});

t.test('a Hub with an unreadable state file serves', async (t) => {
  const home = temporaryDirectory(t);
  const first = await startTestHub(t, { home, agentServer });
  await first.shutdown();
  writeFileSync(join(hubStatePath(home), 'appservers.json'), '{ this is not JSON');
  writeFileSync(join(hubStatePath(home), 'hub.lock'), 'nor is this');
  const second = await startTestHub(t, { home, agentServer });
  t.equal((await second.call('GET', '/v1/status')).status, 200);
  await eventually(() => second.output().includes('begun anew'), 'the new start is logged');
  t.match(second.output(), /begun anew/);
});

t.test('state directories have mode 0700 and files 0600', async (t) => {
  const hub = await startTestHub(t, { agentServer });
  await hub.ensure(makeWorkspace(t, quick));
  const state = hubStatePath(hub.home);
  t.equal(statSync(state).mode & 0o777, 0o700);
  for (const file of ['hub.lock', 'appservers.json', 'adoption.key', 'hub.mutex']) {
    t.equal(statSync(join(state, file)).mode & 0o777, 0o600, file);
  }
  const { token } = hub.lock;
  t.notOk(hub.output().includes(token), 'the token is not in the log');
});
