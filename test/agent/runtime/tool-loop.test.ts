import t from 'tap';
import { ModelError, type ModelRequest, type ToolResult } from '../../../src/agent/index.ts';
import { answers, call, listening, say, scripted, service, settings, talk, text, tool } from '../helpers.ts';

/** A promise that the test settles. */
function gate() {
  let open: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, passed };
}

t.test('a call and its result are items of the turn, and the result is sent to the model', async (t) => {
  const provider = answers([say('Let me see. '), call('c1', 'Look', { at: 'x' })], [say('It is a cat.')]);
  const look = tool({ name: 'Look', run: ({ at }) => ({ text: `a cat at ${at}`, isError: false }) });
  const { runtime } = service(provider, { tools: () => [look] });
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'what is there?');
  t.match(turn.items, [
    { type: 'userMessage' },
    { type: 'agentMessage', text: 'Let me see. ' },
    { type: 'toolCall', callId: 'c1', tool: 'Look', source: 'builtin', arguments: '{"at":"x"}' },
    { type: 'toolResult', callId: 'c1', outcome: 'completed', text: 'a cat at x', durationMs: Number },
    { type: 'agentMessage', text: 'It is a cat.' },
  ]);
  t.match(provider.requests[0]?.tools, [{ name: 'Look', inputSchema: { type: 'object' } }]);
  t.match(provider.requests[1]?.messages.slice(1), [
    { role: 'user' },
    { role: 'assistant', text: 'Let me see. ', toolCalls: [{ callId: 'c1', name: 'Look' }] },
    { role: 'tool', callId: 'c1', name: 'Look', content: [{ type: 'text', text: 'a cat at x' }] },
  ]);
});

t.test('the next turn sends the tool results of the previous one', async (t) => {
  const provider = answers([call('c1', 'Look')], [say('Seen.')]);
  const { runtime } = service(provider, { tools: () => [tool({ name: 'Look' })] });
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'look');
  await talk(runtime, thread.id, 'and?');
  t.match(provider.requests.at(-1)?.messages.slice(1), [
    { role: 'user' },
    { role: 'assistant', toolCalls: [{ callId: 'c1' }] },
    { role: 'tool', callId: 'c1' },
    { role: 'assistant', text: 'Seen.' },
    { role: 'user', content: text('and?') },
  ]);
});

t.test('reading calls run in parallel, others one by one; results are in the order of the calls', async (t) => {
  const order: string[] = [];
  const second = gate();
  const running = async (name: string, wait?: Promise<void>): Promise<ToolResult> => {
    order.push(`${name} begins`);
    await wait;
    order.push(`${name} ends`);
    return { text: name, isError: false };
  };
  const tools = [
    tool({ name: 'ReadA', isReadOnly: true, run: () => running('ReadA', second.passed) }),
    tool({
      name: 'ReadB',
      isReadOnly: true,
      run: () => {
        second.open();
        return running('ReadB');
      },
    }),
    tool({ name: 'WriteA', run: () => running('WriteA') }),
    tool({ name: 'WriteB', run: () => running('WriteB') }),
  ];
  const provider = answers(
    [call('1', 'ReadA'), call('2', 'ReadB'), call('3', 'WriteA'), call('4', 'WriteB')],
    [say('ok')],
  );
  const { runtime } = service(provider, { tools: () => tools });
  await talk(runtime, runtime.threads.start({}).thread.id, 'go');
  t.same(order.slice(0, 2), ['ReadA begins', 'ReadB begins']);
  t.same(order.slice(4), ['WriteA begins', 'WriteA ends', 'WriteB begins', 'WriteB ends']);
  t.same(
    provider.requests[1]?.messages.flatMap((message) => (message.role === 'tool' ? [message.callId] : [])),
    ['1', '2', '3', '4'],
  );
});

t.test('an invalid call is reported to the model and the turn continues', async (t) => {
  const provider = answers(
    [
      call('1', 'Nope'),
      call('2', 'Look', '{"at": x}'),
      call('3', 'Look', '[]'),
      call('4', 'Look', ''),
      call('5', 'Fail'),
      call('6', 'Bug'),
    ],
    [say('Hm.')],
  );
  const tools = [
    {
      ...tool({ name: 'Look' }),
      parse: (args: unknown) =>
        Array.isArray(args) ? { ok: false as const, error: 'at must be given.' } : { ok: true as const, args },
    },
    tool({ name: 'Fail', run: () => ({ text: 'Error: no such cat', isError: true }) }),
    tool({
      name: 'Bug',
      run: () => {
        throw new Error('secret detail');
      },
    }),
  ];
  const { runtime, bugs } = service(provider, { tools: () => tools });
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'go');
  const results = turn.items.flatMap((item) => (item.type === 'toolResult' ? [`${item.outcome}: ${item.text}`] : []));
  t.match(results, [
    /^failed: Error: there is no tool Nope\. Tools: Look, Fail, Bug\.$/,
    /^failed: Error: the arguments of Look are not valid JSON: /,
    /^failed: Error: at must be given\.$/,
    /^completed: Look ran$/,
    /^failed: Error: no such cat$/,
    /^failed: Error: Bug failed because of a bug \(bug-1 in the log/,
  ]);
  t.notMatch(JSON.stringify(turn), /secret detail/);
  t.equal(bugs.length, 1);
  t.equal(turn.status, 'completed');
});

t.test(
  'a call repeated in vain is refused after twelve results, and ends the turn with an answer after sixteen',
  async (t) => {
    let runs = 0;
    let last: ModelRequest | undefined;
    const provider = scripted(async function* (request) {
      last = request;
      if (request.toolChoice === 'none') yield say('There is nothing to see.');
      else yield call(`c${request.messages.length}`, 'Look', { at: 'x' });
    });
    const look = tool({
      name: 'Look',
      run: () => {
        runs += 1;
        return { text: 'nothing', isError: false };
      },
    });
    const { runtime } = service(provider, { tools: () => [look] });
    const { turn, ear } = await talk(runtime, runtime.threads.start({}).thread.id, 'look');
    t.equal(runs, 12);
    t.match(turn, { status: 'completed', finishReason: 'length' });
    t.match((await ear.until('system/event')).params, { kind: 'repeatedCall' });
    t.equal(turn.items.filter(({ type }) => type === 'toolCall').length, 16);
    t.match(turn.items.at(-2), {
      type: 'systemNotice',
      kind: 'callLimitReached',
      text: /Look was called again and again/,
    });
    t.match(turn.items.at(-1), { type: 'agentMessage', text: 'There is nothing to see.' });
    t.match(JSON.stringify(last?.messages), /This turn has reached its limit/);
    t.equal(last?.tools?.length, 1, 'the tools stay, so that the prefix of the request does');
  },
);

t.test('a call whose result changes may be repeated without end', async (t) => {
  let runs = 0;
  const provider = scripted(async function* ({ messages }) {
    if (runs < 18) yield call(`c${messages.length}`, 'Look', { at: 'x' });
    else yield say('It is there.');
  });
  const look = tool({
    name: 'Look',
    run: () => {
      runs += 1;
      return { text: `attempt ${runs}`, isError: false };
    },
  });
  const { runtime } = service(provider, { tools: () => [look] });
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'look');
  t.match([runs, turn.finishReason], [18, 'stop']);
});

t.test('a turn at its limit of requests runs no further call, and closes with an answer', async (t) => {
  let asked = 0;
  const ran: unknown[] = [];
  const provider = scripted(async function* ({ toolChoice }) {
    asked += 1;
    if (toolChoice === 'none') yield say('Looked at three places.');
    else yield call(`c${asked}`, 'Look', { at: asked });
  });
  const look = tool({
    name: 'Look',
    run: ({ at }) => {
      ran.push(at);
      return { text: 'nothing', isError: false };
    },
  });
  const { runtime } = service(provider, {
    tools: () => [look],
    settings: { ...settings, maxToolCallRounds: 4 },
  });
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'look');
  t.same([asked, ran], [5, [1, 2, 3]]);
  t.equal(turn.finishReason, 'length');
  t.match(turn.items.slice(-3), [
    { type: 'systemNotice', kind: 'callLimitReached' },
    { type: 'toolResult', callId: 'c4', outcome: 'cancelled', text: /not run/ },
    { type: 'agentMessage', text: 'Looked at three places.' },
  ]);
});

t.test('a turn whose last request fails at the limit is completed, and says why it has no answer', async (t) => {
  const provider = scripted(async function* ({ toolChoice }) {
    if (toolChoice === 'none') throw new ModelError('upstreamRejected', 'no more');
    yield call('c1', 'Look', {});
  });
  const { runtime } = service(provider, {
    tools: () => [tool({ name: 'Look' })],
    settings: { ...settings, maxToolCallRounds: 1 },
  });
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'look');
  t.match(turn, { status: 'completed', finishReason: 'length' });
  t.match(turn.items.at(-1), { type: 'systemNotice', kind: 'notConcluded', text: /no closing answer: no more/ });
});

t.test('an interrupt aborts the running tool; later calls do not start and are cancelled', async (t) => {
  const started = gate();
  const tools = [
    tool({
      name: 'Wait',
      run: (_, { signal }) => {
        started.open();
        return new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
        );
      },
    }),
    tool({ name: 'After', run: () => t.fail('must not run') as never }),
  ];
  const { runtime } = service(answers([call('1', 'Wait'), call('2', 'After')]), { tools: () => tools });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  await started.passed;
  runtime.turns.interrupt(thread.id, turn.id)();
  const { params } = await ear.until('turn/cancelled');
  t.match(params.turn, { status: 'cancelled', interruptedBy: 'user' });
  t.match(
    params.turn.items.filter(({ type }) => type === 'toolResult'),
    [{ outcome: 'cancelled' }, { outcome: 'cancelled' }],
  );
});

t.test('steered input is part of the next request to the model', async (t) => {
  const steered = gate();
  const heard: string[][] = [];
  const provider = scripted(async function* ({ messages }) {
    heard.push(
      messages.flatMap((message) =>
        message.role === 'user' ? message.content.map((part) => ('text' in part ? part.text : '')) : [],
      ),
    );
    if (heard.length === 1) {
      yield say('first ');
      await steered.passed;
    }
    yield say(`answer ${heard.length}`);
  });
  const { runtime } = service(provider);
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('one'), ear.listener);
  begin();
  await ear.until('item/agentMessage/delta');
  t.throws(() => runtime.turns.steer(thread.id, 'turn_999', { input: text('x') }), {
    name: 'AgentError',
    reason: 'turnNotFound',
  });
  t.same(runtime.turns.steer(thread.id, turn.id, { input: text('two') }), { turnId: turn.id, queuedInputs: [] });
  steered.open();
  const { params } = await ear.until('turn/completed');
  t.same(heard, [['one'], ['one', 'two']]);
  t.match(
    params.turn.items.map(({ type }) => type),
    ['userMessage', 'agentMessage', 'userMessage', 'agentMessage'],
  );
  t.throws(() => runtime.turns.steer(thread.id, turn.id, { input: text('x') }), {
    name: 'AgentError',
    reason: 'turnNotRunning',
  });
});

t.test('queued input starts at once in an idle thread, else in order after each completed turn', async (t) => {
  const first = gate();
  let asked = 0;
  const provider = scripted(async function* () {
    asked += 1;
    if (asked === 1) await first.passed;
    yield say(`answer ${asked}`);
  });
  const { runtime } = service(provider);
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.threads.subscribe(thread.id, ear.listener);
  runtime.turns.enqueue(thread.id, text('one')).begin();
  const two = runtime.turns.enqueue(thread.id, text('two'));
  two.begin();
  const three = runtime.turns.enqueue(thread.id, text('three'));
  runtime.turns.enqueue(thread.id, text('four'));
  t.throws(() => runtime.turns.enqueue(thread.id, text('five')), { name: 'AgentError', reason: 'overloaded' });
  t.same(
    three.queuedInputs.map(({ id }) => id),
    [two.queuedInput.id, three.queuedInput.id],
  );
  t.equal(runtime.turns.dequeue(thread.id, three.queuedInput.id).length, 2);
  t.throws(() => runtime.turns.dequeue(thread.id, three.queuedInput.id), {
    name: 'AgentError',
    reason: 'queuedInputNotFound',
  });
  t.match(runtime.threads.read(thread.id, { includeTurns: false }).queuedInputs, [
    { input: text('two') },
    { input: text('four') },
  ]);
  first.open();
  await ear.until('turn/completed', 3);
  const said = runtime.threads.read(thread.id, { includeTurns: true }).turns?.map(({ items }) => items[0]);
  t.match(said, [{ input: text('one') }, { input: text('two') }, { input: text('four') }]);
  t.same(runtime.threads.read(thread.id, { includeTurns: false }).queuedInputs, []);
});

t.test('a failed turn does not start queued input; queued input can steer a turn', async (t) => {
  const first = gate();
  const provider = scripted(async function* () {
    yield say('x');
    await first.passed;
    throw new Error('no');
  });
  const { runtime } = service(provider);
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('one'), ear.listener);
  begin();
  await ear.until('item/agentMessage/delta');
  const { queuedInput } = runtime.turns.enqueue(thread.id, text('two'));
  runtime.turns.enqueue(thread.id, text('three'));
  t.match(runtime.turns.steer(thread.id, turn.id, { queuedInputId: queuedInput.id }).queuedInputs, [
    { input: text('three') },
  ]);
  first.open();
  await ear.until('turn/failed');
  await runtime.close();
  t.equal(runtime.threads.read(thread.id, { includeTurns: false }).queuedInputs?.length, 1);
  t.equal(runtime.threads.read(thread.id, { includeTurns: true }).turns?.length, 1);
});

t.test('a call of a client tool ends the turn; its result starts the next one', async (t) => {
  const provider = answers([say('Asking. '), call('c1', 'weather', { city: 'Bonn' })], [say('It rains.')]);
  const { runtime } = service(provider, { tools: () => [tool({ name: 'Look' })] });
  const { thread } = runtime.threads.start({});
  const clientTools = [{ name: 'weather', description: 'The weather.', inputSchema: { type: 'object' } }];
  const ear = listening();
  runtime.turns.start(thread.id, text('weather?'), ear.listener, { clientTools, tools: 'none' }).begin();
  const { params } = await ear.until('turn/completed');
  t.equal(params.turn.finishReason, 'toolCalls');
  t.match(params.turn.items.at(-1), { type: 'toolCall', source: 'client', tool: 'weather' });
  t.same(
    provider.requests[0]?.tools?.map(({ name }) => name),
    ['weather'],
  );
  const again = listening();
  runtime.turns
    .start(thread.id, [], again.listener, {
      clientTools,
      toolResults: [{ callId: 'c1', text: 'rain', isError: false }],
    })
    .begin();
  await again.until('turn/completed');
  t.match(provider.requests[1]?.messages.slice(1), [
    { role: 'user' },
    { role: 'assistant', toolCalls: [{ callId: 'c1' }] },
    { role: 'tool', callId: 'c1', name: 'weather', content: [{ text: 'rain' }] },
  ]);
  t.same(
    provider.requests[1]?.tools?.map(({ name }) => name),
    ['weather', 'Look'],
  );
});

t.test('a forced choice of a tool holds for the first request only', async (t) => {
  const provider = answers([call('c1', 'Look')], [say('ok')]);
  const { runtime } = service(provider, { tools: () => [tool({ name: 'Look' })] });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.turns.start(thread.id, text('x'), ear.listener, { toolChoice: 'required' }).begin();
  await ear.until('turn/completed');
  t.same(
    provider.requests.map(({ toolChoice }) => toolChoice),
    ['required', undefined],
  );
});

t.test('a forced choice of a tool holds until a request is answered, not after', async (t) => {
  const choices: unknown[] = [];
  const provider = scripted(async function* ({ toolChoice }) {
    choices.push(toolChoice);
    if (choices.length === 1) throw new ModelError('upstreamFailed', 'busy', { retryAfterMs: 1 });
    yield choices.length === 2 ? call('c1', 'Look') : say('ok');
  });
  const { runtime } = service(provider, {
    tools: () => [tool({ name: 'Look' })],
    settings: { ...settings, maxRetries: 1 },
  });
  const ear = listening();
  runtime.turns.start(runtime.threads.start({}).thread.id, text('x'), ear.listener, { toolChoice: 'required' }).begin();
  await ear.until('turn/completed');
  t.same(choices, ['required', 'required', undefined]);
});

t.test('the model is offered only the tools that the thread enables', async (t) => {
  const provider = answers([say('ok')]);
  const tools = ['Look', 'Touch'].map((name) => tool({ name }));
  const { runtime } = service(provider, { tools: () => tools });
  await talk(runtime, runtime.threads.start({ config: { enabledTools: ['look'] } }).thread.id, 'x');
  t.same(
    provider.requests[0]?.tools?.map(({ name }) => name),
    ['Look'],
  );
});

t.test('a sub-agent runs in its own thread; its last message is the result', async (t) => {
  const requests: string[] = [];
  const provider = scripted(async function* ({ messages, tools }) {
    const last = messages.at(-1);
    const words = last?.role === 'user' ? (last.content[0] as { text: string }).text : (last?.role ?? '');
    requests.push(`${words} [${tools?.map(({ name }) => name).join() ?? ''}]`);
    if (words === 'delegate') yield call('c1', 'SpawnSubagent', { task: 'count cats' });
    else yield say(words === 'count cats' ? 'Three cats.' : 'Reported.');
  });
  const spawn = tool({
    name: 'SpawnSubagent',
    run: (args, { spawnSubagent }) => spawnSubagent({ task: String(args['task']), label: 'cats', type: undefined }),
  });
  const { runtime } = service(provider, { tools: () => [spawn] });
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'delegate');
  t.match(
    turn.items.find(({ type }) => type === 'toolResult'),
    { text: 'Three cats.', outcome: 'completed' },
  );
  t.same(requests, ['delegate [SpawnSubagent]', 'count cats []', 'tool [SpawnSubagent]'], 'a sub-agent starts none');
  t.same(
    runtime.threads.list({}).map(({ id }) => id),
    [thread.id],
    'its thread is not listed',
  );
});

t.test('an interrupt also ends sub-agents', async (t) => {
  const provider = scripted(async function* ({ messages }, signal) {
    const last = messages.at(-1);
    if (last?.role === 'user' && (last.content[0] as { text: string }).text === 'delegate') {
      yield call('c1', 'SpawnSubagent', { task: 'wait' });
      return;
    }
    yield say('waiting');
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
  });
  const spawn = tool({
    name: 'SpawnSubagent',
    run: (args, { spawnSubagent }) => spawnSubagent({ task: String(args['task']), label: undefined, type: undefined }),
  });
  const { runtime } = service(provider, { tools: () => [spawn] });
  const { thread } = runtime.threads.start({});
  const [ear, everybody] = [listening(), listening()];
  runtime.feed.join(everybody.listener);
  const { turn, begin } = runtime.turns.start(thread.id, text('delegate'), ear.listener);
  begin();
  await everybody.until('thread/runtimeChanged', 2);
  runtime.turns.interrupt(thread.id, turn.id)();
  await ear.until('turn/cancelled');
  await runtime.close();
  t.equal(runtime.turns.count, 0);
});
