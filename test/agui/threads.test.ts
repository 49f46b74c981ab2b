/** Threads across runs: new messages, reconnection, approvals, abort. */
import t from 'tap';
import { threadIdOf } from '../../src/agui/service.ts';
import { eventually } from '../http/support.ts';
import { agentOf, last, refusal, run, say, serve } from './harness.ts';
import { calls, hangs, says, scripted } from './model.ts';

const turnsOf = (runtime: Awaited<ReturnType<typeof serve>>['runtime'], name = 'a thread') =>
  runtime.threads.read(threadIdOf(name), { includeTurns: true }).turns ?? [];

t.test('only new messages are added to a known thread, which keeps its tool results', async (t) => {
  const provider = scripted(says('one'), says('two'));
  const { url, runtime } = await serve(t, provider);
  const agent = agentOf(url);
  say(agent, 'first');
  await run(agent);
  say(agent, 'second');
  await run(agent);
  t.strictSame(
    provider.requests[1]?.messages.slice(1).map(({ role }) => role),
    ['user', 'assistant', 'user'],
  );
  t.equal(turnsOf(runtime).length, 2);
  t.match(runtime.threads.list({ channelName: 'agui' }), [
    { id: threadIdOf('a thread'), identity: { channelName: 'agui' } },
  ]);
});

t.test('an unknown conversation keeps its history, run after run', async (t) => {
  const provider = scripted(says('three'));
  const { url } = await serve(t, provider);
  const agent = agentOf(url);
  agent.setMessages([
    { id: '1', role: 'user', content: 'one?' },
    {
      id: '2',
      role: 'assistant',
      toolCalls: [
        { id: 'old', type: 'function', function: { name: 'seek', arguments: '{}' } },
        { id: 'lost', type: 'function', function: { name: 'seek', arguments: '{}' } },
      ],
    },
    { id: '3', role: 'tool', toolCallId: 'old', content: 'found' },
    { id: '4', role: 'assistant', content: 'one!' },
    { id: '5', role: 'user', content: 'two?' },
  ]);
  await run(agent);
  say(agent, 'and now?');
  await run(agent);
  const past = [
    { role: 'user', content: [{ text: 'one?' }] },
    { role: 'assistant', toolCalls: [{ callId: 'old', name: 'seek' }, { callId: 'lost' }] },
    { role: 'tool', callId: 'old', content: [{ text: 'found' }] },
    { role: 'tool', callId: 'lost', content: [{ text: '(no result)' }] },
    { role: 'assistant', text: 'one!' },
    { role: 'user', content: [{ text: 'two?' }] },
  ];
  t.match(provider.requests[0]?.messages.slice(1), past);
  t.match(provider.requests[1]?.messages.slice(1), [
    ...past,
    { role: 'assistant', text: 'three' },
    { role: 'user', content: [{ text: 'and now?' }] },
  ]);
});

t.test('the input of an interrupted run is not repeated by the next one', async (t) => {
  const { url, runtime } = await serve(t, scripted(hangs(''), says('fine')));
  const agent = agentOf(url);
  say(agent, 'first');
  const running = run(agent);
  await eventually(() => runtime.turns.count === 1, 'the turn runs');
  const [{ id: turnId = '' } = {}] = turnsOf(runtime);
  runtime.turns.interrupt(threadIdOf('a thread'), turnId)();
  t.match(last(await running), { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
  say(agent, 'second');
  await run(agent);
  t.match(turnsOf(runtime)[1]?.items[0], { type: 'userMessage', input: [{ text: 'second' }] });
});

t.test('an approval interrupts the run; the next run brings the answer and continues the turn', async (t) => {
  const provider = scripted(calls({ callId: 'w1', name: 'Change', args: { path: 'a.txt' } }), says('Changed.'));
  const { url, runtime } = await serve(t, provider);
  const agent = agentOf(url);
  say(agent, 'change it');
  const first = await run(agent);
  t.match(last(first), {
    outcome: {
      type: 'interrupt',
      interrupts: [{ reason: 'approval', toolCallId: 'w1', message: /write \/work\/a\.txt/, expiresAt: String }],
    },
  });
  t.ok(first.types.includes('CUSTOM'));
  t.equal(agent.pendingInterrupts.length, 1);
  const [{ id: interruptId = '' } = {}] = agent.pendingInterrupts;
  const second = await run(agent, {
    resume: [{ interruptId, status: 'resolved', payload: { decision: 'accept' } }],
  });
  t.match(last(second), { outcome: { type: 'success' } });
  t.match(agent.messages, [
    { role: 'user' },
    { role: 'assistant', toolCalls: [{ id: 'w1' }] },
    { role: 'tool', toolCallId: 'w1', content: 'Change: {"path":"a.txt"}' },
    { role: 'assistant', content: 'Changed.' },
  ]);
  t.equal(turnsOf(runtime).length, 1, 'one turn');
});

t.test('a dropped interrupt ends the turn; dropped for new input, the turn receives that input', async (t) => {
  const provider = scripted(
    calls({ callId: 'w1', name: 'Change', args: { path: 'a' } }),
    calls({ callId: 'w2', name: 'Change', args: { path: 'b' } }),
    says('As you wish.'),
  );
  const { url } = await serve(t, provider);
  const agent = agentOf(url);
  say(agent, 'change it');
  await run(agent);
  say(agent, 'no, b');
  const second = await run(agent, {
    resume: agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'cancelled' as const })),
  });
  t.match(last(second), { outcome: { type: 'interrupt', interrupts: [{ toolCallId: 'w2' }] } });
  t.match(
    provider.requests[1]?.messages.map(({ role }) => role),
    ['system', 'user', 'assistant', 'tool', 'user'],
  );
  const third = await run(agent, {
    resume: agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'cancelled' as const })),
  });
  t.match(last(third), { outcome: { type: 'cancelled' } });
});

t.test('approvals can be listed and decided outside of a run; the next run reports the result', async (t) => {
  const provider = scripted(calls({ callId: 'w1', name: 'Change', args: { path: 'a' } }), says('Declined.'));
  const { url, runtime } = await serve(t, provider);
  const agent = agentOf(url);
  say(agent, 'change it');
  await run(agent);
  const listed = (await (await fetch(`${url}/approvals`)).json()) as { data: { requestId: string }[] };
  const [{ requestId = '' } = {}] = listed.data;
  const answer = (id: string, body: unknown) =>
    fetch(`${url}/approvals/${id}`, { method: 'POST', body: JSON.stringify(body) });
  t.equal((await answer(requestId, { decision: 'maybe' })).status, 400);
  t.equal((await answer('approval_unknown', { decision: 'accept' })).status, 404);
  t.equal((await answer(requestId, { approved: false })).status, 200);
  t.equal((await answer(requestId, { approved: true })).status, 404, 'the first answer counts');
  await eventually(() => runtime.turns.count === 0, 'the turn has ended');
  const second = await run(agent, {
    resume: [{ interruptId: requestId, status: 'resolved', payload: { approved: true } }],
  });
  t.strictSame(second.types, ['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED']);
  t.equal(agent.messages.at(-1)?.content, 'Declined.');
});

t.test('an invalid answer changes nothing', async (t) => {
  const { url, runtime } = await serve(t, scripted(calls({ callId: 'w', name: 'Change', args: { path: 'a' } })));
  const agent = agentOf(url);
  say(agent, 'change it');
  await run(agent);
  const [{ id: interruptId = '' } = {}] = agent.pendingInterrupts;
  t.match(await refusal(t, agent, { resume: [{ interruptId, status: 'resolved', payload: 'sure' }] }), { status: 400 });
  t.equal(runtime.turns.approvals().length, 1);
});

t.test('a disconnected reader ends the turn after the grace period', async (t) => {
  const { url, runtime } = await serve(t, scripted(hangs()), { graceMs: 20 });
  const agent = agentOf(url);
  say(agent, 'hi');
  const running = run(agent, {}, { onTextMessageContentEvent: () => agent.abortRun() });
  await running.catch(() => undefined);
  await eventually(() => runtime.turns.count === 0, 'the turn was ended');
  t.match(turnsOf(runtime).at(-1), { status: 'cancelled', interruptedBy: 'user' });
});

t.test('a reader that returns within the grace period gets the whole turn and its later events', async (t) => {
  const gate = Promise.withResolvers<void>();
  const provider = scripted(async (_, emit) => {
    emit({ type: 'thinking', text: 'long thoughts' });
    emit({ type: 'text', text: 'Half' });
    await gate.promise;
    emit({ type: 'text', text: ' and half' });
    emit({ type: 'finish', reason: 'stop' });
  });
  const { url, runtime } = await serve(t, provider, { graceMs: 60_000 });
  const agent = agentOf(url);
  say(agent, 'hi');
  await run(agent, {}, { onTextMessageContentEvent: () => agent.abortRun() }).catch(() => undefined);
  t.equal(runtime.turns.count, 1);
  const again = run(agent, {}, { onMessagesSnapshotEvent: () => gate.resolve() });
  t.match(last(await again), { outcome: { type: 'success' } });
  t.match(agent.messages, [
    { role: 'user' },
    { role: 'reasoning', content: 'long thoughts' },
    { role: 'assistant', content: 'Half and half' },
  ]);
  t.equal(agent.messages.length, 3);
  t.equal(provider.requests.length, 1, 'nothing was asked twice');
});

t.test('new input during a turn is refused, and the turn continues', async (t) => {
  const { url, runtime } = await serve(t, scripted(hangs()));
  const agent = agentOf(url);
  say(agent, 'hi');
  const running = run(agent);
  await eventually(() => runtime.turns.count === 1, 'the turn runs');
  const other = agentOf(url);
  say(other, 'and me?');
  t.match(await refusal(t, other), { status: 409, payload: { error: { code: 'turnInProgress' } } });
  t.equal(runtime.turns.count, 1);
  agent.abortRun();
  await running.catch(() => undefined);
});

t.test('input of another client in the thread is sent as a user message', async (t) => {
  const gate = Promise.withResolvers<void>();
  const provider = scripted(async (request, emit, signal) => {
    await gate.promise;
    return calls({ callId: 'l1', name: 'Look', args: {} })(request, emit, signal);
  }, says('Both done.'));
  const { url, runtime } = await serve(t, provider);
  const agent = agentOf(url);
  say(agent, 'hi');
  const running = run(agent);
  await eventually(() => provider.requests.length === 1, 'the model was asked');
  const [{ id: turnId = '' } = {}] = turnsOf(runtime);
  runtime.turns.steer(threadIdOf('a thread'), turnId, { input: [{ type: 'text', text: 'and this' }] });
  gate.resolve();
  await running;
  t.match(agent.messages, [
    { content: 'hi' },
    { toolCalls: [{ id: 'l1' }] },
    { role: 'tool' },
    { role: 'user', content: 'and this' },
    { role: 'assistant', content: 'Both done.' },
  ]);
});
