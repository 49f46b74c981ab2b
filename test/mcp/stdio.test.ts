import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { defaults } from '../../src/protocol/index.ts';
import {
  call,
  everything,
  filesystem,
  inState,
  living,
  nothingLeft,
  quick,
  reached,
  room,
  small,
  stdio,
  toolOf,
  until,
} from './helpers.ts';

t.test('tools of server-everything are listed and called', async (t) => {
  const mcp = room(t, { all: stdio([everything, 'stdio']) });
  t.same(mcp.servers.tools(), [], 'nothing before it is ready');
  mcp.servers.start();
  const status = await inState(mcp, 'all', 'ready');
  t.match(status, { serverName: /everything/, protocolVersion: '2025-11-25', lastError: null });
  t.ok(status.toolCount >= 10, String(status.toolCount));
  t.equal(mcp.servers.tools().length, status.toolCount);
  t.same(await call(mcp, '__echo', { message: 'hello' }), { text: 'Echo: hello', isError: false });
  t.match(await call(mcp, '__get-sum', { a: 2, b: 40 }), { text: /42/, isError: false });
  const image = await call(mcp, '__get-tiny-image', {});
  t.match(image.images, [{ type: 'image', url: /^data:image\/png;base64,/ }]);
  t.match((await call(mcp, '__get-resource-links', { count: 2 })).text, /\[resource \S+.*: /);
  t.match((await call(mcp, '__get-resource-reference', { resourceType: 'Text', resourceId: 1 })).text, /\[resource /);
  const wrong = await call(mcp, '__get-sum', { a: 'two' });
  t.equal(wrong.isError, true);
  t.match(wrong.text, /number/i);
  const counted = await reached(mcp, 'all', ({ resourceCount }) => resourceCount > 0);
  t.ok(counted.resourceTemplateCount > 0);
});

t.test('server-filesystem reads and writes files in its directories', async (t) => {
  const mcp = room(t, { files: stdio([filesystem, '.']) });
  writeFileSync(join(mcp.workspace, 'a.txt'), 'in the workspace');
  mcp.servers.start();
  await inState(mcp, 'files', 'ready');
  t.match(await call(mcp, '__read_text_file', { path: 'a.txt' }), { text: 'in the workspace', isError: false });
  t.match(await call(mcp, '__write_file', { path: join(mcp.workspace, 'b.txt'), content: 'new' }), { isError: false });
  t.equal(readFileSync(join(mcp.workspace, 'b.txt'), 'utf8'), 'new');
  t.match(await call(mcp, '__read_text_file', { path: '/etc/passwd' }), { text: /denied/, isError: true });
  t.match(await toolOf(mcp, '__write_file').approvalFor({}, { workspacePath: mcp.workspace }), {
    kind: 'remoteResource',
    operation: 'call',
    target: 'files/write_file',
    scopeKey: /^mcp:files:write_file:\S{16}$/,
    covers: 'every call of write_file of the MCP server files, with any arguments',
  });
});

t.test('a long call reports its progress and can be cancelled', async (t) => {
  const mcp = room(t, { all: stdio([everything, 'stdio']) });
  mcp.servers.start();
  await inState(mcp, 'all', 'ready');
  const controller = new AbortController();
  const said: string[] = [];
  const running = call(
    mcp,
    '__trigger-long-running-operation',
    { duration: 600, steps: 6_000 },
    {
      signal: controller.signal,
      onOutput: (text) => {
        said.push(text);
        controller.abort(new Error('the turn was interrupted'));
      },
    },
  );
  await t.rejects(running, { message: 'the turn was interrupted' });
  t.match(said[0], /^1\/6000/);
  t.same(await call(mcp, '__echo', { message: 'still there' }), { text: 'Echo: still there', isError: false });
});

for (const era of ['2025', '2026'] as const) {
  t.test(`a server of ${era} on pipes supports calls, cancellation and changed tools`, async (t) => {
    const mcp = room(t, { small: stdio([small, era]) });
    mcp.servers.start();
    const status = await inState(mcp, 'small', 'ready');
    t.match(status, { serverName: 'small', serverVersion: '1.2.3', toolCount: 8 });
    t.equal(status.protocolVersion, era === '2026' ? '2026-07-28' : '2025-11-25');
    t.same(await call(mcp, '__say', { text: 'hello' }), { text: 'hello', isError: false });
    t.same(toolOf(mcp, '__grow').inputSchema, { type: 'object', properties: {} });
    t.match(toolOf(mcp, '__grow').description, 'The tool grow of the MCP server small.');
    t.match(
      (await call(mcp, '__big_one', { length: 60_000 })).text,
      /x\n\[The first 50000 characters.*10000 more.*Ask for less/,
    );
    t.same(JSON.parse((await call(mcp, '__data', {})).text), { answer: 42 });
    t.match(await call(mcp, '__refuse', {}), { isError: true, text: /error -32602: .*no refuse today/ });

    const controller = new AbortController();
    const waits = call(mcp, '__wait', {}, { signal: controller.signal, onOutput: () => controller.abort() });
    await t.rejects(waits, { name: 'AbortError' });

    const before = mcp.servers.tools();
    await call(mcp, '__grow', {});
    await reached(mcp, 'small', ({ toolCount }) => toolCount === 9);
    t.ok(mcp.servers.tools().some(({ name }) => name === 'mcp__small__new-8'));
    t.not(mcp.servers.tools(), before);
    t.equal(mcp.servers.tools(), mcp.servers.tools(), 'the same list while nothing changes');
  });
}

t.test('a call beyond its time limit is cancelled with an error', async (t) => {
  const mcp = room(t, { small: stdio([small], { toolTimeoutSec: 1 }) });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  t.match(await call(mcp, '__wait', {}), { isError: true, text: /within 1 s and was cancelled.*toolTimeoutSec/ });
});

t.test('a killed server is restarted, and its active call fails with an error', async (t) => {
  const mcp = room(t, { small: stdio([small]) }, { restartPolicy: quick });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  const [pid = 0] = await living();
  const waits = call(mcp, '__wait', {}, { onOutput: () => process.kill(pid, 'SIGKILL') });
  t.match(await waits, { isError: true, text: /went away during the call and is being restarted/ });
  t.same(mcp.servers.tools(), [], 'its tools are gone with it');
  t.match(await reached(mcp, 'small', ({ lastError }) => lastError !== null), {
    startupState: 'restarting',
    lastError: 'It exited (SIGKILL).',
    toolCount: 0,
  });
  await inState(mcp, 'small', 'ready');
  t.notOk((await living()).includes(pid));
  t.same(await call(mcp, '__say', { text: 'again' }), { text: 'again', isError: false });
});

t.test('a call of a stopped server fails with its state', async (t) => {
  const mcp = room(t, { small: stdio([small]) }, { restartPolicy: { ...quick, restart: 'never' } });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  const say = toolOf(mcp, '__say');
  t.match(await call(mcp, '__die', {}), { isError: true });
  await inState(mcp, 'small', 'failed');
  t.same(mcp.servers.tools(), []);
  const context = { signal: new AbortController().signal } as Parameters<typeof say.run>[1];
  t.match(await say.run({}, context), {
    isError: true,
    text: /small is not ready: it is failed \(It exited \(code 3\)/,
  });
});

t.test('a server that cannot be spawned fails at once without a retry', async (t) => {
  const mcp = room(t, {
    missing: stdio([], { command: '/no/such/program' }),
    nowhere: stdio([small], { cwd: '/no/such/directory' }),
    fine: stdio([small]),
  });
  mcp.servers.start();
  t.match(await inState(mcp, 'missing', 'failed'), { lastError: /cannot be started: there is no such program/ });
  t.match(await inState(mcp, 'nowhere', 'failed'), { lastError: /its directory \/no\/such\/directory does not exist/ });
  await inState(mcp, 'fine', 'ready');
  t.same(mcp.servers.describe(), { total: 3, byState: { failed: 2, ready: 1 } });
});

t.test(
  'regression: a server that ends before it reads a message is reported with its exit code and output',
  async (t) => {
    const boom = stdio(['-c', 'exec <&-; echo boom >&2; exit 3'], { command: 'sh' });
    const mcp = room(t, { boom }, { restartPolicy: { ...quick, maxRestarts: 0 } });
    mcp.servers.start();
    t.match(await inState(mcp, 'boom', 'failed'), { lastError: 'It exited (code 3).\nboom' });
  },
);

t.test('a server that fails too often is given up until it is changed', async (t) => {
  const secret = 'tok-very-secret-1';
  const broken = stdio([small, 'broken'], { env: { SMALL_TOKEN: secret } });
  const mcp = room(t, { broken }, { restartPolicy: { ...quick, maxRestarts: 2 } });
  mcp.servers.start();
  const { lastError } = await inState(mcp, 'broken', 'failed');
  t.equal(lastError, 'It exited (code 4).\ncannot work with [redacted]', 'the end of its output, redacted');
  t.equal(mcp.statuses.filter(({ startupState }) => startupState === 'restarting').length, 2);
  t.notMatch(JSON.stringify([mcp.statuses, mcp.logged]), secret);
  await mcp.servers.upsert('broken', stdio([small]));
  await inState(mcp, 'broken', 'ready');
});

t.test('a server works during a flood on standard error and with invalid lines', async (t) => {
  const mcp = room(t, { flood: stdio([small, 'flood']), babbles: stdio([small, 'babbles']) });
  mcp.servers.start();
  await Promise.all([inState(mcp, 'flood', 'ready'), inState(mcp, 'babbles', 'ready')]);
  t.same(await call(mcp, '__flood__say', { text: 'hello' }), { text: 'hello', isError: false });
  t.same(await call(mcp, '__babbles__say', { text: 'hello' }), { text: 'hello', isError: false });
});

t.test('a server that hangs at initialize is killed at its start-up time limit', async (t) => {
  const mcp = room(
    t,
    { mute: stdio([small, 'mute', 'stubborn'], { startupTimeoutSec: 1 }) },
    { restartPolicy: { ...quick, maxRestarts: 0 } },
  );
  mcp.servers.start();
  t.match(await inState(mcp, 'mute', 'failed'), { lastError: 'It was not ready within 1 s.' });
  t.same(await living(), []);
});

t.test('the wait for servers ends when each is ready or has timed out, and returns the others', async (t) => {
  const mcp = room(
    t,
    {
      good: stdio([small]),
      mute: stdio([small, 'mute', 'stubborn'], { startupTimeoutSec: 1 }),
      off: stdio([small], { enabled: false }),
    },
    { restartPolicy: quick },
  );
  mcp.servers.start();
  t.same(await mcp.servers.settled(), ['mute']);
  t.ok(mcp.servers.tools().length > 0, 'control: the other one is ready');
});

t.test('a server that writes an endless line is ended', async (t) => {
  const mcp = room(t, { endless: stdio([small, 'endless']) }, { restartPolicy: { ...quick, maxRestarts: 0 } });
  mcp.servers.start();
  t.match(await inState(mcp, 'endless', 'failed'), { lastError: /message of more than 16 MiB/ });
});

t.test('a server that closes its output and keeps running is ended', async (t) => {
  const mcp = room(t, { half: stdio([small, 'half-dead', 'mute']) }, { restartPolicy: { ...quick, maxRestarts: 0 } });
  mcp.servers.start();
  t.match(await inState(mcp, 'half', 'failed'), { lastError: 'It closed its standard output.' });
});

t.test(
  'regression: a server that exits while this process is blocked is reported as exited, not as having closed its output',
  async (t) => {
    const hold = (message: unknown) => {
      const { process: child } = message as { readonly process: ChildProcess };
      // The child has its streams when `spawn` returns. Other listeners are notified before this process blocks.
      queueMicrotask(() => child.stdout?.once('end', () => queueMicrotask(() => holdUntilDead(child.pid))));
    };
    subscribe('child_process', hold);
    t.teardown(() => unsubscribe('child_process', hold));
    // The server reads a message first, so that no write to it fails.
    const brief = stdio(['-c', 'read message; exec >&-; sleep 0.05; exit 7'], { command: 'sh' });
    const mcp = room(t, { brief }, { restartPolicy: { ...quick, maxRestarts: 0 } });
    mcp.servers.start();
    t.match(await inState(mcp, 'brief', 'failed'), { lastError: 'It exited (code 7).' });
  },
);

/** Blocks the event loop until the process is a zombie, and then for longer than the wait for data in its pipes. */
function holdUntilDead(pid: number | undefined): void {
  const pause = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  const status = `/proc/${pid}/status`;
  while (existsSync(status) && !/^State:\s+Z/m.test(readFileSync(status, 'utf8'))) pause(5);
  pause(2 * defaults.mcp.drainMs);
}

t.test('a server that ends at the request for its era is started without that request', async (t) => {
  const mcp = room(t, { old: stdio([small, 'dies-of-probe']) }, { restartPolicy: quick });
  mcp.servers.start();
  t.match(await inState(mcp, 'old', 'ready'), { protocolVersion: '2025-11-25' });
  t.same(
    mcp.statuses.map(({ startupState }) => startupState),
    ['starting', 'ready'],
    'no start has failed',
  );
});

t.test('processes started by a server end with it, also outside of its group', async (t) => {
  const mcp = room(t, { forks: stdio([small, 'forks']) }, { restartPolicy: { ...quick, restart: 'never' } });
  await mcp.servers.upsert(
    'forks',
    stdio([small, 'forks'], { env: { CHILDREN_FILE: join(mcp.workspace, 'children') } }),
  );
  await inState(mcp, 'forks', 'ready');
  const children: number[] = JSON.parse(readFileSync(join(mcp.workspace, 'children'), 'utf8'));
  const before = await living();
  t.ok(before.length === 3 && children.every((pid) => before.includes(pid)), 'all carry the mark');
  t.match(await call(mcp, '__die', {}), { isError: true });
  await inState(mcp, 'forks', 'failed');
  t.same(await living(), []);
});

t.test('closing ends a server that ignores the end of its input and SIGTERM, with its children', async (t) => {
  const mcp = room(t, {});
  const env = { CHILDREN_FILE: join(mcp.workspace, 'children') };
  await mcp.servers.upsert('stubborn', stdio([small, 'stubborn', 'forks'], { env }));
  await inState(mcp, 'stubborn', 'ready');
  t.equal((await living()).length, 3);
  await mcp.servers.close();
  t.same(await living(), []);
  t.match(mcp.servers.status(), [{ startupState: 'stopped', lastError: null }]);
});

t.test('closing during a start leaves no process', async (t) => {
  const mcp = room(t, { small: stdio([small]), all: stdio([everything, 'stdio']) });
  mcp.servers.start();
  await until('a process', async () => (await living()).length > 0);
  await mcp.servers.close();
  t.same(await living(), []);
});

t.test('a server gets the default and the configured variables, and no others', async (t) => {
  const mcp = room(
    t,
    { small: stdio([small], { env: { GIVEN: 'by the user', SMALL_TOKEN: 'tok-very-secret-2' }, envVars: ['PASSED'] }) },
    { env: { PASSED: 'on', UPSTREAM_API_KEY: 'sk-not-yours', ORATORIO_HOME: '/home/of/ours' } },
  );
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  const { text } = await call(mcp, '__env', {});
  t.match(JSON.parse(text), { GIVEN: 'by the user', PASSED: 'on', SMALL_TOKEN: '[redacted]' });
  t.notMatch(text, /sk-not-yours|home\/of\/ours/);
});

t.test('each server is an actor that can be inspected', async (t) => {
  const watched: string[] = [];
  const mcp = room(
    t,
    { small: stdio([small]), off: stdio([small], { enabled: false }) },
    {
      observe: (actor, name) => watched.push(`${name} ${actor.id}`),
    },
  );
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  t.same(watched, ['small mcp:small', 'off mcp:off']);
  t.match(mcp.servers.status(), [{ name: 'off', enabled: false, startupState: 'disabled' }, { name: 'small' }]);
});

nothingLeft();
