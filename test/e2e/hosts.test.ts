/** Two machines, each with its own Hub, joined by a real `ssh`: commands, events and refusals, also after a cut connection. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { FleetEvent, HostRecord } from '../../src/protocol/index.ts';
import { eventually, readHubLock } from '../hub/harness.ts';
import { oratorio, oratorioJson, runningHub } from './harness.ts';
import { makeMachines } from './ssh-machine.ts';

t.setTimeout(600_000);

const machines = await makeMachines(t);
const { here, there, program } = machines;
const site = there.workspace('site');

const hostOf = async (): Promise<HostRecord> => (await oratorioJson(here, 'hosts'))[0];
const hostIn = (state: HostRecord['state']) =>
  eventually(async () => {
    const host = await hostOf();
    return host.state === state ? host : undefined;
  }, `the host is ${state}`);

const addBuild = () => oratorio(here, ['hosts', 'add', 'ssh://box', '--name', 'build', '--program', program, '--json']);

t.test('a Hub without hosts answers the host routes with empty lists', async (t) => {
  t.match(await oratorio(here, ['list', '--json']), { code: 0, stdout: /^\[\]\s*$/ });
  t.same(await oratorioJson(here, 'hosts'), []);
  const { body } = await runningHub(here).call('GET', '/v1/fleet/appservers');
  t.match(body, { appServers: [], hosts: [], next: null, sums: [{ host: null, workspaces: 0 }] });
});

t.test('one command connects a machine and starts its Hub', async (t) => {
  const added = await addBuild();
  t.match(added, { code: 0 }, added.stdout + added.stderr);
  t.match(JSON.parse(added.stdout), { name: 'build', state: 'connected', phase: 'connected.current', waiting: 0 });
  t.ok(readHubLock(there.home), 'the remote Hub runs');
  t.equal(machines.sshProcesses().length, 1);
  const directory = join(here.home, 'hub', 'hosts');
  if (existsSync(join(directory, 'build.sock'))) {
    t.equal(statSync(join(directory, 'build.sock')).mode & 0o777, 0o600);
    t.equal(statSync(directory).mode & 0o777, 0o700);
  }
  const settings = readFileSync(join(here.home, 'config.json'), 'utf8');
  t.match(JSON.parse(settings), { Hosts: { build: { Ssh: 'ssh://box', Program: program } } });
});

t.test('no token of either Hub is in a process, a log, an event or an answer', async (t) => {
  const tokens = [readHubLock(here.home)?.token ?? '', readHubLock(there.home)?.token ?? ''];
  const log = readFileSync(join(here.home, 'hub', 'hub.log'), 'utf8');
  const answers = await Promise.all(
    ['/v1/hosts', '/v1/fleet/appservers', '/v1/events/recent'].map(async (path) =>
      JSON.stringify((await runningHub(here).call('GET', path)).body),
    ),
  );
  for (const token of tokens) for (const text of [log, ...answers]) t.notOk(text.includes(token));
  const [issued] = await oratorioJson(there, 'tokens');
  t.match(issued, { name: 'host 127.0.0.1', scopes: ['host'] }, 'the remote Hub lists the token as scoped');
});

t.test('a remote workspace is started, listed and stopped from this machine', async (t) => {
  const record = await oratorioJson(here, 'up', `build:${site}`);
  t.match(record, { state: 'running', host: 'build', canonicalWorkspacePath: site });
  const listed = await eventually(async () => {
    const [row] = await oratorioJson(here, 'list', '--host', 'build');
    return row?.state === 'running' ? row : undefined;
  }, 'the list has the workspace');
  t.match(listed, { host: 'build', asOf: null, canonicalWorkspacePath: site, page: /^\/h\/build\/w\/[a-z2-7]{16}\/$/ });
  t.notMatch(JSON.stringify(listed), /token=(?!\*{3}|…)/, 'addresses contain no token');
  const table = await oratorio(here, ['list']);
  t.match(table.stdout, /^build:site\t/m);
  const dashboard = await runningHub(here).call('GET', `${listed.page}dashboard/api/status`);
  t.not(dashboard.status, 401, JSON.stringify(dashboard.body));
});

t.test('a cut connection leaves the agent running, and every event arrives once, in order', async (t) => {
  const hub = runningHub(here);
  const remote = runningHub(there);
  const seen: FleetEvent[] = [];
  const leaving = new AbortController();
  t.teardown(() => leaving.abort());
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  void (async () => {
    for await (const event of hub.client.events({ allHosts: true, signal: leaving.signal, onOpen: open }))
      seen.push(event as unknown as FleetEvent);
  })().catch(() => {});
  await opened;
  const post = (title: string) => remote.client.requestNotification({ title });
  const titles = () => seen.filter(({ kind }) => kind === 'notification.requested').map(({ data }) => data['title']);
  await post('before');
  await eventually(() => titles().length === 1 || undefined, 'the first event arrives');
  await machines.cut();
  const lost = await hostIn('unreachable');
  t.ok(lost.asOf, 'the last known state has a time');
  for (let number = 0; number < 20; number += 1) await post(`during ${number}`);
  const [row] = await oratorioJson(here, 'list', '--host', 'build');
  t.match(row, { state: 'running', asOf: /^\d{4}-/ }, 'the row stays, with its time');
  const refused = await oratorio(here, ['up', `build:${site}`, '--json']);
  t.match(JSON.parse(refused.stdout || refused.stderr), { error: { code: 'hostUnreachable' } });
  t.equal(machines.sshProcesses().length, 0, 'no ssh runs any more');
  await machines.mend();
  await hostIn('connected');
  await post('after');
  await eventually(() => titles().includes('after') || undefined, 'the last event arrives');
  t.same(titles(), ['before', ...Array.from({ length: 20 }, (_, number) => `during ${number}`), 'after']);
  t.same((await oratorioJson(there, 'list'))[0].state, 'running', 'the agent has continued');
});

t.test('a killed remote Hub is started again and adopts its agent server', async (t) => {
  const before = runningHub(there);
  await before.kill('SIGKILL');
  const lock = await eventually(() => {
    const now = readHubLock(there.home);
    return now && now.pid !== before.pid ? now : undefined;
  }, 'a new remote Hub runs');
  t.not(lock.pid, before.pid);
  await hostIn('connected');
  t.match((await oratorioJson(here, 'list', '--host', 'build'))[0], { state: 'running', adopted: true });
});

t.test('the next Hub ends the ssh of a killed Hub', async (t) => {
  const [left] = machines.sshProcesses();
  await runningHub(here).kill('SIGKILL');
  t.ok(left && machines.sshProcesses().includes(left), 'the ssh still runs');
  await oratorioJson(here, 'hosts');
  await hostIn('connected');
  const now = machines.sshProcesses();
  t.equal(now.length, 1);
  t.not(now[0], left);
});

t.test('after the remote Hub revokes the token, the host is refused until the user enables it', async (t) => {
  const [{ tokenId }] = await oratorioJson(there, 'tokens');
  await oratorioJson(there, 'tokens', 'revoke', tokenId);
  const host = await hostIn('refused');
  t.match(host, { phase: 'refused.notProven', next: /oratorio hosts enable build/, reason: /revoked/ });
  const page = await runningHub(here).call('GET', `/h/build/w/${'a'.repeat(16)}/dashboard/api/status`);
  t.match(page.body, { error: { code: 'hostUnreachable' } });
  t.match(await hostOf(), { phase: 'refused.notProven' }, 'a page that asks again changes nothing');
  t.same(await oratorioJson(there, 'tokens'), [], 'and gets no other token');
  t.match(await oratorioJson(here, 'hosts', 'enable', 'build'), { state: 'connected' });
});

t.test('a disabled host runs no ssh, and its agents continue', async (t) => {
  await oratorioJson(here, 'hosts', 'disable', 'build');
  t.match(await hostOf(), { state: 'disabled' });
  t.same(machines.sshProcesses(), []);
  t.ok(readHubLock(there.home));
  t.match(await oratorioJson(here, 'hosts', 'enable', 'build'), { state: 'connected' });
});

t.test('every refusal names the next step', async (t) => {
  const refusal = async (expected: string, words: RegExp) => {
    const { code, stdout, stderr } = await addBuild();
    t.equal(code, 7, stdout + stderr);
    const { error } = JSON.parse(stdout || stderr);
    t.equal(error.code, expected);
    const shown = await oratorio(here, ['hosts', 'add', 'ssh://box', '--name', 'build', '--program', program]);
    t.match(shown.stderr, words);
  };
  const known = readFileSync(machines.knownHosts, 'utf8');
  const authorized = readFileSync(machines.authorizedKeys, 'utf8');

  writeFileSync(machines.knownHosts, known.replace(/ssh-ed25519 \S+/, authorized.split(' ').slice(0, 2).join(' ')));
  await refusal('hostKey', /compare the host key of the machine: ssh ssh:\/\/box/);
  writeFileSync(machines.knownHosts, '');
  await refusal('hostKey', /Connect once in a terminal/);
  writeFileSync(machines.knownHosts, known);

  writeFileSync(machines.authorizedKeys, '');
  await refusal('authentication', /ssh-add/);
  writeFileSync(machines.authorizedKeys, authorized);

  machines.install('echo "oratorio: not found" >&2; exit 127');
  await refusal('noProgram', /--program \/path\/to\/oratorio/);

  machines.install(
    `echo '{"apiBaseUrl":"http://127.0.0.1:1","version":"99.0.0","tokenId":"t","token":"${'x'.repeat(40)}"}'`,
  );
  await refusal('version', /Update this machine: oratorio self-update/);
  machines.install();
});

t.test('another program at the remote address gets no token and is refused', async (t) => {
  const { createServer } = process.getBuiltinModule('node:http');
  const headers: string[] = [];
  const impostor = createServer((request, response) => {
    headers.push(String(request.headers.authorization));
    response.end('\u001b[2Jhello');
  });
  await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
  t.teardown(() => impostor.close());
  const { port } = impostor.address() as { port: number };
  const { version } = await oratorioJson(there, 'version');
  const address = { apiBaseUrl: `http://127.0.0.1:${port}`, version, tokenId: 't', token: 'x'.repeat(40) };
  machines.install(`echo '${JSON.stringify(address)}'`);
  const { code, stdout, stderr } = await addBuild();
  t.equal(code, 1, stdout + stderr);
  t.match(await hostOf(), { phase: 'refused.notProven', next: /hub status/ });
  t.ok(headers.length > 0);
  t.same([...new Set(headers)], ['undefined'], 'it received a proof request and no token');
  machines.install();
  t.match(await oratorioJson(here, 'hosts', 'enable', 'build'), { state: 'connected' });
});

t.test('the end of the Hub ends its ssh', async (t) => {
  t.equal(machines.sshProcesses().length, 1);
  await oratorioJson(here, 'hub', 'stop');
  t.same(machines.sshProcesses(), []);
  t.notOk(existsSync(join(here.home, 'hub', 'hosts', 'build.ctl')));
});

t.test('a removed host is no longer listed, and its Hub keeps running', async (t) => {
  await oratorioJson(here, 'hosts', 'remove', 'build');
  t.same(await oratorioJson(here, 'hosts'), []);
  t.ok(readHubLock(there.home));
});
