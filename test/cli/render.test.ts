import { createColors } from 'picocolors';
import t from 'tap';
import { appended } from '../../src/cli/commands/logs.ts';
import { CliError, quoted } from '../../src/cli/errors.ts';
import { explain } from '../../src/cli/explain.ts';
import { columns, eventLine, recordLines } from '../../src/cli/render.ts';
import { withoutToken } from '../../src/cli/without-token.ts';
import { tableLines } from '../../src/cli/workspace-lines.ts';
import { distinctNames, rowOf } from '../../src/cli/workspace-table.ts';
import { HubRequestError, HubUnavailableError, JsonRpcError, type RecordAnswer } from '../../src/client/index.ts';
import { openWorkspace } from '../../src/config/index.ts';
import { messageOf } from '../../src/lib/index.ts';
import { agentWords } from '../../src/protocol/index.ts';

const plain = createColors(false);

const record: RecordAnswer = {
  workspacePath: '/w',
  canonicalWorkspacePath: '/w',
  state: 'exited',
  pid: null,
  endpoints: { appServerWebSocket: 'ws://127.0.0.1:1/ws?token=secret-token' },
  serviceStatus: {
    appServerWebSocket: { state: 'running', url: 'ws://127.0.0.1:1/ws?token=secret-token', reason: null },
    dashboard: { state: 'disabled', url: null, reason: 'Off.' },
  },
  serverVersion: '1',
  startedByHub: true,
  exitCode: 7,
  lastError: 'It fell.',
  recentStderr: 'line one\nline two\n',
  displayName: 'w',
  phase: 'exited.waiting',
  adopted: false,
  incarnation: 1,
  restartCount: 2,
  nextAttemptAt: null,
  lastStartedAt: null,
  lastExitedAt: null,
  trust: 'restricted',
  page: null,
  ...{ health: 'unknown', problems: [], lastTurn: null, failuresInARow: 0, model: null },
  agent: { kind: 'acp', name: 'pi', version: '0.0.34', state: 'busy', approvals: 'none' },
  ...{ pendingApprovals: 0, turnsResumed: 0, costUsd: null, sandbox: null, configChanged: false, incident: null },
  restrictedSettings: ['EndPoint'],
  health: 'unknown',
  problems: [{ code: 'exited', what: 'It fell over.', where: null, next: 'oratorio logs /w' }],
  lastTurn: { status: 'failed', endedAt: '2026-01-01T00:00:00Z', code: 'upstreamUnauthorized', message: null },
  failuresInARow: 6,
  model: { name: 'gpt-x', provider: 'openai', host: 'api.openai.com' },
  pendingApprovals: 1,
  costUsd: 0.5,
  configChanged: false,
};

t.test('a record as text has all its facts and no token', async (t) => {
  const text = recordLines(record, plain).join('\n');
  for (const part of [
    '/w',
    'exited.waiting',
    'It fell.',
    'line two',
    'ws://127.0.0.1:1/ws',
    'Off.',
    'restricted: EndPoint ignored',
    'It fell over.',
    'oratorio logs /w',
    'gpt-x at api.openai.com',
    'pi 0.0.34 (busy, does not ask)',
    'key refused ×6',
    '$0.5',
    '1 for approval',
  ])
    t.match(text, part);
  t.notMatch(text, 'secret-token');
  t.equal(withoutToken('http://127.0.0.1:1/#token=x'), 'http://127.0.0.1:1/');
});

t.test(
  'regression: an agent whose program starts with its first turn has no state beside that of its workspace',
  async (t) => {
    const { agent } = record;
    if (agent === null) throw new Error('the record has an agent');
    t.equal(agentWords({ ...agent, state: 'absent', approvals: 'asks' }), 'pi 0.0.34');
    t.equal(agentWords({ ...agent, state: 'exited', approvals: 'asks' }), 'pi 0.0.34 (exited)');
  },
);

t.test('an event is one line without a token', async (t) => {
  const data = {
    pid: 5,
    endpoints: { appServerWebSocket: 'ws://127.0.0.1:1/ws?token=secret-token' },
    recentStderr: 'a\nb',
  };
  const line = eventLine(
    { id: 'a-1', kind: 'appserver.running', at: '2026-01-01T00:00:00Z', workspacePath: '/w', data },
    plain,
  );
  t.match(line, /appserver.running +\/w +pid=5 +ws:\/\/127.0.0.1:1\/ws$/);
  t.notMatch(line, '\n');
});

t.test('columns are aligned', async (t) => {
  t.strictSame(
    columns(
      ['A', 'B'],
      [
        ['long', 'x'],
        ['s', 'y'],
      ],
      { colors: plain, width: Number.POSITIVE_INFINITY },
    ),
    ['A     B', 'long  x', 's     y'],
  );
});

t.test('a table wider than a narrow terminal becomes a list whose lines fit', async (t) => {
  const rows = [
    ['site', 'running', 'a trouble that needs more than one line'],
    ['shop', 'stopped', ''],
  ];
  const heading = ['NAME', 'STATE', 'TROUBLE'];
  const narrow = columns(heading, rows, { colors: plain, width: 20 });
  t.ok(narrow.every((line) => line.length <= 20));
  t.match(narrow.join(''), /^site {2}STATE: running {2}TROUBLE: a trouble.*one line.*shop {2}STATE: stopped/);
  t.equal(columns(heading, rows, { colors: plain, width: 80 }).length, 3, 'a table where it fits');
});

t.test('regression: the table of workspaces fits the terminal, with the trouble below its row', async (t) => {
  const long = { ...record, displayName: 'docs-bot', page: '/w/abcdefghijklmnop/' };
  const rows = [record, long, { ...record, displayName: 'site', problems: [], pendingApprovals: 0 }].map((each) =>
    rowOf(each, Date.parse('2026-01-01T00:01:00Z'), plain),
  );
  for (const width of [60, 80, 100, 140, 200]) {
    const lines = tableLines(rows, { colors: plain, width });
    t.ok(
      lines.every((line) => line.length <= width),
      `${width} columns: ${Math.max(...lines.map((line) => line.length))}`,
    );
    t.equal(lines.length, 6, 'a heading, three rows, two troubles');
    t.match(lines[2], /^ {2}It fell over\. → oratorio logs \/w$/);
    t.match(lines[5], /^site +/);
  }
  const [narrow] = tableLines(rows, { colors: plain, width: 80 });
  t.match(narrow, /^NAME +STATE .*LAST TURN$/);
  t.notMatch(narrow, /PAGE|RESTARTS|TROUBLE/, 'the least important columns go first');
  t.match(tableLines(rows, { colors: plain, width: 200 })[0], /RESTARTS +LAST TURN +COST +PAGE$/);
  const [, first] = tableLines([rows[0] ?? []], { colors: plain, width: 12 });
  t.match(first, 'STATE', 'a table too narrow for a name and a state is a list');
});

t.test('workspaces of the same name show the shortest ends of their paths that differ', async (t) => {
  const paths = ['/home/a/one/app', '/home/a/two/app', '/srv/two/app', '/home/a/site'];
  const records = paths.map((canonicalWorkspacePath) => ({
    canonicalWorkspacePath,
    displayName: canonicalWorkspacePath.split('/').at(-1) ?? '',
  }));
  t.strictSame([...distinctNames(records).values()], ['one/app', 'a/two/app', 'srv/two/app', 'site']);
});

t.test('the difference of two tails of a log is its new lines', async (t) => {
  t.equal(appended('', 'abc'), 'abc');
  t.equal(appended('abc', 'abc'), '');
  t.equal(appended('abc', 'abcdef'), 'def');
  t.equal(appended('abcdef', 'defghi'.replace('def', 'abcdef').slice(2)), '\n… some output was missed …\ncdefghi');
  const lines = Array.from({ length: 2_000 }, (_, index) => `line ${index}\n`);
  const whole = lines.join('');
  t.equal(appended(whole.slice(-8_000, -500), whole.slice(-8_000)), whole.slice(-500), 'a tail that has moved on');
  t.match(appended('gone', 'new'), /some output was missed/);
});

t.test('every failure has an exit code, a sentence, a hint and a JSON body', async (t) => {
  const refusal = (code: string) =>
    explain(new HubRequestError(500, { code, message: 'm', details: { workspacePath: '/a b' } }));
  t.match(refusal('workspaceNotFound'), { exitCode: 4, hint: /oratorio init '\/a b'/ });
  try {
    openWorkspace(t.testdir({ 'a b': {} }).concat('/a b'), { home: t.testdirName });
    t.fail('a directory without .oratorio is no workspace');
  } catch (error) {
    const advised = explain(
      new HubRequestError(404, { code: 'workspaceNotFound', message: messageOf(error), details: null }),
    );
    t.match(advised, { exitCode: 4, hint: null }, 'the advice of the Hub is not repeated');
    t.match(advised.what, /To make it one: oratorio init '.*a b'$/);
  }
  t.match(refusal('workspaceLocked'), { exitCode: 5, body: { error: { code: 'workspaceLocked' } } });
  const locked = (details: Record<string, unknown>) =>
    explain(new HubRequestError(409, { code: 'workspaceLocked', message: 'm', details })).hint;
  t.equal(locked({ pid: 42 }), 'Stop it where it was started, or end it: kill 42');
  t.equal(
    locked({ pid: null, lockPath: '/a b/appserver.lock' }),
    "Find the process that holds the lock, then end it: fuser '/a b/appserver.mutex'",
    'the Hub names the record of the owner; the file beside it is the locked one',
  );
  const unusable =
    'The workspace lock /w/.oratorio/appserver.mutex cannot be used: it is a symbolic link. Remove it, then start again.';
  const details = { pid: null, lockPath: '/w/.oratorio/appserver.lock' };
  t.equal(
    explain(new HubRequestError(409, { code: 'workspaceLocked', message: unusable, details })).hint,
    null,
    'no process holds a lock that cannot be one',
  );
  for (const code of ['appServerStartFailed', 'appServerUnhealthy', 'portUnavailable'])
    t.equal(refusal(code).exitCode, 6);
  t.equal(refusal('somethingNew').exitCode, 1);
  t.match(explain(new HubUnavailableError('none', { logTail: 'tail' })), { exitCode: 3, context: 'tail' });
  t.match(explain(new CliError('usage', 'wrong', 'right')), { exitCode: 2, what: 'wrong', hint: 'right' });
  t.match(explain(new JsonRpcError({ code: -32012, message: 'busy' })), {
    exitCode: 1,
    body: { error: { code: 'rpc-32012' } },
  });
  t.match(explain('text'), {
    exitCode: 1,
    what: 'text',
    body: { error: { code: 'failure', message: 'text', details: null } },
  });
  t.equal(quoted("it's"), "'it'\\''s'");
});
