/** Requests and answers of every route of a real agent server. */
import fc from 'fast-check';
import t from 'tap';
import * as v from 'valibot';
import { StorageError } from '../../src/agent/index.ts';
import {
  AuthMethods,
  AutomationsState,
  ConfigView,
  DashboardSummary,
  EventPage,
  EventSummary,
  LogPage,
  PageInfo,
  SessionPage,
  TraceEvent,
  traceTypes,
} from '../../src/protocol/index.ts';
import { callTool, fail, say, script, think, usage } from '../agent/scripted-provider.ts';
import { anyCharacter } from '../any-character.ts';
import { Client, words } from '../appserver/harness.ts';
import { Session } from '../appserver/session.ts';
import { bare } from './bare.ts';
import { type Answer, type Body, Stream, scene } from './harness.ts';

/** Held against the schema of the protocol: nothing is missing, and nothing is there that it does not name. */
function fits<S extends v.GenericSchema>(schema: S, { status, text, body }: Answer): v.InferOutput<S> {
  if (status !== 200) throw new Error(`${status}: ${text}`);
  const read = v.parse(schema, body);
  if (JSON.stringify(read).length !== JSON.stringify(body).length)
    throw new Error(`more than the schema says: ${text}`);
  return read;
}

const typesOf = (events: readonly { readonly type: string }[]) => events.map(({ type }) => type);

t.test('summary, sessions and events have the traces of a turn, for every spelling of the path', async (t) => {
  const { ask, say, path } = await scene(t);
  const sessionKey = await say('think twice\nrun: echo one', 'fail');
  const page = fits(EventPage, await ask(`/DashBoard/api/sessions/${sessionKey}/events`));
  t.match(page.session, { sessionKey, turnCount: 2, isRunning: false, toolCallCount: 1 });
  t.ok(page.events.length > 8);
  const summary = fits(DashboardSummary, await ask('/DashBoard/api/summary'));
  t.match(summary, { kind: 'workspace', workspacePath: path, sessionCount: 1, turnCount: 2, provider: 'demo' });
  t.equal(summary.eventCount, page.events.length);
  t.same(
    summary.recentEvents.map(({ id }) => id),
    page.events
      .map(({ id }) => id)
      .reverse()
      .slice(0, 20),
  );
  t.same(
    summary.modules.map(({ name }) => name),
    ['provider', 'threads', 'traces', 'automations', 'mcp', 'api', 'agui', 'dashboard', 'sandbox'],
  );
  const sessions = fits(SessionPage, await ask('/DashBoard/api/sessions'));
  t.match(sessions.sessions, [{ sessionKey, totalTokens: summary.totalTokens }]);
  t.ok((sessions.sessions[0]?.durationMs ?? 0) > 0);
  for (const spelling of ['/dashboard/api', '/DASHBOARD/API', '/Dashboard/Api']) {
    t.equal((await ask(`${spelling}/summary`)).status, 200, spelling);
    const events = await ask(`${spelling}/sessions/${sessionKey}/events`);
    t.same(events.body.events, page.events, spelling);
    t.equal((await ask(`${spelling}/sessions/${sessionKey.toUpperCase()}/events`)).status, 404, 'keys keep their case');
  }
  t.equal((await ask('/API/sessions', { method: 'DELETE' })).status, 404, 'without the prefix as listed');
  fits(PageInfo, await ask('/dashboard/api/page'));
  fits(AuthMethods, await ask('/dashboard/api/auth', { token: null }));
  fits(LogPage, await ask('/dashboard/api/logs'));
  fits(AutomationsState, await ask('/dashboard/api/orchestrators/automations/state'));
  fits(ConfigView, await ask('/dashboard/api/config'));
  t.match((await ask('/dashboard/api/machines')).body[0], { name: 'hub' });
});

t.test('API and stream have the same events of every trace type that turns produce', async (t) => {
  const provider = script(
    [
      think('one '),
      think('thought'),
      say('A word,'),
      think('another'),
      say(' and another.'),
      callTool('Exec', { command: 'echo one' }),
      usage(7, 5),
    ],
    [think('third'), callTool('ReadFile', { path: 'nothing-here.txt' })],
    say('Done.'),
    fail('upstreamQuotaExceeded'),
    fail('upstreamQuotaExceeded'),
    say('A summary.'),
  );
  const { ask, server, url, token } = await scene(
    t,
    { Compaction: { KeepRecentTurns: 1 }, FallbackModels: ['spare'] },
    provider,
  );
  const stream = await Stream.open(t, url, token);
  const session = await Session.open(t, server.webSocketUrl, { onApproval: () => ({ decision: 'accept' }) });
  const { thread } = await session.call('thread/start', {});
  await session.say(thread.id, 'work');
  await session.until('turn/completed');
  await session.say(thread.id, 'fail');
  await session.until('turn/failed');
  await session.call('thread/compact', { threadId: thread.id });
  await session.call('thread/archive', { threadId: thread.id });
  const { body } = await ask(`/DashBoard/api/sessions/${thread.id}/events?bodies=full`);
  const last = body.events.at(-1).id;
  await stream.until((records) => records.some(({ data }) => data.id === last), 'the last event');
  const streamed = stream.events();
  t.same(typesOf(streamed), typesOf(body.events));
  t.ok(stream.records.filter(({ data }) => data.id !== undefined).every(({ event, data }) => event === data.type));
  for (const each of streamed) v.parse(EventSummary, each);
  const seen = new Set(typesOf(body.events));
  t.same(
    traceTypes.filter((type) => !seen.has(type)),
    ['turn.resumed', 'turn.suspended'],
    'all types of specification 2.8, and ours, but those of a turn whose agent server ends',
  );
  const segments = body.events.filter(({ type }: Body) => type === 'thinking' || type === 'response');
  t.same(
    segments.slice(0, 6).map(({ type, data }: Body) => `${type}: ${data.text}`),
    [
      'thinking: one thought',
      'response: A word,',
      'thinking: another',
      'response:  and another.',
      'thinking: third',
      'response: Done.',
    ],
    'one for each stretch, not for each piece',
  );
  t.match(body.session, { thinkingCount: 3, responseCount: 3, toolCallCount: 2, toolFailureCount: 1, errorCount: 1 });
});

t.test('events can be paged, filtered, and read with or without bodies', async (t) => {
  const { ask, say } = await scene(t);
  const long = 'x'.repeat(5_000);
  const sessionKey = await say('think\nrun: echo one', `echo ${long}`);
  const of = async (query: string): Promise<Body> =>
    (await ask(`/DashBoard/api/sessions/${sessionKey}/events?${query}`)).body;
  const all = (await of('bodies=full')).events;
  const ids = all.map(({ id }: Body) => id);
  for (const limit of [1, 3, 7]) {
    const forward: number[] = [];
    const backward: number[] = [];
    for (let after: number | undefined = 0; after !== undefined; ) {
      const page: Body = await of(`limit=${limit}&after=${after}`);
      forward.push(...page.events.map(({ id }: Body) => id));
      after = page.next;
    }
    for (let before: number | '' | undefined = ''; before !== undefined; ) {
      const page: Body = await of(`limit=${limit}&order=desc&before=${before}`);
      backward.push(...page.events.map(({ id }: Body) => id));
      before = page.next;
    }
    t.same(forward, ids);
    t.same(backward, [...ids].reverse());
  }
  t.same(typesOf((await of('types=tool.completed,tool.started')).events), ['tool.started', 'tool.completed']);
  t.same(new Set((await of('tool=Exec')).events.map(({ tool }: Body) => tool)), new Set(['Exec']));
  t.same(new Set((await of('turn=turn_002')).events.map(({ turnId }: Body) => turnId)), new Set(['turn_002']));
  t.ok((await of('q=ECHO ONE')).events.length > 0, 'in any case');
  t.same((await of('q=nothing like it')).events, []);
  t.same(
    (await of(`after=${ids[1]}&before=${ids[4]}`)).events.map(({ id }: Body) => id),
    ids.slice(2, 4),
  );
  t.same(
    (await of(`after=${ids[1]}&before=${ids[4]}&order=desc`)).events.map(({ id }: Body) => id),
    [ids[3], ids[2]],
  );

  const said = (await of('bodies=short&types=response')).events.at(-1);
  t.match(said, { isShortened: true });
  t.ok(said.data.text.length <= 201);
  t.match((await of('bodies=none&types=response')).events.at(-1), { isShortened: true, data: { text: '' } });
  const whole = await ask(`/DashBoard/api/sessions/${sessionKey}/events/${said.id}`);
  t.match(fits(TraceEvent, whole).data['text'], /x{5000}/);
  for (const id of ['0', '999999', 'x', '-1', '1e3', '9'.repeat(30)]) {
    t.match(await ask(`/DashBoard/api/sessions/${sessionKey}/events/${id}`), {
      status: 404,
      body: { error: { code: 'eventNotFound' } },
    });
  }
  t.match(await ask('/DashBoard/api/sessions/nobody/events'), {
    status: 404,
    body: { error: { code: 'sessionNotFound', details: { sessionKey: 'nobody' } } },
  });
});

t.test('sessions can be paged and filtered by name and state', async (t) => {
  const provider = script(
    say('1'),
    say('2'),
    callTool('ReadFile', { path: 'none' }),
    say('3'),
    fail('upstreamUnreachable'),
  );
  const { ask, server, say: sayTo } = await scene(t, {}, provider);
  const keys: string[] = [];
  for (const input of ['first', 'second', 'third']) keys.unshift(await sayTo(input));
  const session = await Session.open(t, server.webSocketUrl);
  const { thread } = await session.call('thread/start', {});
  await session.say(thread.id, 'fourth');
  await session.until('turn/failed');
  keys.unshift(thread.id);
  const list = async (query: string): Promise<Body> => (await ask(`/DashBoard/api/sessions?${query}`)).body;
  const seen: string[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const page: Body = await list(`limit=1&cursor=${cursor}`);
    seen.push(...page.sessions.map(({ sessionKey }: Body) => sessionKey));
    cursor = page.next;
  }
  t.same(seen, keys);
  t.same(
    (await list('q=SECOND')).sessions.map(({ sessionKey }: Body) => sessionKey),
    [keys[2]],
  );
  t.same(
    (await list('status=failed')).sessions.map(({ sessionKey }: Body) => sessionKey),
    [keys[0]],
  );
  t.same((await list('status=running')).sessions, []);
  const { next } = await list('limit=2');
  t.equal(next, keys[1]);
  t.match(await ask(`/DashBoard/api/sessions/${next}`, { method: 'DELETE' }), { status: 200 });
  t.same(
    (await list(`limit=2&cursor=${next}`)).sessions.map(({ sessionKey }: Body) => sessionKey),
    keys.slice(2),
    'after the deletion of its session, a cursor continues at the same place',
  );
});

t.test('a random query is answered 200 or 400', async (t) => {
  const { ask, say, log } = await scene(t);
  const sessionKey = await say('echo one');
  const name = fc.constantFrom(
    'after',
    'before',
    'limit',
    'types',
    'tool',
    'turn',
    'q',
    'order',
    'bodies',
    'cursor',
    'status',
    'x',
  );
  const value = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.constantFrom(
      '',
      '0',
      '1',
      '-1',
      '1.5',
      '1e3',
      'NaN',
      '9007199254740993',
      'asc',
      'desc',
      'short',
      'full',
      'running',
      '%',
      "'",
      '"',
      '\0',
    ),
    fc.constantFrom(...traceTypes),
    fc.integer().map(String),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(`/DashBoard/api/sessions/${sessionKey}/events`, '/DashBoard/api/sessions', '/dashboard/api/logs'),
      fc.array(fc.tuple(name, value), { maxLength: 4 }),
      async (path, query) => {
        const { status, body } = await ask(
          `${path}?${new URLSearchParams(query.map(([key, each]) => [key, each.toWellFormed()]))}`,
        );
        if (status === 200) return Array.isArray(body.events ?? body.sessions ?? body.lines);
        return status === 400 && body.error.code === 'invalidRequest' && body.error.details.issues.length > 0;
      },
    ),
    { numRuns: 400 },
  );
  t.notMatch(log.join(''), 'because of a bug');
});

t.test('one or all sessions can be deleted, except one with an active turn', async (t) => {
  const { ask, say, server, url, token, log } = await scene(t);
  const [one, other] = [await say('echo one'), await say('echo two')];
  const stream = await Stream.open(t, url, token);
  t.match(await ask(`/api/sessions/${one}`, { method: 'DELETE' }), {
    status: 200,
    body: { deleted: true, sessionKey: one },
  });
  t.match(await ask(`/dashboard/api/sessions/${one}`, { method: 'DELETE' }), {
    status: 404,
    body: { error: { code: 'sessionNotFound', details: { sessionKey: one } } },
  });
  t.equal((await ask(`/DashBoard/api/sessions/${one}/events`)).status, 404);

  const client = await Client.ready(t, server.webSocketUrl);
  const { thread } = await client.call('thread/start', {});
  await client.call('turn/start', { threadId: thread.id, input: words('count to 100000') });
  await client.notification('item/agentMessage/delta');
  t.match((await ask('/DashBoard/api/sessions?status=running')).body.sessions, [
    { sessionKey: thread.id, isRunning: true },
  ]);
  t.match((await ask('/DashBoard/api/summary')).body, { activeTurns: 1 });
  t.match(await ask(`/api/sessions/${thread.id}`, { method: 'DELETE' }), {
    status: 409,
    body: { error: { code: 'sessionActive' } },
  });
  t.match(await ask('/Dashboard/Api/Sessions', { method: 'DELETE' }), {
    status: 200,
    body: { deleted: 1, kept: [thread.id] },
  });
  t.same(
    (await ask('/DashBoard/api/sessions')).body.sessions.map(({ sessionKey }: Body) => sessionKey),
    [thread.id],
  );
  await client.call('thread/delete', { threadId: thread.id });
  await stream.until((records) => records.filter(({ event }) => event === 'session.deleted').length === 3, 'all three');
  t.same(
    stream.records.filter(({ event }) => event === 'session.deleted').map(({ data }) => data.sessionKey),
    [one, null, thread.id],
  );
  t.match(log.join(''), /"msg":"session deleted","sessionKey":"[^"]+","by":"token","remoteAddress":"127.0.0.1"/);
  t.match(log.join(''), /"msg":"all sessions deleted","deleted":1,"kept":1/);
  t.not(one, other);
});

t.test('the page is served for each spelling of its address', async (t) => {
  const { ask } = await scene(t);
  const page = await ask('/DashBoard', { token: null });
  t.match(page, { status: 200, text: /<script type="module"/ });
  t.equal(page.headers.get('cache-control'), 'no-cache');
  for (const [, file = ''] of page.text.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)) {
    const asset = await ask(file, { token: null });
    t.equal(asset.status, 200, file);
    // The script that sets the theme before the first paint has no hash in its name.
    const isHashed = /-[0-9a-f]{10}\.\w+$/.test(file);
    t.match(asset.headers.get('cache-control'), isHashed ? 'immutable' : 'no-cache', file);
  }
  for (const path of ['/', '/dashboard', '/dashboard/', '/DASHBOARD', '/DashBoard/']) {
    const { status, headers } = await ask(path, { token: null });
    t.equal(status, 302, path);
    t.equal(headers.get('location'), '/DashBoard');
  }
  t.equal((await ask('/assets/nothing.js', { token: null })).status, 404);
  const head = await ask('/DashBoard', { method: 'HEAD', token: null });
  t.match(head, { status: 200, text: '' });
});

t.test('a failing disk is answered with storageFailed', async (t) => {
  const fault = () => {
    throw new StorageError('diskFull', 'The disk is full.');
  };
  const deletion = { delete: fault, deleteAll: fault, running: () => new Set<string>() };
  const { ask, log } = await bare(t, 'node', { deletion, status: async () => fault() });
  for (const [method, path] of [
    ['DELETE', '/api/sessions'],
    ['DELETE', '/api/sessions/x'],
    ['GET', '/DashBoard/api/summary'],
  ] as const) {
    t.match(await ask(path, { method }), {
      status: 503,
      body: { error: { code: 'storageFailed', message: 'The disk is full.', details: { code: 'diskFull' } } },
    });
  }
  t.same(log, []);
});

t.test('a wrong method is answered with the permitted ones', async (t) => {
  const { ask } = await scene(t);
  const answer = await ask('/api/sessions');
  t.match(answer, { status: 405, body: { error: { code: 'methodNotAllowed' } } });
  t.equal(answer.headers.get('allow'), 'DELETE');
  t.equal((await ask('/DashBoard/api/sessions', { method: 'DELETE' })).status, 200, 'both are one route there');
});

t.test('the log returns its last lines, or those after a line', async (t) => {
  const { ask } = await scene(t);
  for (const key of ['a', 'b', 'c']) await ask(`/api/sessions/${key}`, { method: 'DELETE' });
  await ask('/api/sessions', { method: 'DELETE' });
  const all = (await ask('/dashboard/api/logs')).body.lines;
  t.match(all.at(-1), { level: 'info', name: 'test', msg: 'all sessions deleted', fields: { by: 'token' } });
  t.same((await ask('/dashboard/api/logs?limit=1')).body.lines, [all.at(-1)]);
  t.same((await ask(`/dashboard/api/logs?after=${all[0].seq}`)).body.lines, all.slice(1));
});

t.test('initialize returns the address of the dashboard if there is one', async (t) => {
  const { server } = await scene(t);
  const client = await Client.open(t, server.webSocketUrl);
  const introduction = await client.call('initialize', { clientInfo: { name: 'test', version: '1' } });
  t.equal(introduction.dashboardUrl, server.endpoints.dashboard);
  const none = await scene(t, { DashBoard: { Enabled: false } });
  t.equal(none.server.endpoints.dashboard, undefined);
  t.equal(none.server.dashboardToken, undefined);
  const other = await Client.open(t, none.server.webSocketUrl);
  t.notOk('dashboardUrl' in (await other.call('initialize', { clientInfo: { name: 'test', version: '1' } })));
});
