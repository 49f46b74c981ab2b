/** kill -9 of Hub and servers at any moment: the next start recovers without a duplicate and without killing another process (design §3). */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
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

/** One home with one Hub after another, and a workspace for each thing that can be found after a Hub was killed. */
const home = temporaryDirectory(t);
const workspaces = {
  adopted: makeWorkspace(t, quick),
  toStop: makeWorkspace(t, quick),
  toStopEarly: makeWorkspace(t, quick),
  toRestartEarly: makeWorkspace(t, quick),
  dead: makeWorkspace(t, quick),
  recycled: makeWorkspace(t, quick),
};
type Name = keyof typeof workspaces;

const first = await startTestHub(t, { home, agentServer });
const records = Object.fromEntries(
  await Promise.all(
    Object.entries(workspaces).map(async ([name, workspace]) => [name, await first.ensure(workspace)] as const),
  ),
);
const pidOf = (name: Name): number => records[name]?.pid ?? 0;
const stateFile = join(hubStatePath(home), 'appservers.json');
// A start is answered before its process is in the file.
await eventually(() => {
  const stored = existsSync(stateFile) ? readFileSync(stateFile, 'utf8') : '';
  return Object.values(records).every(({ pid }) => stored.includes(`"pid":${pid},`));
}, 'all servers are stored');
await first.kill('SIGKILL');
const gone = Object.values(records).filter(({ pid }) => !isAlive(pid ?? 0));
for (const name of ['dead', 'recycled'] as const) {
  process.kill(pidOf(name), 'SIGKILL');
  await eventually(() => !isAlive(pidOf(name)), 'the server is dead');
}
const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore', detached: true });
t.teardown(() => bystander.kill('SIGKILL'));
const state = readFileSync(stateFile, 'utf8');
writeFileSync(stateFile, state.replace(`"pid":${pidOf('recycled')},`, `"pid":${bystander.pid},`));
// While the holder of the lock publishes no address, the next Hub waits for it.
const early = ['toStopEarly', 'toRestartEarly'] as const;
const aside = early.flatMap((name) => {
  const { serverPath, lockPath } = workspaceFiles(home, workspaces[name]);
  return [serverPath, lockPath];
});
for (const file of aside) renameSync(file, `${file}.aside`);
const second = await startTestHub(t, { home, agentServer });

t.test('a stop or restart during an adoption waits for it', async (t) => {
  const [stop, restart] = ['stop', 'restart'].map((action, index) =>
    second.call('POST', `/v1/appservers/${action}`, { workspacePath: workspaces[early[index] ?? 'toStop'] }),
  );
  await second.call('GET', '/v1/status');
  for (const file of aside) renameSync(`${file}.aside`, file);
  const states = [(await stop)?.body, (await restart)?.body];
  t.match(states, [{ state: 'stopped' }, { state: 'running' }]);
  for (const [index, name] of early.entries()) {
    t.not(states[index].pid, pidOf(name));
    t.notOk(isAlive(pidOf(name)), `${name}: the adopted server is gone`);
  }
});

t.test('a killed Hub leaves its agent servers running; the next one adopts and restarts them', async (t) => {
  t.same(gone, []);
  const { pid, endpoints } = records['adopted'] ?? {};
  const adopted = await second.ensure(workspaces.adopted);
  t.match(adopted, { pid, endpoints, state: 'running', startedByHub: true, adopted: true });
  const events = await second.events();
  process.kill(pidOf('adopted'), 'SIGKILL');
  t.match((await events.wait('appserver.exited')).data, { pid, exitCode: null });
  const revived = await events.wait('appserver.running');
  t.not(revived.data['pid'], pid, 'the exit of an adopted server is detected and followed by a restart');
  t.match(await second.record(workspaces.adopted), { adopted: false, startedByHub: true });
});

t.test('an adopted server stops like any other', async (t) => {
  t.match(await second.call('POST', '/v1/appservers/stop', { workspacePath: workspaces.toStop }), {
    body: { state: 'stopped' },
  });
  t.notOk(isAlive(pidOf('toStop')));
});

t.test('after kill -9 of Hub and server the next Hub reports the exit, and ensure starts a new server', async (t) => {
  const record = await eventually(async () => {
    const now = await second.record(workspaces.dead);
    return now.state === 'exited' ? now : undefined;
  }, 'the server is known to have ended');
  t.match(record, { lastError: /ended while no Hub was watching/, exitCode: null, pid: null });
  t.match(await second.ensure(workspaces.dead), { state: 'running', adopted: false });
});

t.test('a process with a recycled pid of the state file is not killed', async (t) => {
  t.match(state, `"pid":${pidOf('recycled')},`, 'the file named the pid');
  await second.ensure(workspaces.recycled);
  await second.call('POST', '/v1/appservers/stop', { workspacePath: workspaces.recycled });
  t.ok(isAlive(bystander.pid ?? 0));
});

t.test('a server detached at shutdown keeps running and is adopted, and a shutdown leaves no process', async (t) => {
  const { pid } = await second.record(workspaces.dead);
  await second.shutdown('detach');
  t.ok(isAlive(pid ?? 0));
  const third = await startTestHub(t, { home, agentServer });
  t.match(await third.ensure(workspaces.dead), { pid, adopted: true });
  await third.shutdown();
  t.same(processesOf(home), []);
});

t.test('a Hub with an unreadable state file serves; state directories have mode 0700 and files 0600', async (t) => {
  writeFileSync(stateFile, '{ this is not JSON');
  writeFileSync(join(hubStatePath(home), 'hub.lock'), 'nor is this');
  const hub = await startTestHub(t, { home, agentServer });
  t.equal((await hub.call('GET', '/v1/status')).status, 200);
  await eventually(() => hub.output().includes('is damaged and starts empty'), 'the damage is logged');
  const [saved = ''] = readdirSync(hubStatePath(home)).filter((name) => name.startsWith('appservers.json.damaged-'));
  t.equal(readFileSync(join(hubStatePath(home), saved), 'utf8'), '{ this is not JSON', 'the damaged file is saved');
  t.ok(hub.output().includes(saved), 'the log names the copy');

  await hub.ensure(makeWorkspace(t, quick));
  t.equal(statSync(hubStatePath(home)).mode & 0o777, 0o700);
  for (const file of ['hub.lock', 'appservers.json', 'adoption.key', 'hub.mutex']) {
    t.equal(statSync(join(hubStatePath(home), file)).mode & 0o777, 0o600, file);
  }
  t.notOk(hub.output().includes(hub.lock.token), 'the token is not in the log');
  await hub.shutdown();
});

t.test('kill -9 of Hub or server at random moments of a start leaves one process and no leak, 6 rounds', async (t) => {
  const home = temporaryDirectory(t);
  const workspace = makeWorkspace(t, quick);
  for (let round = 0; round < 6; round++) {
    const hub = await startTestHub(t, { home, agentServer });
    const started = hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace }).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, round * 60));
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
