import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startThread } from '../../src/client/index.ts';
import { rpcErrors } from '../../src/protocol/index.ts';
import { delta, done, event, wait, write } from '../fixtures/upstream/mock-upstream.ts';
import { eventually } from '../hub/harness.ts';
import {
  api,
  checkCompleteTurn,
  partialAnswer,
  touchThenRun,
  untilExists,
  untilIdle,
  untilNoToolProcess,
  user,
  workspaceWithUpstream,
} from './agent-faults.ts';
import {
  approver,
  connect,
  heard,
  itemsOf,
  lastTurn,
  lastWords,
  obedient,
  orders,
  resultsOf,
  startApi,
  toolCall,
  turnEnd,
} from './agent-server.ts';
import { startHub } from './harness.ts';

t.test('a disconnect of a chat client cancels its turn', async (t) => {
  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  const { place, workspace, upstream } = await workspaceWithUpstream(
    t,
    (request) =>
      lastWords(request).words === 'talk'
        ? [...partialAnswer, wait(gate.promise), write(event(delta({ content: 'answer' }, 'stop'))), write(done)]
        : obedient(request),
    { Api: { ...api, DisconnectGraceMs: 200 } },
  );
  const { chat, url } = await startApi(place, workspace);
  const client = await connect(t, workspace);
  const sessionThread = async () => {
    const { data } = (await client.request('thread/list')) as { data: { id: string }[] };
    return data[0]?.id ?? '';
  };

  t.test('a disconnect within an answer closes the connection to the upstream', async (t) => {
    const leaving = new AbortController();
    const answer = await chat({ messages: [user('talk')], stream: true }, { signal: leaving.signal });
    t.equal(answer.status, 200);
    leaving.abort();
    await upstream.requests.at(-1)?.closed;
    await untilIdle(url);
  });

  t.test('a disconnect during a tool call ends the tool and cancels the calls after it', async (t) => {
    const leaving = new AbortController();
    const calls = [
      touchThenRun('running'),
      toolCall('Exec', { command: 'touch after' }),
      toolCall('WriteFile', { path: 'after', content: '' }),
    ];
    const body = { messages: [user(orders({ toolCalls: calls }))], stream: true };
    const headers = { 'x-session-id': 'leaving' };
    const answer = await chat(body, { headers, signal: leaving.signal });
    t.equal(answer.status, 200);
    await untilExists(join(workspace, 'running'));
    const asked = upstream.requests.length;
    leaving.abort();
    await untilNoToolProcess(place);
    await untilIdle(url);
    const turn = await lastTurn(client, await sessionThread());
    t.match(turn, { status: 'cancelled', interruptedBy: 'user' });
    checkCompleteTurn(t, turn);
    t.strictSame(
      resultsOf(turn).map(({ outcome }) => outcome),
      ['cancelled', 'cancelled', 'cancelled'],
    );
    t.notOk(existsSync(join(workspace, 'after')));
    t.equal(upstream.requests.length, asked, 'the model is not asked again');
    const next = await chat({ messages: [user('hello')] }, { headers });
    t.match(await next.json(), { choices: [{ message: { content: 'done' } }] }, 'the session can be used again');
  });
});

t.test('a disconnect of a chat client during an approval cancels the approval and the turn', async (t) => {
  const { place, workspace, upstream } = await workspaceWithUpstream(t, obedient, {
    Api: { ...api, ApprovalMode: 'interactive', DisconnectGraceMs: 100 },
  });
  const { chat, url } = await startApi(place, workspace);
  const pending = async () => {
    const { approvals } = (await (await fetch(`${url}/v1/approvals`)).json()) as { approvals: { id: string }[] };
    return approvals;
  };
  const leaving = new AbortController();
  const content = orders({ toolCalls: [toolCall('WriteFile', { path: 'asked.txt', content: 'x' })] });
  const asking = chat({ messages: [user(content)] }, { headers: { 'x-session-id': 's' }, signal: leaving.signal });
  const gone = asking.then(
    () => 'answered',
    () => 'gone',
  );
  const [asked] = await eventually(
    async () => ((await pending()).length > 0 ? pending() : undefined),
    'an approval is pending',
  );
  leaving.abort();
  t.equal(await gone, 'gone');
  await eventually(async () => (await pending()).length === 0 || undefined, 'no approval is pending');
  await untilIdle(url);
  const late = await fetch(`${url}/v1/approvals/${asked?.id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"approved": true}',
  });
  t.equal(late.status, 404);
  t.notOk(existsSync(join(workspace, 'asked.txt')));
  const client = await connect(t, workspace);
  const { data } = (await client.request('thread/list')) as { data: { id: string }[] };
  const turn = await lastTurn(client, data[0]?.id ?? '');
  t.match(turn, {
    status: 'cancelled',
    items: [{ type: 'userMessage' }, { type: 'toolCall' }, {}, { decision: 'cancel' }],
  });
  const next = await chat({ messages: [user('hello')] }, { headers: { 'x-session-id': 's' } });
  t.match(await next.json(), { choices: [{ message: { content: 'done' } }] }, 'the session can be used again');
  // Upstreams reject a conversation with a call that lacks its result.
  const messages: { role: string; tool_calls?: { id: string }[]; tool_call_id?: string }[] =
    upstream.requests.at(-1)?.body.messages;
  const calls = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));
  t.strictSame(
    messages.flatMap(({ tool_call_id }) => tool_call_id ?? []),
    calls,
  );
});

t.test('a turn outlives the disconnect of a JSON-RPC client', async (t) => {
  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  const { place, workspace } = await workspaceWithUpstream(t, (request) =>
    lastWords(request).words === 'talk'
      ? [...partialAnswer, wait(gate.promise), write(event(delta({ content: 'answer' }, 'stop'))), write(done)]
      : obedient(request),
  );
  const hub = await startHub(place);
  await hub.client.ensure({ workspacePath: workspace });

  t.test('a client that connects within an answer receives the rest of it', async (t) => {
    const first = await connect(t, workspace);
    const threadId = await startThread(first, { workspacePath: workspace });
    const begins = heard(first, ({ method }) => method === 'item/agentMessage/delta');
    await first.request('turn/start', { threadId, input: [{ type: 'text', text: 'talk' }] });
    await begins;
    first.close();
    const second = await connect(t, workspace);
    t.match(await lastTurn(second, threadId), { status: 'running', items: [{}, { text: 'half an ' }] });
    await second.request('thread/subscribe', { threadId });
    const ended = turnEnd(second, threadId);
    gate.resolve();
    t.equal((await ended).method, 'turn/completed');
    t.match(itemsOf(await lastTurn(second, threadId), 'agentMessage'), [{ text: 'half an answer' }]);
  });

  t.test('a pending approval of a disconnected client is requested of the next one', async (t) => {
    let ask = Promise.withResolvers<void>();
    const first = await connect(t, workspace, {
      onRequest: () => {
        ask.resolve();
        return new Promise(() => undefined);
      },
    });
    const threadId = await startThread(first, { workspacePath: workspace });
    const text = orders({ toolCalls: [toolCall('WriteFile', { path: 'approved.txt', content: 'x' })] });
    await first.request('turn/start', { threadId, input: [{ type: 'text', text }] });
    await ask.promise;
    first.close();
    ask = Promise.withResolvers();
    const { asked, onRequest } = approver('accept');
    const second = await connect(t, workspace, { onRequest });
    const ended = turnEnd(second, threadId);
    await second.request('thread/resume', { threadId });
    t.equal((await ended).method, 'turn/completed');
    t.match(asked, [{ tool: 'WriteFile', target: join(workspace, 'approved.txt') }]);
    t.ok(existsSync(join(workspace, 'approved.txt')));
  });

  t.test(
    'two clients of one thread receive the same notifications, and the first answer to an approval wins',
    async (t) => {
      const clients = [await connect(t, workspace, { onRequest: () => new Promise(() => undefined) })] as const;
      const [first] = clients;
      const second = await connect(t, workspace, { onRequest: () => new Promise(() => undefined) });
      const threadId = await startThread(first, { workspacePath: workspace });
      await second.request('thread/subscribe', { threadId });
      const logs: string[][] = [[], []];
      for (const [at, each] of [first, second].entries()) {
        each.onNotification(({ method, params }) => {
          if (params['threadId'] === threadId && !method.startsWith('thread/'))
            logs[at]?.push(`${method} ${JSON.stringify(params)}`);
        });
      }
      const text = orders({ text: 'let me see', toolCalls: [toolCall('Exec', { command: 'echo once >> times.txt' })] });
      const ends = [turnEnd(first, threadId), turnEnd(second, threadId)];
      await first.request('turn/start', { threadId, input: [{ type: 'text', text }] });
      await t.rejects(second.request('turn/start', { threadId, input: [{ type: 'text', text: 'me too' }] }), {
        code: rpcErrors.turnInProgress.code,
      });
      const waiting = async () => {
        const { data } = (await second.request('approval/list', { threadId })) as { data: { requestId: string }[] };
        return data[0]?.requestId;
      };
      const requestId = await eventually(waiting, 'an approval is pending');
      const answers = await Promise.allSettled(
        [first, second].map((each) => each.request('approval/respond', { requestId, decision: 'accept' })),
      );
      t.strictSame(answers.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
      const [lost] = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
      t.match(lost, { code: rpcErrors.approvalNotFound.code });
      t.match(await Promise.all(ends), [{ method: 'turn/completed' }, { method: 'turn/completed' }]);
      t.strictSame(logs[0], logs[1]);
      t.equal(readFileSync(join(workspace, 'times.txt'), 'utf8'), 'once\n');
    },
  );
});
