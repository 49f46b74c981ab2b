/** Faults of the world around: no disk left, settings that cannot be used, a Hub that slept, a reader that never reads. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { trustWorkspace } from '../../src/config/index.ts';
import { eventually, isAlive } from '../hub/harness.ts';
import {
  agentServersUnder,
  type BuiltHub,
  followEvents,
  hubLog,
  makePlace,
  openFiles,
  oratorio,
  type Place,
  runningHub,
  startHub,
  type Teardown,
  takeInventory,
  untilNoneRuns,
} from './harness.ts';

/** A disk that can be filled to the last byte, and emptied again. */
interface Disk {
  fill(hub: BuiltHub): void;
  makeRoom(hub: BuiltHub): void;
}

/** Small file system for the user home where this process may mount one; otherwise a limit on the file size of the Hub. */
function smallDisk(t: Teardown, { home }: Place): Disk {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=0700', 'tmpfs', home], { stdio: 'ignore' });
  } catch {
    return limitedWriter();
  }
  t.teardown(() => execFileSync('umount', ['--lazy', home]));
  const ballast = join(home, 'ballast');
  return {
    fill() {
      const { openSync, closeSync } = process.getBuiltinModule('node:fs');
      const fd = openSync(ballast, 'w');
      try {
        for (;;) writeSync(fd, Buffer.alloc(4096));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        closeSync(fd);
      }
    },
    makeRoom: () => rmSync(ballast),
  };
}

/** Without privileges: a file size limit of zero makes every write fail, with EFBIG in the place of ENOSPC. */
function limitedWriter(): Disk {
  const limit = (pid: number, bytes: string) => execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]);
  return {
    fill: ({ pid }) => void limit(pid, '0'),
    makeRoom: ({ pid }) => void limit(pid, 'unlimited'),
  };
}

t.test('on a full disk ensure fails without a leak, and succeeds once there is room', async (t) => {
  const place = makePlace(t);
  const disk = smallDisk(t, place);
  // The settings make the Hub write a warning at every start, into a log that is on the full disk too.
  const [known, fresh] = [place.workspace('known'), place.workspace('fresh', { NoSuchSetting: 'x'.repeat(1000) })];
  const hub = await startHub(place);
  const running = await hub.client.ensure({ workspacePath: known });
  // The Hub writes its state when the first report of the server arrives: afterwards nothing frees a block.
  await eventually(async () => (await hub.client.byWorkspace(known)).model ?? undefined, 'the server has reported');
  const before = takeInventory(place);

  disk.fill(hub);
  const body = { workspacePath: fresh };
  const logged = hubLog(place).length;
  // Often enough to fill the last block of the log.
  for (let attempt = 0; attempt < 30; attempt++) {
    const answer = await hub.call('POST', '/v1/appservers/ensure', body);
    t.match(answer, {
      status: 500,
      body: { error: { code: 'appServerStartFailed', message: /ENOSPC|EFBIG/, details: body } },
    });
  }
  t.equal((await hub.client.byWorkspace(known)).pid, running.pid, 'the running server is unchanged');
  t.match(await hub.call('GET', '/v1/status'), { status: 200 });
  await eventually(async () => {
    const { phase } = await hub.client.byWorkspace(fresh);
    return phase.startsWith('exited') || phase === 'stopped' || undefined;
  }, 'it has come to rest');
  await eventually(
    () => takeInventory(place).files.every((file) => !file.endsWith('.tmp')) || undefined,
    'the Hub removes what it could not write',
  );
  const meanwhile = takeInventory(place);
  t.same(
    [meanwhile.processes, meanwhile.sockets, meanwhile.locks],
    [before.processes, before.sockets, before.locks],
    'no process, port or lock more',
  );
  t.ok(hubLog(place).length - logged < 4096, 'lines were lost, the Hub was not');
  const full = hubLog(place).length;
  disk.makeRoom(hub);
  t.match(await hub.client.ensure({ workspacePath: fresh }), { state: 'running', lastError: null });
  t.match(hubLog(place).slice(full), 'NoSuchSetting', 'the log is written again');
  t.match(await hub.client.stop(known), { state: 'stopped' });
  t.match(JSON.parse(readFileSync(join(place.home, 'hub', 'appservers.json'), 'utf8')), { version: 1 });
  await hub.shutdown();
  await untilNoneRuns(place);
});

t.test('settings that cannot be used: invalidConfig names file and key (specification §7.1)', async (t) => {
  const place = makePlace(t);
  const workspacePath = place.workspace('site');
  const file = join(workspacePath, '.oratorio', 'config.json');
  const hub = await startHub(place);
  const ensure = () => hub.call('POST', '/v1/appservers/ensure', { workspacePath });
  const refusal = (message: RegExp) => ({ status: 500, body: { error: { code: 'invalidConfig', message } } });

  writeFileSync(file, '{ "Supervision": { ');
  t.match(await ensure(), refusal(/site\/\.oratorio\/config\.json/));
  const trusted = (settings: string) => {
    writeFileSync(file, settings);
    trustWorkspace({ home: place.home, workspace: workspacePath });
  };
  trusted('{ "supervision": { "MAXRESTARTS": "many" } }');
  t.match(await ensure(), refusal(/site\/\.oratorio\/config\.json.*Supervision\.MaxRestarts/));
  trusted(`{ "ApiKey": "\${NO_SUCH_VARIABLE_IN_THE_ENVIRONMENT}" }`);
  t.match(await ensure(), refusal(/config\.json.*ApiKey.*NO_SUCH_VARIABLE_IN_THE_ENVIRONMENT/));
  rmSync(file);
  mkdirSync(file);
  t.match(await ensure(), refusal(/config\.json.*another kind of file/));
  rmSync(file, { recursive: true });
  writeFileSync(file, '{}');
  if (process.getuid?.() !== 0) {
    chmodSync(file, 0o000);
    t.match(await ensure(), refusal(/config\.json.*readable/));
    chmodSync(file, 0o600);
  }
  t.same(agentServersUnder(place.root), [], 'nothing was started for any of them');
  const cli = await oratorio(place, ['ensure', workspacePath]);
  t.match(cli, { code: 0 }, 'and with them mended all is well, for the command line too');

  writeFileSync(join(place.home, 'config.json'), '{ "Hub": { "Port": "any" } }');
  const stillServed = await hub.client.byWorkspace(workspacePath);
  t.match(stillServed, { state: 'running' });
  await hub.shutdown();
  const refused = await oratorio(place, ['list']);
  t.not(refused.code, 0);
  t.match(refused.stderr, /home\/config\.json.*Hub\.Port/, 'a Hub that cannot start says which file and key');
  await untilNoneRuns(place);
});

t.test('a Hub that was suspended through many probes declares no server unhealthy', async (t) => {
  const place = makePlace(t);
  const settings = { ProbeIntervalMs: 200, ProbeTimeoutMs: 3000, LivenessFailures: 3, UnhealthyGraceMs: 100 };
  const workspaces = ['one', 'two', 'three'].map((name) => place.workspace(name, { Supervision: settings }));
  const hub = await startHub(place);
  const records = await Promise.all(workspaces.map((workspacePath) => hub.client.ensure({ workspacePath })));
  // The first report of a server changes its health, which is an event; it may arrive after the answer to `ensure`.
  for (const path of workspaces) {
    await eventually(async () => (await hub.client.byWorkspace(path)).model ?? undefined, 'the server has reported');
  }
  const events = await followEvents(t, hub.client);
  for (const sleepMs of [4500, 6000]) {
    process.kill(hub.pid, 'SIGSTOP');
    await sleep(sleepMs);
    process.kill(hub.pid, 'SIGCONT');
    // Long enough for more rounds of probes than it takes to fail.
    await sleep(10_000);
  }
  t.same(
    events.seen.map(({ kind }) => kind),
    [],
    'nothing has happened',
  );
  const after = await hub.client.list();
  t.same(after.map(({ pid }) => pid).sort(), records.map(({ pid }) => pid).sort());
  t.same([...new Set(after.map(({ phase, restartCount }) => `${phase} ${restartCount}`))], ['running 0']);

  const [victim] = after;
  process.kill(victim?.pid ?? 0, 'SIGSTOP');
  t.match(
    (await events.wait('appserver.unhealthy')).data,
    { pid: victim?.pid },
    'a suspended server becomes unhealthy',
  );
  await events.wait('appserver.running');
  t.notOk(isAlive(victim?.pid ?? 0));
  await hub.shutdown();
});

const total = 2_000;
const narrowHeap = '--max-semi-space-size=1 --max-old-space-size=64';
/** Subscribers that never read. A copy of all events for each would need 60 MB. */
const stalled = 3;

/** Size of the answer at the start of `text`, with its head; undefined while it is not complete. @throws if it is a refusal */
function sizeOfAnswer(text: string): number | undefined {
  const head = text.indexOf('\r\n\r\n') + 4;
  if (head < 4) return undefined;
  if (!text.startsWith('HTTP/1.1 200 ')) throw new Error(text);
  const size = head + Number(/\r\ncontent-length: (\d+)\r\n/i.exec(text)?.[1]);
  return text.length < size ? undefined : size;
}

/**
 * Posts notifications number 0 up to `count` over a few connections. It writes its requests by itself: a client of HTTP takes
 * more processor time than the Hub does for the same.
 */
async function publish({ lock }: BuiltHub, count: number): Promise<void> {
  const { hostname, port, host } = new URL(lock.apiBaseUrl);
  const head = `POST /v1/notifications/request HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${lock.token}\r\n`;
  const text = 'x'.repeat(10_000);
  let next = 0;
  const worker = async () => {
    const socket = connect({ host: hostname, port: Number(port) })
      .setNoDelay(true)
      .setEncoding('latin1');
    const post = () => {
      const body = `{"title":"notification ${next++}","body":"${text}"}`;
      socket.write(`${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    };
    post();
    let answer = '';
    for await (const chunk of socket) {
      answer += chunk;
      if (sizeOfAnswer(answer) === undefined) continue;
      answer = '';
      if (next >= count) return;
      post();
    }
    throw new Error('the Hub has closed a connection of a publisher');
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}

async function subscribeAndNeverRead(t: Teardown, { lock }: BuiltHub): Promise<Socket> {
  const { hostname, port, host } = new URL(lock.apiBaseUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  t.teardown(() => socket.destroy());
  // The Hub closes connections that are too far behind.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.pause();
  socket.write(
    `GET /v1/events HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${lock.token}\r\nAccept: text/event-stream\r\n\r\n`,
  );
  return socket;
}

const residentKiB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

async function subscribers(hub: BuiltHub): Promise<number> {
  const metrics = String((await hub.call('GET', '/v1/metrics')).body);
  return Number(/^oratorio_hub_sse_readers (\d+)/m.exec(metrics)?.[1]);
}

t.test(
  `${stalled} subscribers that never read ${total} events cost no memory and delay no other subscriber`,
  async (t) => {
    // A narrow heap keeps garbage small, so that resident memory shows the referenced objects.
    const place = makePlace(t);
    const hub = await startHub({ ...place, env: { ...place.env, NODE_OPTIONS: narrowHeap } });
    const numbers: number[] = [];
    const closing = new AbortController();
    t.teardown(() => closing.abort());
    const others: string[] = [];
    await new Promise<void>((resolve, reject) => {
      const read = async () => {
        for await (const { kind, data } of hub.client.events({ signal: closing.signal, onOpen: resolve })) {
          if (kind === 'notification.requested') numbers.push(Number(String(data['title']).split(' ')[1]));
          else others.push(kind);
        }
      };
      read().catch(reject);
    });
    // First the same events without stalled subscribers, to fill the ring and to grow the heap to its limit.
    await publish(hub, total);
    await eventually(() => numbers.length === total || undefined, 'the warm-up has arrived');
    const before = { resident: residentKiB(hub.pid), files: openFiles(hub.pid) };

    numbers.length = 0;
    for (let index = 0; index < stalled; index++) await subscribeAndNeverRead(t, hub);
    await eventually(async () => (await subscribers(hub)) === stalled + 1 || undefined, 'all are subscribed');
    await publish(hub, total);
    await eventually(() => numbers.length >= total || undefined, 'all events arrive');
    const grownMiB = (residentKiB(hub.pid) - before.resident) / 1024;
    t.ok(grownMiB < 20, `the Hub has grown by ${grownMiB.toFixed(1)} MiB`);
    // A subscriber right after the start of the Hub may still receive `hub.started`.
    t.same(
      others.filter((kind) => kind !== 'hub.started'),
      [],
      'no gap',
    );
    t.same(new Set(numbers).size, total, 'each event arrives once');
    await eventually(
      async () => (await subscribers(hub)) === 1 || undefined,
      'the Hub closes the connections of stalled subscribers',
    );
    await eventually(
      () => openFiles(hub.pid) <= before.files || undefined,
      'the descriptors of those connections are closed',
    );
    t.notMatch(hubLog(place), /EMFILE|"level":"error"/);
    closing.abort();
    await hub.shutdown();
  },
);

t.test(
  'regression: ensure and up continue with the next Hub when theirs dies in the start of the agent server',
  async (t) => {
    for (const words of [
      ['ensure', '--json'],
      ['up', '--no-follow', '--json'],
    ]) {
      const place = makePlace(t);
      const workspace = place.workspace('site', { Provider: 'demo' });
      const first = await startHub(place);
      const asked = oratorio(place, [...words, workspace]);
      await eventually(async () => {
        const records = await first.client.list();
        return records.some(({ state }) => state === 'starting') || undefined;
      }, 'the agent server is starting');
      process.kill(first.pid, 'SIGKILL');
      const { code, stdout, stderr } = await asked;
      t.equal(code, 0, stderr);
      const { state, pid } = JSON.parse(stdout);
      t.equal(state, 'running');
      t.not(runningHub(place).pid, first.pid, 'another Hub');
      t.same(
        agentServersUnder(place.root).map((each) => each.pid),
        [pid],
        'one agent server',
      );
    }
  },
);
