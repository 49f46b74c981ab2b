import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { type ModelEvent, openStore } from '../../../src/agent/index.ts';
import type { TraceStore } from '../../../src/agent/thread-store.ts';
import type { InputPart, TraceType } from '../../../src/protocol/index.ts';
import { answers, call, listening, neverEnds, say, service, settings, talk, text, tool } from '../helpers.ts';
import { opened, temporaryDirectory } from '../store/helpers.ts';

const usage = (inputTokens: number, outputTokens: number): ModelEvent => ({ type: 'usage', inputTokens, outputTokens });

function eventsOf(traces: TraceStore, sessionKey: string, ...types: TraceType[]) {
  traces.flush();
  return traces.events(sessionKey, { limit: 1_000, ...(types.length > 0 && { types }) }).events;
}

t.test('a turn is traced with its input: shortened, redacted, images as placeholders', async (t) => {
  const store = opened(t);
  const { runtime } = service(answers([say('ok')]), {
    store: store.threads,
    traces: store.traces,
    clean: (words) => words.replaceAll('hunter2', '***'),
  });
  const { thread } = runtime.threads.start({});
  const input: InputPart[] = [
    { type: 'text', text: 'my password is hunter2' },
    { type: 'image', url: `data:image/png;base64,${'A'.repeat(10_000)}` },
    { type: 'fileRef', path: '/work/a.txt', displayPath: 'a.txt' },
    { type: 'localImage', path: '/work/b.png', fileName: 'b.png' },
    { type: 'skillRef', name: 'mend' },
    { type: 'commandRef', name: 'plan', argsText: 'all' },
  ];
  const ear = listening();
  runtime.turns.start(thread.id, input, ear.listener).begin();
  await ear.until('turn/completed');
  await talk(runtime, thread.id, `${'x'.repeat(499)}hunter2`);
  const begun = eventsOf(store.traces, thread.id, 'turn.started').map(({ data }) => data['text']);
  t.equal(begun[0], 'my password is ***\n[image]\n@a.txt\n[image b.png]\n$mend\n/plan all');
  t.equal(begun[1], `${'x'.repeat(499)}*… (502 characters)`, 'cut only after the secret is out');
  t.equal(store.traces.session(thread.id)?.firstInput, begun[0]);
});

t.test('a session has the status of its last turn, also while it runs', async (t) => {
  const store = opened(t);
  const { runtime } = service(neverEnds(), { store: store.threads, traces: store.traces });
  const { thread } = runtime.threads.start({});
  const standing = () => {
    store.traces.flush();
    return store.traces.session(thread.id)?.lastStatus;
  };
  t.equal(standing(), undefined);
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('go'), ear.listener);
  begin();
  await ear.until('item/agentMessage/delta');
  t.equal(standing(), 'running');
  runtime.turns.interrupt(thread.id, turn.id)();
  await ear.until('turn/cancelled');
  t.equal(standing(), 'cancelled');
  t.match(store.traces.session(thread.id), { turnCount: 1, failedTurnCount: 0 });
});

t.test('a request to a model is traced with usage, duration and finish reason', async (t) => {
  const store = opened(t);
  const provider = answers(
    [say('let me look'), call('c1', 'Look'), usage(10, 2), { type: 'finish', reason: 'toolCalls' }],
    [
      say('there'),
      { type: 'usage', inputTokens: 20, outputTokens: 3, isEstimated: true },
      { type: 'finish', reason: 'length' },
    ],
  );
  const { runtime } = service(provider, {
    store: store.threads,
    traces: store.traces,
    tools: () => [tool({ name: 'Look' })],
  });
  const { thread } = runtime.threads.start({ config: { model: 'large' } });
  await talk(runtime, thread.id, 'go');
  const [first, second, ...rest] = eventsOf(store.traces, thread.id, 'tokens.used');
  t.same(rest, []);
  const { firstTokenMs, ...counts } = first?.data ?? {};
  t.type(firstTokenMs, 'number');
  const large = { provider: 'scripted', model: 'large' };
  t.strictSame(counts, { ...large, inputTokens: 10, outputTokens: 2, finishReason: 'toolCalls' });
  t.match(second?.data, {
    ...large,
    inputTokens: 20,
    outputTokens: 3,
    finishReason: 'length',
    isEstimated: true,
  });
  t.type(first?.durationMs, 'number');
  t.equal(first?.turnId, 'turn_001');
  t.match(store.traces.session(thread.id), { inputTokens: 30, outputTokens: 5, model: 'large' });
});

t.test('an interrupted request is traced with its usage when that is known', async (t) => {
  const store = opened(t);
  const provider = {
    ...answers([]),
    async stream(_: unknown, emit: (event: ModelEvent) => void) {
      emit(say('half an ans'));
      emit(usage(7, 1));
      throw new Error('cut');
    },
  };
  const { runtime } = service(provider, { store: store.threads, traces: store.traces });
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'go');
  t.strictSame(
    eventsOf(store.traces, thread.id).map(({ type }) => type),
    ['session.started', 'turn.started', 'response', 'tokens.used', 'error', 'turn.completed'],
  );
  t.match(store.traces.session(thread.id), { inputTokens: 7, failedTurnCount: 1, model: 'scripted' });
  t.notOk(eventsOf(store.traces, thread.id, 'tokens.used')[0]?.data['finishReason']);
});

t.test('an approval is traced with its waiting time, which the session sums', async (t) => {
  const store = opened(t);
  const shell = tool({ name: 'Shell', needsApproval: true });
  const { runtime } = service(answers([call('c1', 'Shell')], [say('done')]), {
    store: store.threads,
    traces: store.traces,
    tools: () => [shell],
  });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.turns.start(thread.id, text('go'), ear.listener).begin();
  const { params } = await ear.until('item/approval/request');
  // The clock of a session is of whole milliseconds.
  await new Promise((resolve) => setTimeout(resolve, 20));
  runtime.turns.respond(params.requestId, 'accept');
  await ear.until('turn/completed');
  const [answer] = eventsOf(store.traces, thread.id, 'approval.completed');
  t.match(answer, { callId: 'c1', data: { decision: 'accept', decidedBy: 'user' } });
  t.ok((answer?.durationMs ?? 0) >= 15, `${answer?.durationMs} ms`);
  t.equal(store.traces.session(thread.id)?.approvalWaitMs, answer?.durationMs);
  t.equal(store.traces.session(thread.id)?.approvalCount, 1);
});

t.test('a call refused as repeated has no approval request, and none in the trace', async (t) => {
  const store = opened(t);
  const shell = tool({ name: 'Shell', needsApproval: true });
  const again = Array.from({ length: 13 }, (_, at) => [call(`c${at}`, 'Shell')]);
  const { runtime } = service(answers(...again, [say('done')]), {
    store: store.threads,
    traces: store.traces,
    tools: () => [shell],
  });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.feed.subscribe(thread.id, (event) => {
    if (event.method === 'item/approval/request')
      setImmediate(() => runtime.turns.respond(event.params.requestId, 'accept'));
  });
  runtime.turns.start(thread.id, text('go'), ear.listener).begin();
  await Promise.race([ear.until('turn/completed'), ear.until('turn/failed')]);
  const count = (type: TraceType) => eventsOf(store.traces, thread.id, type).length;
  t.equal(count('approval.requested'), 12);
  t.equal(count('approval.completed'), 12);
  t.equal(count('tool.started'), 13);
  t.equal(count('tool.failed'), 1);
});

t.test('a call that had not started at the interrupt is not traced as failed', async (t) => {
  const store = opened(t);
  const begun = Promise.withResolvers<void>();
  const slow = tool({
    name: 'Slow',
    run: (_, { signal }) => {
      begun.resolve();
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
  });
  const { runtime } = service(answers([call('c1', 'Slow', { n: 1 }), call('c2', 'Slow', { n: 2 })]), {
    store: store.threads,
    traces: store.traces,
    tools: () => [slow],
  });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('go'), ear.listener);
  begin();
  await begun.promise;
  runtime.turns.interrupt(thread.id, turn.id)();
  await ear.until('turn/cancelled');
  t.match(
    eventsOf(store.traces, thread.id, 'tool.started', 'tool.failed').map(({ type, callId }) => `${type} ${callId}`),
    ['tool.started c1', 'tool.failed c1'],
  );
});

t.test('a client tool is traced from its call to its result', async (t) => {
  const store = opened(t);
  const clientTools = [{ name: 'Ask', description: 'Asks.', inputSchema: { type: 'object' } }];
  const { runtime } = service(answers([call('c1', 'Ask', { q: 1 })], [say('thanks')]), {
    store: store.threads,
    traces: store.traces,
  });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.turns.start(thread.id, text('go'), ear.listener, { clientTools }).begin();
  await ear.until('turn/completed');
  const toolResults = [{ callId: 'c1', text: 'forty-two', isError: false }];
  runtime.turns.start(thread.id, [], ear.listener, { clientTools, toolResults }).begin();
  await ear.until('turn/completed', 2);
  const [started, completed] = eventsOf(store.traces, thread.id, 'tool.started', 'tool.completed');
  t.match(started, { callId: 'c1', tool: 'Ask', turnId: 'turn_001', data: { source: 'client', arguments: '{"q":1}' } });
  t.match(completed, { callId: 'c1', tool: 'Ask', turnId: 'turn_002', data: { result: 'forty-two' } });
  t.notOk(completed?.durationMs, 'nobody here knows how long it took');
  t.match(store.traces.session(thread.id), { toolCallCount: 1, toolDurationMs: 0, firstInput: 'go', turnCount: 2 });
});

t.test('the session of a sub-agent names its parent', async (t) => {
  const store = opened(t);
  const spawn = tool({
    name: 'SpawnSubagent',
    run: (_, context) => context.spawnSubagent({ task: 'count', label: 'counter', type: undefined }),
  });
  const { runtime } = service(answers([call('c1', 'SpawnSubagent')], [say('three')], [say('done')]), {
    store: store.threads,
    traces: store.traces,
    tools: () => [spawn],
  });
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'go');
  store.traces.flush();
  const [child] = store.traces.sessions({ limit: 9 }).filter(({ sessionKey }) => sessionKey !== thread.id);
  t.match(child, { parentSessionKey: thread.id, displayName: 'counter', firstInput: 'count', lastStatus: 'completed' });
  t.notOk(store.traces.session(thread.id)?.parentSessionKey);
});

/** Ends the process, so to speak, while a turn runs that ends with its process. */
async function crashed(directory: string, isEphemeral = false): Promise<string> {
  const store = openStore(directory);
  const turns = { ...settings.turns, resume: 'never' as const };
  const options = { store: store.threads, traces: store.traces, settings: { ...settings, turns } };
  const { runtime } = service(neverEnds(), options);
  const { thread } = runtime.threads.start({ isEphemeral });
  const ear = listening();
  runtime.turns.start(thread.id, text('hello'), ear.listener).begin();
  await ear.until('item/agentMessage/delta');
  store.close();
  return thread.id;
}

for (const kind of ['kept', 'ephemeral']) {
  t.test(`a turn of a thread that is ${kind} and that a crash ended ends once in the trace`, async (t) => {
    const directory = temporaryDirectory(t);
    const threadId = await crashed(directory, kind === 'ephemeral');
    for (let round = 1; round <= 3; round += 1) {
      const store = openStore(directory);
      const before = store.traces.session(threadId);
      service(neverEnds(), { store: store.threads, traces: store.traces });
      const events = eventsOf(store.traces, threadId, 'error', 'turn.completed');
      t.match(
        events.map(({ type, turnId, data }) => ({ type, turnId, data })),
        [
          { type: 'error', turnId: 'turn_001', data: { code: 'crashed' } },
          { type: 'turn.completed', turnId: 'turn_001', data: { status: 'failed', interruptedBy: 'crash' } },
        ],
      );
      t.match(store.traces.session(threadId), {
        lastStatus: 'failed',
        turnCount: 1,
        failedTurnCount: 1,
        errorCount: 1,
        lastActivityAt: before?.lastActivityAt ?? '',
      });
      t.strictSame(store.traces.sessions({ limit: 9, status: 'running' }), []);
      store.close();
    }
  });
}

t.test('a trace that a crash left unrepaired is repaired at the next start', async (t) => {
  const directory = temporaryDirectory(t);
  const threadId = await crashed(directory);
  const first = openStore(directory);
  service(neverEnds(), { store: first.threads, traces: first.traces });
  // The turn is marked on disk, its trace waits to be written, and is lost.
  const other = new DatabaseSync(join(directory, 'state.db'));
  other.exec('BEGIN IMMEDIATE');
  first.close();
  other.close();
  const second = opened(t, directory);
  t.equal(second.traces.session(threadId)?.lastStatus, 'running');
  service(neverEnds(), { store: second.threads, traces: second.traces });
  t.match(eventsOf(second.traces, threadId, 'turn.completed'), [{ data: { interruptedBy: 'crash' } }]);
});

t.test('a turn with a stored end is traced with that end after a crash', async (t) => {
  const directory = temporaryDirectory(t);
  const store = openStore(directory);
  const { runtime } = service(answers([say('ok')]), { store: store.threads, traces: store.traces });
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'go');
  store.close();
  const other = new DatabaseSync(join(directory, 'state.db'));
  other.exec(`
    DELETE FROM traceEvents WHERE type = 'turn.completed';
    UPDATE traceSessions SET lastStatus = 'running', eventCount = eventCount - 1;
  `);
  other.close();
  const again = opened(t, directory);
  service(answers([]), { store: again.threads, traces: again.traces });
  const ends = eventsOf(again.traces, thread.id, 'turn.completed', 'error');
  t.match(ends, [{ at: turn.completedAt, turnId: 'turn_001', data: { status: 'completed', finishReason: 'stop' } }]);
  t.match(again.traces.session(thread.id), { lastStatus: 'completed', failedTurnCount: 0, errorCount: 0 });
});

t.test('with tracing off nothing is traced; older traces stay until their thread is deleted', async (t) => {
  const directory = temporaryDirectory(t);
  const threadId = await crashed(directory);
  const store = opened(t, directory);
  const { runtime } = service(answers([say('ok')]), {
    store: store.threads,
    traces: store.traces,
    isTracing: false,
  });
  await talk(runtime, threadId, 'go');
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'go');
  store.traces.flush();
  t.equal(store.traces.session(thread.id), undefined);
  t.match(store.traces.session(threadId), { turnCount: 1, lastStatus: 'failed' }, 'the crash is told all the same');
  await runtime.threads.delete(threadId);
  t.equal(store.traces.session(threadId), undefined);
});
