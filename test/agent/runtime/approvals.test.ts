import t from 'tap';
import type { Listener, ModelProvider, TurnOptions } from '../../../src/agent/index.ts';
import { openStore } from '../../../src/agent/index.ts';
import { temporaryDirectory } from '../../hub/harness.ts';
import { answers, call, listening, say, service, talk, text, tool } from '../helpers.ts';

const shell = tool({ name: 'Shell', needsApproval: true });
const once = (): ModelProvider => answers([call('c1', 'Shell')], [say('done')]);

function ask(provider: ModelProvider = once(), options: TurnOptions = {}) {
  const { runtime } = service(provider, { tools: () => [shell, tool({ name: 'Other', needsApproval: true })] });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('go'), ear.listener, options);
  begin();
  return { runtime, thread, turn, ear };
}

const resultsIn = (items: readonly { type: string }[]) => items.filter(({ type }) => type === 'toolResult');

t.test('a call that needs approval makes the turn wait; acceptance resumes it', async (t) => {
  const { runtime, thread, turn, ear } = ask();
  const everybody = listening();
  runtime.feed.join(everybody.listener);
  const { params: request } = await ear.until('item/approval/request');
  t.match(request, {
    threadId: thread.id,
    turnId: turn.id,
    callId: 'c1',
    tool: 'Shell',
    approvalType: 'shell',
    operation: 'run',
    target: 'Shell',
    scopeKey: 'shell:Shell',
  });
  t.ok(Date.parse(request.expiresAt) > Date.parse(request.createdAt));
  t.same(runtime.turns.approvals(), [request]);
  t.same(runtime.turns.approvals(thread.id), [request]);
  t.match(runtime.threads.list({}), [{ runtime: { running: true, waitingOnApproval: true } }]);
  t.match(runtime.threads.read(thread.id, { includeTurns: true }).turns, [{ status: 'waitingApproval' }]);
  runtime.turns.respond(request.requestId, 'accept');
  const { params } = await ear.until('turn/completed');
  t.match(
    params.turn.items.map(({ type }) => type),
    ['userMessage', 'toolCall', 'approvalRequest', 'approvalResponse', 'toolResult', 'agentMessage'],
  );
  t.match(params.turn.items[3], { decision: 'accept', decidedBy: 'user', requestId: request.requestId });
  t.match((await ear.until('item/approval/resolved')).params, { requestId: request.requestId, decision: 'accept' });
  t.same(runtime.turns.approvals(), []);
  t.throws(() => runtime.turns.respond(request.requestId, 'accept'), {
    name: 'AgentError',
    reason: 'approvalNotFound',
  });
});

t.test('a declined call is reported to the model and the turn continues', async (t) => {
  const { runtime, ear } = ask();
  const { params } = await ear.until('item/approval/request');
  runtime.turns.respond(params.requestId, 'decline', 'user', 'oratorio-acp');
  const { turn } = (await ear.until('turn/completed')).params;
  const author = { decidedBy: 'user', client: 'oratorio-acp' };
  t.match(
    turn.items.find(({ type }) => type === 'approvalResponse'),
    author,
    'the item names the client',
  );
  t.match((await ear.until('item/approval/resolved')).params, author);
  t.match(resultsIn(turn.items), [{ outcome: 'declined', text: /the user declined: run Shell/ }]);
});

t.test('cancel declines and ends the turn', async (t) => {
  const { runtime, ear } = ask();
  const { params } = await ear.until('item/approval/request');
  runtime.turns.respond(params.requestId, 'cancel');
  t.match((await ear.until('turn/cancelled')).params.turn, { interruptedBy: 'approval' });
});

t.test('a request without an answer is declined at the timeout', async (t) => {
  const { ear } = ask(once(), { approvalTimeoutMs: 1 });
  const { turn } = (await ear.until('turn/completed')).params;
  t.match(resultsIn(turn.items), [{ outcome: 'declined', text: /declined: no answer .* in time/ }]);
  t.match(
    turn.items.find(({ type }) => type === 'approvalResponse'),
    { decidedBy: 'timeout', decision: 'decline' },
  );
});

t.test('acceptForSession holds for the thread, acceptAlways for the workspace', async (t) => {
  for (const [decision, elsewhere] of [
    ['acceptForSession', 'item/approval/request'],
    ['acceptAlways', 'turn/completed'],
  ] as const) {
    const provider = answers(
      [call('c1', 'Shell')],
      [say('a')],
      [call('c2', 'Shell')],
      [say('b')],
      [call('c3', 'Shell')],
      [say('c')],
    );
    const { runtime, thread, ear } = ask(provider);
    const { params } = await ear.until('item/approval/request');
    runtime.turns.respond(params.requestId, decision);
    await ear.until('turn/completed');
    const again = await talk(runtime, thread.id, 'again');
    t.equal(again.turn.status, 'completed', 'not asked again');
    const other = listening();
    runtime.turns.start(runtime.threads.start({}).thread.id, text('x'), other.listener).begin();
    await other.until(elsewhere);
    await runtime.close();
  }
});

t.test('autoApprove runs calls without a request; interrupt declines those that need approval', async (t) => {
  for (const [approvalPolicy, outcome] of [
    ['autoApprove', 'completed'],
    ['interrupt', 'declined'],
  ] as const) {
    const { ear } = ask(once(), { approvalPolicy });
    const { turn } = (await ear.until('turn/completed')).params;
    t.match(resultsIn(turn.items), [{ outcome }]);
    t.notOk(ear.methods().includes('item/approval/request'));
  }
  const { runtime } = service(once(), { tools: () => [shell] });
  const { thread } = runtime.threads.start({ config: { approvalPolicy: 'interrupt' } });
  const { turn } = await talk(runtime, thread.id, 'x');
  t.match(resultsIn(turn.items), [{ text: /rejected by policy/ }]);
  t.same(runtime.threads.updateConfig(thread.id, { approvalPolicy: 'autoApprove' }), { approvalPolicy: 'autoApprove' });
  t.match(runtime.threads.read(thread.id, { includeTurns: false }), { config: { approvalPolicy: 'autoApprove' } });
});

t.test('several approvals are requested at once; the calls run in order after the last decision', async (t) => {
  const { runtime, ear } = ask(answers([call('c1', 'Shell'), call('c2', 'Other')], [say('done')]));
  const first = await ear.until('item/approval/request');
  const second = await ear.until('item/approval/request', 2);
  runtime.turns.respond(second.params.requestId, 'accept');
  t.equal(runtime.turns.approvals().length, 1);
  runtime.turns.respond(first.params.requestId, 'decline');
  const { turn } = (await ear.until('turn/completed')).params;
  t.match(resultsIn(turn.items), [
    { callId: 'c1', outcome: 'declined' },
    { callId: 'c2', outcome: 'completed' },
  ]);
});

t.test('a later subscriber receives the pending request and may answer it', async (t) => {
  const { runtime, thread, ear } = ask();
  await ear.until('item/approval/request');
  const [late, resumed] = [listening(), listening()];
  runtime.threads.subscribe(thread.id, late.listener).replay();
  runtime.threads.resume(thread.id, resumed.listener).announce();
  const { params } = await late.until('item/approval/request');
  t.same((await resumed.until('item/approval/request')).params, params);
  runtime.turns.respond(params.requestId, 'accept');
  await resumed.until('turn/completed');
  t.equal(late.methods().filter((method) => method === 'item/approval/resolved').length, 1);
});

t.test('a need that only the user answers is asked by default, and declined where no user is asked', async (t) => {
  const need = {
    kind: 'shell',
    operation: 'run',
    target: 'x',
    scopeKey: 'one',
    covers: 'x',
    isAskedAlways: true,
  } as const;
  const strict = { ...shell, approvalFor: async () => need };
  for (const approvalPolicy of ['autoApprove', 'interrupt'] as const) {
    const { runtime } = service(once(), { tools: () => [strict] });
    const { turn, ear } = await talk(runtime, runtime.threads.start({ config: { approvalPolicy } }).thread.id, 'x');
    t.match(resultsIn(turn.items), [{ outcome: 'declined' }], approvalPolicy);
    t.notOk(ear.methods().includes('item/approval/request'));
  }
  const { runtime } = service(once(), { tools: () => [strict] });
  const ear = listening();
  runtime.turns.start(runtime.threads.start({}).thread.id, text('x'), ear.listener).begin();
  const { params } = await ear.until('item/approval/request');
  runtime.turns.respond(params.requestId, 'accept');
  t.match(resultsIn((await ear.until('turn/completed')).params.turn.items), [{ outcome: 'completed' }]);
});

t.test('an interrupt withdraws the pending request', async (t) => {
  const { runtime, thread, turn, ear } = ask();
  const { params } = await ear.until('item/approval/request');
  runtime.turns.interrupt(thread.id, turn.id)();
  const cancelled = await ear.until('turn/cancelled');
  t.same(runtime.turns.approvals(), []);
  t.match((await ear.until('item/approval/resolved')).params, { requestId: params.requestId, decision: 'cancel' });
  t.match(
    cancelled.params.turn.items.find(({ type }) => type === 'approvalResponse'),
    { decision: 'cancel', decidedBy: 'policy' },
  );
});

t.test('requests of a sub-agent reach the subscribers of its parent', async (t) => {
  const spawn = tool({
    name: 'SpawnSubagent',
    run: (_, { spawnSubagent }) => spawnSubagent({ task: 'work', label: undefined, type: undefined }),
  });
  const provider = answers([call('c1', 'SpawnSubagent')], [call('c2', 'Shell')], [say('child done')], [say('done')]);
  const { runtime } = service(provider, { tools: () => [spawn, shell] });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.turns.start(thread.id, text('go'), ear.listener).begin();
  const { params } = await ear.until('item/approval/request');
  t.not(params.threadId, thread.id);
  runtime.turns.respond(params.requestId, 'accept');
  t.match(resultsIn((await ear.until('turn/completed')).params.turn.items), [{ text: 'child done' }]);
});

t.test('requests and decisions are traced, for every kind of decision', async (t) => {
  const store = openStore(temporaryDirectory(t));
  t.teardown(() => store.close());
  const { runtime } = service(once(), { tools: () => [shell], store: store.threads, traces: store.traces });
  const { thread } = runtime.threads.start({ config: { approvalPolicy: 'interrupt' } });
  const heard: Listener = () => undefined;
  runtime.feed.join(heard);
  await talk(runtime, thread.id, 'x');
  store.traces.flush();
  const { events } = store.traces.events(thread.id, { limit: 100 });
  t.same(
    events.map(({ type }) => type),
    [
      'session.started',
      'turn.started',
      'approval.requested',
      'approval.completed',
      'tool.started',
      'tool.failed',
      'response',
      'turn.completed',
    ],
  );
  t.match(events[3], { callId: 'c1', data: { decision: 'decline', decidedBy: 'policy' } });
});
