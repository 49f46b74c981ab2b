import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import t from 'tap';
import { trustWorkspace, workspaceConfigFile, workspaceTrust } from '../../src/config/index.ts';
import { call, configOf, http, inState, living, nothingLeft, quick, room, small, stdio } from './helpers.ts';

const invalid = { name: 'AgentError', reason: 'mcpServerInvalid' };
const readOnly = { name: 'AgentError', reason: 'mcpServerReadOnly' };
const notFound = { name: 'AgentError', reason: 'mcpServerNotFound' };

t.test('servers are listed without values that may be secret', async (t) => {
  const mcp = room(t, {
    web: http('https://example.com/mcp', { httpHeaders: { 'x-key': 'tok-very-secret-1' } }),
    local: stdio([small], { env: { SMALL_TOKEN: 'tok-very-secret-2' } }),
  });
  const list = mcp.servers.list();
  t.match(list, [
    { name: 'local', readOnly: false, settings: { env: { SMALL_TOKEN: '…' } } },
    { name: 'web', readOnly: false, settings: { httpHeaders: { 'x-key': '…' } } },
  ]);
  t.notMatch(JSON.stringify(list), 'tok-very-secret');
  t.throws(() => mcp.servers.get('none'), notFound);
  t.throws(() => mcp.servers.get('constructor'), notFound);
});

const handWritten = `{
    "Model": "m",   "MaxToolCallRounds": 7,
    "EnabledTools": ["ReadFile", "Exec"],
    "mcpservers": {
        "old": { "transport": "stdio", "command": "old-program" }
    },
    "Unknown": {"kept": 1.50}
}
`;

t.test('a new server is added to the file, for its owner only, and starts at once', async (t) => {
  const mcp = room(t, { old: stdio([], { command: 'old-program' }) }, { file: handWritten });
  const answer = await mcp.servers.upsert('new', stdio([small], { env: { A: 'b' } }));
  t.match(answer, { name: 'new', readOnly: false, settings: { transport: 'stdio', env: { A: '…' } } });
  const expected = handWritten.replace(
    '"old-program" }\n',
    `"old-program" },
        "new": {
            "startupTimeoutSec": 120,
            "transport": "stdio",
            "command": ${JSON.stringify(process.execPath)},
            "args": [
                ${JSON.stringify(small)}
            ],
            "env": {
                "A": "b"
            }
        }\n`,
  );
  t.equal(configOf(mcp), expected);
  const file = workspaceConfigFile(mcp.workspace);
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.same(readdirSync(dirname(file)), ['config.json'], 'nothing is left of the writing');
  await inState(mcp, 'new', 'ready');
  t.same(
    mcp.servers.list().map(({ name }) => name),
    ['new', 'old'],
  );
});

t.test('a changed server is restarted with its new settings', async (t) => {
  const mcp = room(t, { small: stdio([small], { env: { KEPT_TOKEN: 'stored-value', CHANGED: 'before' } }) });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  const before = await living();
  const shown = mcp.servers.get('small').settings;
  if (shown.transport !== 'stdio') throw new Error('another transport');
  await mcp.servers.upsert('small', { ...shown, env: { ...shown.env, CHANGED: 'after' } });
  await inState(mcp, 'small', 'ready');
  t.match(JSON.parse(configOf(mcp)), {
    McpServers: { small: { env: { KEPT_TOKEN: 'stored-value', CHANGED: 'after' } } },
  });
  t.match(JSON.parse((await call(mcp, '__env', {})).text), { KEPT_TOKEN: '[redacted]', CHANGED: 'after' });
  const after = await living();
  t.equal(after.length, 1);
  t.notSame(after, before);
});

t.test('a disabled server stops and stays in the file', async (t) => {
  const mcp = room(t, { small: stdio([small]) });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  await mcp.servers.upsert('small', { ...mcp.servers.get('small').settings, enabled: false });
  t.match(mcp.servers.status(), [{ name: 'small', enabled: false, startupState: 'disabled', toolCount: 0 }]);
  t.same(mcp.servers.tools(), []);
  t.same(await living(), []);
  t.match(JSON.parse(configOf(mcp)), { McpServers: { small: { enabled: false } } });
});

t.test('variables stay unresolved in the file and are resolved at the start', async (t) => {
  const stored = { transport: 'stdio', command: process.execPath, args: [small], env: { WHOSE: '${SMALL_OWNER}' } };
  const mcp = room(
    t,
    { small: stdio([small], { env: { WHOSE: 'somebody' } }) },
    { file: JSON.stringify({ McpServers: { small: stored } }), env: { SMALL_OWNER: 'somebody', SMALL_PATH: small } },
  );
  const { settings } = mcp.servers.get('small');
  if (settings.transport !== 'stdio') throw new Error('another transport');
  await mcp.servers.upsert('small', { ...settings, args: ['${SMALL_PATH}'] });
  t.match(JSON.parse(configOf(mcp)).McpServers.small, { args: ['${SMALL_PATH}'], env: { WHOSE: '${SMALL_OWNER}' } });
  t.match(mcp.servers.get('small').settings, { args: ['${SMALL_PATH}'], env: { WHOSE: '…' } });
  await inState(mcp, 'small', 'ready');
  t.match(JSON.parse((await call(mcp, '__env', {})).text), { WHOSE: 'somebody' });
  await t.rejects(mcp.servers.upsert('small', { ...settings, args: ['${NOT_SET_ANYWHERE}'] }), {
    ...invalid,
    detail: /NOT_SET_ANYWHERE, which Supervision\.PassEnvironment .* does not list/,
  });
});

t.test('regression: C1 a restricted workspace gets no server from a client, a trusted one stays trusted', async (t) => {
  const existing = { old: stdio([], { command: 'old-program' }) };
  const mcp = room(t, {}, { file: JSON.stringify({ McpServers: existing }), isTrusted: false });
  const before = configOf(mcp);
  await t.rejects(mcp.servers.upsert('new', stdio([small])), {
    name: 'AgentError',
    reason: 'workspaceRestricted',
    detail: /oratorio trust /,
  });
  t.equal(configOf(mcp), before);
  t.same(mcp.servers.list(), []);
  trustWorkspace(mcp);
  await mcp.servers.upsert('new', stdio([small]));
  await inState(mcp, 'new', 'ready');
  t.equal(workspaceTrust(mcp).trust, 'trusted');
  t.match(JSON.parse(configOf(mcp)).McpServers, { old: { command: 'old-program' }, new: { transport: 'stdio' } });
});

t.test('regression: C2 the workspace’s definition of a server replaces the user’s', async (t) => {
  const mine = http('http://mine.example', { httpHeaders: { Authorization: 'Bearer mine' } });
  const theirs = { transport: 'streamableHttp', url: 'http://127.0.0.1:1/' };
  const mcp = room(
    t,
    { x: http('http://127.0.0.1:1/') },
    { inherited: { x: mine }, file: JSON.stringify({ McpServers: { x: theirs } }) },
  );
  const { settings } = mcp.servers.get('x');
  t.match(settings, { url: 'http://127.0.0.1:1/', httpHeaders: {} });
  t.notMatch(JSON.stringify(settings), 'Authorization');
  await mcp.servers.upsert('x', { ...settings, toolTimeoutSec: 9 });
  t.notMatch(configOf(mcp), 'Bearer mine');
});

t.test('a URL with variables is listed without their values', async (t) => {
  const url = 'http://127.0.0.1:1/mcp?key=tok-very-secret-3';
  const file = JSON.stringify({ McpServers: { web: { transport: 'streamableHttp', url: '${WEB}' } } });
  const mcp = room(t, { web: http(url) }, { file, env: { WEB: url } });
  t.match(mcp.servers.get('web').settings, { url: 'http://127.0.0.1:1/mcp?key=[redacted]' });
});

t.test('servers of the user are listed and used, and cannot be changed through the workspace', async (t) => {
  const mine = stdio([small]);
  const mcp = room(t, { mine }, { inherited: { mine: { ...mine } }, file: '{}\n' });
  mcp.servers.start();
  await inState(mcp, 'mine', 'ready');
  t.match(mcp.servers.list(), [{ name: 'mine', readOnly: true }]);
  await t.rejects(mcp.servers.upsert('mine', mine), readOnly);
  await t.rejects(mcp.servers.remove('mine'), readOnly);
  t.equal(configOf(mcp), '{}\n');
  t.match(mcp.servers.status(), [{ startupState: 'ready' }]);
});

t.test('a removed server stops, and one of the user with its name starts', async (t) => {
  const users = stdio([small]);
  const file = JSON.stringify({ McpServers: { both: stdio([small, '2026']), own: stdio([small]) } }, null, 2);
  const mcp = room(t, { both: stdio([small, '2026']), own: stdio([small]) }, { inherited: { both: users }, file });
  mcp.servers.start();
  t.match(await inState(mcp, 'both', 'ready'), { protocolVersion: '2026-07-28' });
  await inState(mcp, 'own', 'ready');
  await mcp.servers.remove('own');
  t.throws(() => mcp.servers.get('own'), notFound);
  await t.rejects(mcp.servers.remove('own'), notFound);
  t.equal((await living()).length, 1);
  await mcp.servers.remove('both');
  t.same(JSON.parse(configOf(mcp)), { McpServers: {} });
  t.match(await inState(mcp, 'both', 'ready'), { protocolVersion: '2025-11-25' });
  t.match(mcp.servers.list(), [{ name: 'both', readOnly: true }]);
});

t.test('an invalid server is refused without a change', async (t) => {
  const mcp = room(t, { small: stdio([small]) });
  const before = configOf(mcp);
  const wrong: [string, unknown, RegExp][] = [
    ['no spaces', stdio([small]), /the name must be/],
    ['a', { transport: 'carrier-pigeon' }, /transport/],
    ['a', { transport: 'stdio', command: '' }, /command/],
    ['a', { transport: 'streamableHttp', url: 'nowhere' }, /url/],
    ['a', { ...stdio([small]), toolTimeoutSec: 0 }, /toolTimeoutSec/],
    ['a', { ...stdio([small]), env: { TOKEN: '…' } }, /env\.TOKEN is masked, and nothing is stored/],
    ['a', { ...stdio([small]), env: { TOKEN: 1 } }, /env\.TOKEN/],
  ];
  for (const [name, settings, detail] of wrong) {
    await t.rejects(mcp.servers.upsert(name, settings as never), { ...invalid, detail }, detail.source);
  }
  t.equal(configOf(mcp), before);
  t.same(await living(), []);
  t.equal(mcp.servers.status().length, 1);
});

t.test('a broken configuration is not overwritten', async (t) => {
  const mcp = room(t, {}, { file: '{ "Model": "m", ' });
  await t.rejects(mcp.servers.upsert('small', stdio([small])), {
    ...invalid,
    detail: /is not a JSON object: correct it/,
  });
  t.equal(configOf(mcp), '{ "Model": "m", ');
});

t.test('a failed write of the configuration leaves the server unchanged', async (t) => {
  const mcp = room(t, { small: stdio([small]) });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  const file = workspaceConfigFile(mcp.workspace);
  const source = readFileSync(file, 'utf8');
  // A directory in its place cannot be replaced by a file, not even by root.
  rmSync(file);
  mkdirSync(file);
  await t.rejects(mcp.servers.remove('small'));
  t.match(mcp.servers.status(), [{ startupState: 'ready' }]);
  rmSync(file, { recursive: true });
  writeFileSync(file, source);
});

t.test('concurrent changes are applied one after the other', async (t) => {
  const mcp = room(t, {});
  const names = ['a', 'b', 'c', 'd'];
  await Promise.all(names.map((name) => mcp.servers.upsert(name, stdio([small]))));
  await Promise.all(names.map((name) => mcp.servers.upsert(name, stdio([small, '2026']))));
  await Promise.all(names.map((name) => inState(mcp, name, 'ready')));
  t.same(Object.keys(JSON.parse(configOf(mcp)).McpServers), names);
  t.ok(mcp.servers.status().every(({ protocolVersion }) => protocolVersion === '2026-07-28'));
  t.equal((await living()).length, 4);
});

t.test('a test starts a separate server and leaves nothing', async (t) => {
  const mcp = room(t, { small: stdio([small]), off: stdio([small, '2026'], { enabled: false }) });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  const before = await living();
  const statusCount = mcp.statuses.length;
  t.match(await mcp.servers.test('small'), { success: true, toolCount: 8, tools: ['say', 'wait'] });
  t.match(await mcp.servers.test('off'), { success: true, toolCount: 8 });
  t.match(await mcp.servers.test(stdio([small])), { success: true });
  t.same(await living(), before, 'running servers are unchanged');
  t.equal(mcp.statuses.length, statusCount, 'no status is reported');
});

t.test('a failed test has a code and a message', async (t) => {
  const mcp = room(t, { web: http('http://127.0.0.1:1/mcp', { httpHeaders: { 'x-key': 'tok-very-secret-4' } }) });
  const test: typeof mcp.servers.test = (...args) => mcp.servers.test(...args);
  t.match(await test('web'), {
    success: false,
    errorCode: 'unreachable',
    errorMessage: 'The server cannot be reached (bad port).',
  });
  t.match(await test(stdio([], { command: 'no-such-program' })), { success: false, errorCode: 'notStarted' });
  t.match(await test(stdio([small, 'mute'], { startupTimeoutSec: 1 })), { errorCode: 'startupTimeout' });
  const broken = stdio([small, 'broken'], { env: { SMALL_TOKEN: 'tok-very-secret-5' } });
  const failed = await test(broken);
  t.match(failed, { errorCode: 'exited', errorMessage: /It exited \(code 4\)\.\ncannot work with \[redacted\]/ });
  const masked = http('http://127.0.0.1:1/mcp', { httpHeaders: { 'x-key': '…' } });
  t.match(await test(masked, 'web'), { errorCode: 'unreachable' }, 'masked values are the stored ones');
  await t.rejects(test(masked), invalid);
  await t.rejects(test('none'), notFound);
  t.same(await living(), []);
});

t.test('closing ends an active test', async (t) => {
  const mcp = room(t, {}, { restartPolicy: quick });
  const testing = mcp.servers.test(stdio([small, 'mute']));
  await mcp.servers.close();
  t.match(await testing, { success: false });
  t.same(await living(), []);
});

nothingLeft();
