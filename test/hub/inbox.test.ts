/** The inbox over real sockets: a Hub, agent servers with the demo model, and clients that answer at the same time. */
import { existsSync, readFileSync, statSync, watch, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { AppServerClient } from '../../src/client/index.ts';
import { type AppServerRecord, HubThreadList, InboxItem } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { runInProcess } from '../cli/in-process.ts';
import {
  eventually,
  makeWorkspace,
  quick,
  request,
  startTestHub,
  type TestHub,
  temporaryDirectory,
} from './harness.ts';

const settings = { ...quick, Provider: 'demo', DashBoard: { Enabled: false } };
const text = (words: string) => [{ type: 'text', text: words }];
/** Notices of the Hub at the user's ntfy server. */
const notices: { readonly click: string | undefined; readonly body: string }[] = [];
const ntfy = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += String(chunk);
  notices.push({ click: String(request.headers['click']), body });
  response.end();
});
await new Promise<void>((resolve) => ntfy.listen(0, '127.0.0.1', resolve));
t.teardown(() => ntfy.close());
const home = temporaryDirectory(t, 'oratorio-home-');
const topic = `http://127.0.0.1:${(ntfy.address() as AddressInfo).port}/topic`;
writeFileSync(
  join(home, 'config.json'),
  JSON.stringify({ Notifications: { Ntfy: { Url: topic, Token: 'tk_secret' } } }),
);
const hub = await startTestHub(t, { home });
const workspace = makeWorkspace(t, settings);
const record = await hub.ensure(workspace);
const workspaceId = idOf(record);

function idOf({ page }: Pick<AppServerRecord, 'page'>): string {
  return page?.split('/')[2] ?? '';
}

const socketOf = (of: AppServerRecord) => of.endpoints['appServerWebSocket'] ?? '';

/** A client that starts turns and answers nothing by itself. */
async function connect(t: Test, of: AppServerRecord, name = 'test'): Promise<AppServerClient> {
  const client = await AppServerClient.connect(socketOf(of), { clientInfo: { name, version: '1' } });
  t.teardown(() => client.close());
  return client;
}

/** Begins a turn that asks to run `touch <name>`. */
async function ask(client: AppServerClient, name: string): Promise<string> {
  const { thread } = (await client.request('thread/start', {})) as { thread: { id: string } };
  await client.request('turn/start', { threadId: thread.id, input: text(`run: touch ${name}`) });
  return thread.id;
}

const inboxOf = async (of: TestHub): Promise<InboxItem[]> => (await of.call('GET', '/v1/inbox')).body;

const itemOf = (threadId: string, of = hub) =>
  eventually(
    async () => (await inboxOf(of)).find(({ request: each }) => each.threadId === threadId),
    `the request of ${threadId}`,
  );

const answer = (requestId: string, decision: string, id = workspaceId) =>
  hub.call('POST', `/v1/inbox/${id}/${requestId}`, { decision });

t.test('a request is listed with all it asks, and decided once', async (t) => {
  const events = await hub.events();
  const client = await connect(t, record);
  const threadId = await ask(client, 'first');
  const item = await itemOf(threadId);
  t.match(v.parse(InboxItem, item), {
    workspaceId,
    workspacePath: record.canonicalWorkspacePath,
    displayName: record.displayName,
    actionUrl: `/w/${workspaceId}/#/chat/${threadId}`,
    request: { tool: 'Exec', operation: 'run', target: 'touch first', workingDirectory: record.canonicalWorkspacePath },
  });
  const { requestId } = item.request;
  t.match(await events.wait('inbox.added'), {
    workspacePath: record.canonicalWorkspacePath,
    data: { workspaceId, requestId, threadId, tool: 'Exec', actionUrl: item.actionUrl },
  });
  t.notMatch(JSON.stringify(events.seen), /touch first/, 'the stream carries no command');
  t.match(await answer(requestId, 'perhaps'), { status: 400, body: { error: { code: 'invalidRequest' } } });
  t.match(await answer(requestId, 'accept'), { status: 200, body: { decision: 'accept', decidedBy: 'api' } });
  t.match(await answer(requestId, 'decline'), {
    status: 409,
    body: { error: { code: 'alreadyDecided', details: { decision: 'accept', decidedBy: 'api' } } },
  });
  t.match(await events.wait('inbox.resolved'), {
    data: { requestId, decision: 'accept', decidedBy: 'api', reason: 'answered', decidedAt: /^\d{4}-.*Z$/ },
  });
  const said = await eventually(() => notices[0], 'the notice of the request');
  t.match(said, { click: `${hub.lock.apiBaseUrl}${item.actionUrl}`, body: /waits for an answer\nExec: run$/ });
  await eventually(() => existsSync(join(workspace, 'first')), 'the command runs');
  t.same(await inboxOf(hub), []);
  t.match(hub.output(), /a request of the inbox was decided/);
  t.notMatch(hub.output(), new RegExp(hub.lock.token));
  t.match(await answer('approval_none', 'accept'), { status: 404 });
  t.match(await answer(requestId, 'accept', 'aaaaaaaaaaaaaaaa'), { status: 404 });
  events.close();
});

t.test(
  'regression: H9 an answer with an invalid client name is refused, and no client poses as the timeout',
  async (t) => {
    const client = await connect(t, record);
    const decide = (requestId: string, name: string) =>
      hub.call('POST', `/v1/inbox/${workspaceId}/${requestId}`, { decision: 'decline', client: name });
    for (const [name, decidedBy] of [
      ['x'.repeat(100), 'x'.repeat(100)],
      ['constructor', 'constructor'],
      ['timeout', 'client timeout'],
      ['agent', 'client agent'],
    ] as const) {
      const { requestId } = (await itemOf(await ask(client, 'odd'))).request;
      for (const odd of ['', 'x'.repeat(60_000), '\u001b[2Kuser', 'a\u202eb', 'a\nb', 'a\u2028b'])
        t.match(await decide(requestId, odd), { status: 400, body: { error: { code: 'invalidRequest' } } });
      t.match(await decide(requestId, name), { status: 200, body: { decision: 'decline', decidedBy } });
    }
  },
);

t.test('the inbox names the place of a decision that was made elsewhere', async (t) => {
  const events = await hub.events();
  const terminal = await connect(t, record, 'oratorio-cli');
  const { requestId } = (await itemOf(await ask(terminal, 'second'))).request;
  await terminal.request('approval/respond', { requestId, decision: 'decline' });
  t.match(await answer(requestId, 'accept'), {
    status: 409,
    body: { error: { details: { decision: 'decline', decidedBy: 'terminal' } } },
  });
  t.match(await events.wait('inbox.resolved'), { data: { decision: 'decline', decidedBy: 'terminal' } });
  const page = { ...hub.lock, token: pageToken(hub.home) };
  const next = (await itemOf(await ask(terminal, 'third'))).request;
  const path = `/v1/inbox/${workspaceId}/${next.requestId}`;
  t.match(await request(page, 'POST', path, { decision: 'accept' }), { status: 200, body: { decidedBy: 'page' } });
  t.notOk(existsSync(join(workspace, 'second')));
  events.close();
});

t.test('every decision is on the record, with its author and without credentials', async (t) => {
  const client = await connect(t, record, 'oratorio-cli');
  const threadId = await ask(client, 'recorded --password=hunter22secret');
  const { requestId } = (await itemOf(threadId)).request;
  await answer(requestId, 'decline');
  const file = join(hub.home, 'hub', 'inbox.jsonl');
  const [newest] = (await hub.call('GET', '/v1/inbox/history?limit=1')).body;
  t.match(newest, {
    ...{
      workspaceId,
      workspacePath: record.canonicalWorkspacePath,
      requestId,
      threadId,
      tool: 'Exec',
      operation: 'run',
    },
    ...{ decision: 'decline', decidedBy: 'api', reason: 'answered', token: 'hub', remoteAddress: '127.0.0.1' },
  });
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.notMatch(readFileSync(file, 'utf8'), /hunter22secret/);
  t.match((await hub.call('GET', '/v1/inbox/history?limit=0')).status, 400);
  const shown = await runInProcess(hub.home, 'inbox', '--history', '--limit', '1');
  t.match(shown, { code: 0, text: /declined by api .*Exec: run touch recorded/ });
  t.match(JSON.parse((await runInProcess(hub.home, 'inbox', '--history', '--json')).text)[0], { requestId });
  t.match(await runInProcess(hub.home, 'inbox', '--history', '--limit', 'x'), { code: 2 });
});

t.test('the approval of a file shows the change and the scope of each answer', async (t) => {
  const client = await connect(t, record);
  const { thread } = (await client.request('thread/start', {})) as { thread: { id: string } };
  await client.request('turn/start', { threadId: thread.id, input: text('write "hello" to greeting.txt') });
  const { request: asked } = await itemOf(thread.id);
  t.match(asked, { operation: 'write', diff: /^--- .*greeting\.txt\n\+\+\+ .*\n@@ -0,0 \+1,1 @@\n\+hello/ });
  const shown = await runInProcess(hub.home, 'inbox');
  t.match(shown.text, /\+hello[\s\S]*--for session: writing and editing the file /);
  await answer(asked.requestId, 'decline');
  t.notOk(existsSync(join(workspace, 'greeting.txt')));
});

t.test('an approval changes the record and writes appservers.json once, at the end of its turn', async (t) => {
  const client = await connect(t, record);
  const file = join(hub.home, 'hub', 'appservers.json');
  const shown = async () => hub.record(workspace);
  const isStored = (text = '?') => readFileSync(file, 'utf8').includes(text);
  await eventually(async () => {
    const { threads } = v.parse(HubThreadList, (await hub.call('GET', '/v1/threads')).body);
    const ends = threads.map(({ lastTurn }) => lastTurn?.at ?? '').sort();
    const isAtRest = threads.every(({ activity }) => activity === 'idle');
    return (isAtRest && isStored(ends.at(-1)) && isStored('"sandbox":{')) || undefined;
  }, 'the turns of earlier tests have ended, and they and the trial of the sandbox are stored');
  const { lastTurn: before } = await shown();
  let writes = 0;
  const watcher = watch(join(hub.home, 'hub'), (_, name) => {
    if (name === 'appservers.json') writes += 1;
  });
  t.teardown(() => watcher.close());
  const { requestId } = (await itemOf(await ask(client, 'counted'))).request;
  await eventually(async () => (await shown()).pendingApprovals === 1 || undefined, 'the record counts the approval');
  t.equal(writes, 0);
  await answer(requestId, 'accept');
  const { pendingApprovals, lastTurn } = await eventually(async () => {
    const now = await shown();
    return now.lastTurn?.endedAt === before?.endedAt ? undefined : now;
  }, 'the turn has ended');
  t.match({ pendingApprovals, lastTurn }, { pendingApprovals: 0, lastTurn: { status: 'completed' } });
  await eventually(() => (isStored(lastTurn?.endedAt) && writes > 0) || undefined, 'it is stored');
  t.equal(writes, 1);
});

t.test('an interrupted turn withdraws its question', async (t) => {
  const events = await hub.events();
  const client = await connect(t, record);
  const threadId = await ask(client, 'interrupted');
  const { requestId, turnId } = (await itemOf(threadId)).request;
  await client.request('turn/interrupt', { threadId, turnId });
  t.match(await events.wait('inbox.resolved', ({ data }) => data['requestId'] === requestId), {
    data: { decision: 'cancel', decidedBy: 'agent', reason: 'turnEnded' },
  });
  events.close();
});

t.test('oratorio inbox lists, allows and declines', async (t) => {
  const client = await connect(t, record);
  const first = (await itemOf(await ask(client, 'fourth'))).request;
  const second = (await itemOf(await ask(client, 'fifth'))).request;
  const list = await runInProcess(hub.home, 'inbox');
  t.match(list, { code: 0, text: /touch fourth[\s\S]*touch fifth/ });
  t.match(JSON.parse((await runInProcess(hub.home, 'inbox', '--json')).text), [{ workspaceId }, { workspaceId }]);
  t.match(await runInProcess(hub.home, 'inbox', 'allow', 'approval_'), { code: 1, text: /2 requests begin/ });
  const allowed = await runInProcess(hub.home, 'inbox', 'allow', first.requestId);
  t.match(allowed, { code: 0, text: /Allowed: run touch fourth/ });
  const declined = await runInProcess(hub.home, 'inbox', 'decline', second.requestId.slice(0, 20));
  t.match(declined, { code: 0, text: /Declined: run touch fifth/ });
  t.match(await answer(first.requestId, 'decline'), {
    status: 409,
    body: { error: { details: { decidedBy: 'terminal' } } },
  });
  await eventually(() => existsSync(join(workspace, 'fourth')), 'the command runs');
  t.match(await runInProcess(hub.home, 'inbox'), { text: /Nothing waits/ });
  const again = await runInProcess(hub.home, 'inbox', 'decline', first.requestId);
  t.match(again, { code: 1, text: /was allowed in the terminal at 20\S+Z: Exec: run touch fourth/ }, 'a decided one');
  t.match(await runInProcess(hub.home, 'inbox', 'allow', 'approval_none'), {
    code: 1,
    text: /No request approval_none/,
  });
});

t.test('regression: H9 three approvers and cut connections: each request is decided exactly once', async (t) => {
  const runs = Number(process.env['ORATORIO_TEST_INBOX_RUNS'] ?? 12);
  const owner = await connect(t, record);
  const events = await hub.events();
  const page = { ...hub.lock, token: pageToken(hub.home) };
  let number = 0;

  /** The outcome of one approver: its decision counted, or another one's did, or it was cut off and cannot know. */
  type Outcome = { readonly kind: 'won' | 'lost' | 'cut'; readonly decision: string };
  const decision = fc.constantFrom('accept', 'decline');

  async function overRpc(name: string, requestId: string, word: string, isCut: boolean): Promise<Outcome> {
    const client = await AppServerClient.connect(socketOf(record), { clientInfo: { name, version: '1' } });
    const outcome = client.request('approval/respond', { requestId, decision: word }).then(
      (): Outcome => ({ kind: 'won', decision: word }),
      (error: Error): Outcome => ({ kind: /Approval/.test(error.message) ? 'lost' : 'cut', decision: word }),
    );
    if (isCut) client.close();
    return outcome.finally(() => client.close());
  }

  async function overInbox(requestId: string, word: string, isCut: boolean): Promise<Outcome> {
    const cut = new AbortController();
    const headers = { authorization: `Bearer ${page.token}` };
    const url = `${page.apiBaseUrl}/v1/inbox/${workspaceId}/${requestId}`;
    const sent = fetch(url, { method: 'POST', headers, body: JSON.stringify({ decision: word }), signal: cut.signal });
    if (isCut) setImmediate(() => cut.abort());
    return sent.then(
      ({ status }): Outcome => ({ kind: status === 200 ? 'won' : 'lost', decision: word }),
      (): Outcome => ({ kind: 'cut', decision: word }),
    );
  }

  const approver = fc.record({ word: decision, isCut: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(approver, approver, approver, fc.boolean(), async (terminal, editor, device, isInboxFirst) => {
      number += 1;
      const file = `raced-${number}`;
      const { requestId, threadId } = (await itemOf(await ask(owner, file))).request;
      const approvers = [
        () => overRpc('oratorio-cli', requestId, terminal.word, terminal.isCut),
        () => overRpc('oratorio-acp', requestId, editor.word, editor.isCut),
        () => overInbox(requestId, device.word, device.isCut),
      ];
      if (isInboxFirst) approvers.reverse();
      const outcomes = await Promise.all(approvers.map((decide) => decide()));
      const winners = outcomes.filter(({ kind }) => kind === 'won');
      if (winners.length > 1) throw new Error(`decided ${winners.length} times`);
      // Where all were cut off, the request may still wait: then this answer is the first.
      const last = await request(page, 'POST', `/v1/inbox/${workspaceId}/${requestId}`, { decision: 'decline' });
      if (winners.length === 1 && last.status !== 409) throw new Error(`decided, and ${last.status}`);
      const made: string = last.status === 409 ? last.body.error.details.decision : last.body.decision;
      if (winners[0] && winners[0].decision !== made) throw new Error(`${winners[0].decision} became ${made}`);
      const resolved = await events.wait('inbox.resolved', ({ data }) => data['requestId'] === requestId);
      if (resolved.data['decision'] !== made) throw new Error(`reported as ${resolved.data['decision']}`);
      const items = await eventually(async () => {
        const { thread } = (await owner.request('thread/read', { threadId, includeTurns: true })) as {
          thread: { turns: { status: string; items: { type: string; decision?: string }[] }[] };
        };
        const turn = thread.turns.at(-1);
        return turn && turn.status !== 'running' && turn.status !== 'waitingApproval' ? turn.items : undefined;
      }, 'the turn ends');
      const responses = items.filter(({ type }) => type === 'approvalResponse');
      if (responses.length !== 1 || responses[0]?.decision !== made) throw new Error(JSON.stringify(responses));
      if (existsSync(join(workspace, file)) !== (made === 'accept')) throw new Error(`${made}, and the command …`);
    }),
    { numRuns: runs, seed: 11, endOnFailure: true },
  );
  const count = (kind: string) => events.seen.filter((event) => event.kind === kind).length;
  t.equal(count('inbox.added'), number);
  t.equal(count('inbox.resolved'), number, 'one report for each request');
  events.close();
});

t.test('of three people who answer a question at once one decides, and the others learn of it', async (t) => {
  const [terminal, editor] = [await connect(t, record, 'oratorio-cli'), await connect(t, record, 'oratorio-acp')];
  const options = ['red', 'green', 'blue'].map((label) => ({ label }));
  const asked = { questions: [{ header: 'Colour', question: 'Which one?', options }] };
  const contentOf = (Colour: string) => ({ action: 'accept', content: { Colour } });
  const overRpc = (client: AppServerClient, requestId: string, colour: string) =>
    client.request('question/answer', { requestId, ...contentOf(colour) }).then(
      () => colour,
      (error: Error) => t.match(error, { message: /^Question not found/ }) && undefined,
    );
  const overInbox = async (requestId: string, colour: string) => {
    const { status, body } = await hub.call('POST', `/v1/inbox/${workspaceId}/${requestId}`, contentOf(colour));
    if (status === 200) return colour;
    t.match([status, body], [409, { error: { code: 'alreadyDecided', details: { decision: 'accept' } } }]);
    return undefined;
  };
  for (const first of [0, 1, 2, 0, 1, 2]) {
    const { thread } = (await terminal.request('thread/start', {})) as { thread: { id: string } };
    const input = text(`call AskUser ${JSON.stringify(asked)}`);
    await terminal.request('turn/start', { threadId: thread.id, input });
    const { requestId } = (await itemOf(thread.id)).request;
    const people = [
      () => overRpc(terminal, requestId, 'red'),
      () => overRpc(editor, requestId, 'green'),
      () => overInbox(requestId, 'blue'),
    ];
    const order = [...people.slice(first), ...people.slice(0, first)];
    const [winner, ...others] = (await Promise.all(order.map((answers) => answers()))).filter((each) => each);
    t.same(others, [], 'one person decides');
    const items = await eventually(async () => {
      const read = await terminal.request('thread/read', { threadId: thread.id, includeTurns: true });
      const [turn] = (read as { thread: { turns: { status: string; items: { type: string }[] }[] } }).thread.turns;
      return turn?.status === 'completed' ? turn.items : undefined;
    }, 'the turn ends');
    t.match(
      items.filter(({ type }) => type === 'question'),
      [{ state: 'answered', answers: { Colour: winner } }],
    );
    t.match(
      items.filter(({ type }) => type === 'toolResult'),
      [{ text: new RegExp(`Colour: ${winner}`) }],
    );
    t.match(await runInProcess(hub.home, 'inbox', 'decline', requestId), {
      code: 1,
      text: / was answered (in|on|by|over) /,
    });
  }
});

t.test('the next Hub finds waiting requests; one decided between the Hubs is not asked again', async (t) => {
  const client = await connect(t, record);
  const waits = (await itemOf(await ask(client, 'waits'))).request;
  const { requestId } = (await itemOf(await ask(client, 'decided'))).request;
  await hub.kill('SIGKILL');
  await client.request('approval/respond', { requestId, decision: 'decline' });
  const next = await startTestHub(t, { home: hub.home });
  t.equal(idOf(await next.record(workspace)), workspaceId, 'the id of a workspace is the same');
  t.equal(next.lock.apiBaseUrl, hub.lock.apiBaseUrl, 'and so is the address');
  const item = await itemOf(waits.threadId, next);
  t.same(item.request, waits);
  t.equal((await inboxOf(next)).length, 1);
  const path = (id: string) => `/v1/inbox/${workspaceId}/${id}`;
  t.match(await next.call('POST', path(requestId), { decision: 'accept' }), { status: 409 });
  t.match(await next.call('POST', path(waits.requestId), { decision: 'cancel' }), { status: 200 });
  await next.shutdown();
});
