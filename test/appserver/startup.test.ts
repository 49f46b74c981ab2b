import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { parseArguments } from '../../src/appserver/arguments.ts';
import { runAppServer } from '../../src/appserver/index.ts';
import { readLaunchDocument } from '../../src/appserver/launch-document.ts';
import { StartupError } from '../../src/appserver/startup-error.ts';
import { createLogger } from '../../src/log/index.ts';
import type { AppServerLock } from '../../src/protocol/index.ts';
import { ownIdentity, probeLock } from '../../src/supervise/index.ts';
import { scanProcesses } from '../../src/supervise/scan.ts';
import {
  Client,
  eventually,
  launchDocument,
  lockFile,
  makeWorkspace,
  readLock,
  serving,
  spawnServer,
  startServer,
  stateOf,
  temporaryDirectory,
} from './harness.ts';

const mutex = (path: string): string => join(path, '.oratorio', 'appserver.mutex');

t.test(
  'a second server of a workspace, also by another path, exits with 75 and leaves the first unchanged',
  async (t) => {
    const { path, home } = makeWorkspace(t);
    const lock = await serving(spawnServer(t, { path, home }), path);
    symlinkSync(path, join(home, 'link'));
    for (const spelling of [path, join(home, 'link'), `${path}/../workspace/.`]) {
      const second = spawnServer(t, { path: spelling, home });
      t.equal(await second.ended, 75, spelling);
      t.match(second.output(), /^oratorio app-server: another agent server serves .*\n$/);
    }
    t.same(readLock(path), lock);
    await Client.ready(t, lock.endpoints.appServerWebSocket);
  },
);

t.test('of ten servers started at once one serves', async (t) => {
  const { path, home } = makeWorkspace(t);
  const servers = Array.from({ length: 10 }, () => spawnServer(t, { path, home }));
  const losers = servers.map(async (server) => ({ server, code: await server.ended }));
  const lock = await eventually(() => readLock(path), 'one publishes');
  const codes = await Promise.all(losers.filter((_, index) => servers[index]?.child.pid !== lock.pid));
  t.same(
    codes.map(({ code }) => code),
    Array.from({ length: 9 }, () => 75),
  );
  await Client.ready(t, lock.endpoints.appServerWebSocket);
});

t.test('a full disk ends the start with 71 and the next step, not with a report of a bug', async (t) => {
  const { path, home } = makeWorkspace(t);
  const first = spawnServer(t, { path, home });
  await serving(first, path);
  first.child.kill('SIGTERM');
  await first.ended;
  // A limit on the size of files refuses each write, as a full disk does.
  const limited = spawnServer(t, { path, home, before: ['sh', '-c', 'ulimit -f 0; exec "$@"', 'sh'] });
  t.equal(await limited.ended, 71, limited.output());
  t.match(limited.output(), /^oratorio app-server: [^\n]*(?:df -h|Make room)[^\n]*\n$/m);
  t.notMatch(limited.output(), 'this is a bug');
});

type Setup = Parameters<typeof spawnServer>[1];

/** Start of a server that must fail, as a process. */
async function startAsProcess(t: Test, setup: Setup): Promise<{ code: number | string; output: string }> {
  const server = spawnServer(t, setup);
  return { code: await server.ended, output: server.output() };
}

/** Starts in this process, with the functions that the process calls: each failure has its exit code and its message. */
async function startHere(_: Test, { path, home, args = [], stdin }: Setup): Promise<{ code: number; output: string }> {
  try {
    const given = parseArguments([...(path === undefined ? [] : ['--workspace', path]), ...args]);
    const { workspacePath, isManaged, listen } = given;
    const launch = isManaged ? await readLaunchDocument(Readable.from([Buffer.from(stdin ?? '')])) : undefined;
    const written = new PassThrough().setEncoding('utf8');
    const logger = createLogger({ name: 'appserver', stream: written, pretty: false });
    const run = await runAppServer({ workspacePath, listen, launch, env: { ORATORIO_HOME: home }, logger });
    return { code: run.exitCode, output: `${written.read() ?? ''}${run.problem}\n` };
  } catch (error) {
    if (!(error instanceof StartupError)) throw error;
    return { code: error.exitCode, output: `${error.message}\n` };
  }
}

t.test('an invalid launch document exits with 78 and a message without secrets', async (t) => {
  const { path, home } = makeWorkspace(t);
  const good = launchDocument(path);
  const secret = 'web-socket-token-secret';
  const cases: [string, RegExp][] = [
    ['', /is empty/],
    ['\n', /is empty/],
    [`{"token":"${secret}"`, /is not JSON/],
    ['5', /is not a JSON object/],
    [JSON.stringify({ ...good, version: 2 }), /wrong at version: expected 1/],
    [JSON.stringify({ ...good, notificationToken: { secret } }), /wrong at notificationToken: expected string/],
    [
      JSON.stringify({ ...good, services: { appServerWebSocket: { host: secret, port: 'x', token: secret } } }),
      /wrong at services\.appServerWebSocket\.port/,
    ],
    [JSON.stringify({ ...good, workspacePath: '/elsewhere' }), /for another workspace, \/elsewhere/],
    [`{"a":"${secret}${'x'.repeat(270_000)}"}`, /longer than/],
  ];
  const args = ['--managed'];
  // The last one, which is too long for a pipe, as a process; the others as a process would take them.
  for (const [index, [stdin, message]] of cases.entries()) {
    const start = index === cases.length - 1 ? startAsProcess : startHere;
    const { code, output } = await start(t, { path, home, args, stdin });
    t.equal(code, 78, String(message));
    t.match(output, message);
    t.notMatch(output, secret);
    t.equal(output.trim().split('\n').length, 1, 'one line');
  }
  t.notOk(readLock(path));
  t.equal(probeLock(mutex(path)), 'free');
});

t.test('each failure of the start has its exit code and message', async (t) => {
  const { path, home } = makeWorkspace(t);
  const bare = temporaryDirectory(t);
  const badConfig = makeWorkspace(t, { Hub: { Host: '0.0.0.0' } });
  const unsetVariable = makeWorkspace(t, { ApiKey: '$' + '{NOT_SET_ANYWHERE}' });
  const open = makeWorkspace(t, { AppServer: { WebSocket: { Host: '0.0.0.0' } } });
  const unreachable = makeWorkspace(t, { AppServer: { WebSocket: { Host: '192.0.2.1', Token: 'x' } } });
  const noLock = makeWorkspace(t);
  mkdirSync(mutex(noLock.path));
  const broken = makeWorkspace(t);
  writeFileSync(join(broken.path, '.oratorio', 'config.json'), '{"Model": }');
  /** Each code once as a process; the first of its cases. */
  const cases: [Setup, number, RegExp][] = [
    [{ home, path: join(home, 'nowhere') }, 66, /does not exist/],
    [{ home, path: bare }, 66, /is not an Oratorio workspace .* To make it one: oratorio init/],
    [{ home }, 66, /is not an Oratorio workspace/],
    [badConfig, 78, /config\.json: Hub\.Host must be a loopback address/],
    [unsetVariable, 78, /ApiKey must be .* NOT_SET_ANYWHERE, which .* does not list/],
    [broken, 78, /must be valid JSON, but is malformed at line 1, column 11/],
    [open, 78, /Token must be set to listen on 0\.0\.0\.0/],
    [unreachable, 71, /cannot listen on 192\.0\.2\.1/],
    [noLock, 71, /Cannot use the lock file/],
    [{ home, path, args: ['--nonsense'] }, 2, /unknown argument --nonsense; usage: /],
    [{ home, args: ['--workspace'] }, 2, /--workspace needs a value/],
    ...['http://127.0.0.1:1', '127.0.0.1:1', 'ws://127.0.0.1:1/x', 'ws://u@127.0.0.1:1', 'ws://127.0.0.1:99999'].map(
      (listen): [Setup, number, RegExp] => [{ home, path, args: ['--listen', listen] }, 2, /must be ws:/],
    ),
  ];
  const seen = new Set<number>();
  for (const [setup, code, message] of cases) {
    // Without an argument the directory of the process counts, and that of this one is not a workspace of the test.
    const isProcess = !seen.has(code) || (setup.path === undefined && setup.args === undefined);
    seen.add(code);
    const found = await (isProcess ? startAsProcess : startHere)(t, setup);
    t.equal(found.code, code, `${message} ${found.output}`);
    t.match(found.output, message);
    t.notMatch(found.output, /\n\s+at /, 'no stack');
  }
});

t.test('SIGTERM during the start ends the server', async (t) => {
  const { path, home } = makeWorkspace(t);
  const waiting = spawnServer(t, { path, home, args: ['--managed'], stdin: JSON.stringify(launchDocument(path)) });
  await eventually(
    () => (readdirSync(join(path, '.oratorio')).includes('appserver.mutex') ? true : undefined),
    'it starts',
  );
  waiting.child.kill('SIGTERM');
  t.equal(await waiting.ended, 0);
  t.notOk(readLock(path));
});

/** A process that carries `marker`, as a command of an agent server does. */
function marked(t: Test, marker: string) {
  const child = spawn('sleep', ['3006'], {
    env: { ...process.env, ORATORIO_INCARNATION: marker },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  t.teardown(() => child.kill('SIGKILL'));
  return { isAlive: () => child.exitCode === null && child.signalCode === null, ended };
}

t.test('processes of a dead server are ended, and those of a server that may be alive are not', async (t) => {
  const own = ownIdentity();
  for (const [identity, isTouched] of [
    [{ ...own, startedTicks: '1' }, true],
    [own, false],
    [{ ...own, pidNamespace: '1' }, false],
  ] as const) {
    const { path, home } = makeWorkspace(t);
    const incarnation = `startup-test-${process.pid}-${randomUUID()}`;
    const address: AppServerLock = {
      version: 1,
      pid: identity.pid,
      identity,
      workspacePath: path,
      managedByHub: false,
      incarnation,
      adoptionProof: null,
      startedAt: new Date(0).toISOString(),
      serverVersion: '0',
      endpoints: { appServerWebSocket: 'ws://127.0.0.1:9/ws' },
    };
    const [command, unrelated] = [marked(t, `${incarnation}/command`), marked(t, `${incarnation}-other`)];
    await eventually(async () => {
      const found = (await scanProcesses()).filter(
        ({ marker }) => typeof marker === 'object' && marker.value.startsWith(incarnation),
      );
      return found.length === 2 ? true : undefined;
    }, 'both run');
    mkdirSync(stateOf(path), { recursive: true });
    writeFileSync(lockFile(path), JSON.stringify(address));
    const { log } = await startServer(t, undefined, { workspacePath: path, env: { ORATORIO_HOME: home } });
    t.match(log.join(''), isTouched ? /"processes":1/ : /may still run/);
    if (isTouched) await command.ended;
    else t.ok(command.isAlive());
    t.ok(unrelated.isAlive());
    t.not(readLock(path)?.incarnation, incarnation, 'each start has a new incarnation');
  }
});

t.test('the incarnation of a server started by a command of another one extends that one’s', async (t) => {
  const { path, home } = makeWorkspace(t);
  const env = { ORATORIO_HOME: home, ORATORIO_INCARNATION: 'outer/command' };
  await startServer(t, undefined, { workspacePath: path, env });
  t.match(readLock(path)?.incarnation, /^outer\/command\/[0-9a-f-]{36}$/);
});
