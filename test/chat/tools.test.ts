import t from 'tap';
import { createUpdatePlan } from '../../src/agent/tools/update-plan.ts';
import { tool } from '../agent/helpers.ts';
import { callTool, say, script } from '../agent/scripted-provider.ts';
import { chat, chunksOf, contentOf, user } from './harness.ts';

const look = tool({ name: 'Look', isReadOnly: true, run: () => ({ text: 'a cat', isError: false }) });
const touch = tool({ name: 'Touch', needsApproval: true });
const runtime = { tools: () => [look, touch] };
const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
};
const names = (provider: ReturnType<typeof script>, nth = 0) =>
  provider.requests[nth]?.tools?.map(({ name }) => name) ?? [];

t.test('the model is offered the tools that the request selects', async (t) => {
  const cases: [string, object, string[]][] = [
    ['none given: the server’s', {}, ['Look', 'Touch']],
    ['null is none given', { tools: null }, ['Look', 'Touch']],
    ['an empty list: none', { tools: [] }, []],
    ['none wanted: none', { tool_choice: 'none' }, []],
    ['given, but none wanted: none', { tools: [weather], tool_choice: 'none' }, []],
    ['given: the caller’s alone', { tools: [weather] }, ['get_weather']],
    [
      'with the server’s beside them',
      { tools: [weather], x_agent: { serverTools: true } },
      ['get_weather', 'Look', 'Touch'],
    ],
    [
      'the same in metadata',
      { tools: [weather], metadata: { server_tools: 'true' } },
      ['get_weather', 'Look', 'Touch'],
    ],
  ];
  for (const [name, body, expected] of cases) {
    const provider = script(say('ok'));
    const { ask } = await chat(t, provider, { runtime });
    t.equal((await ask('hi', body)).status, 200);
    t.strictSame(names(provider), expected, name);
  }
});

t.test('extra tools are offered when Api.EnabledTools names them, and only then', async (t) => {
  const tools = () => [look, createUpdatePlan()];
  const plain = script(say('ok'));
  await (await chat(t, plain, { runtime: { tools } })).ask('hi');
  t.strictSame(names(plain), ['Look']);

  const steps = [{ step: 'look', status: 'in_progress' }];
  const named = script([callTool('UpdatePlan', { plan: steps })], say('ok'));
  const { post } = await chat(t, named, { api: { EnabledTools: ['updateplan'] }, runtime: { tools } });
  const chunks = chunksOf(await (await post({ messages: [user('hi')], stream: true })).text());
  t.strictSame(names(named), ['UpdatePlan']);
  t.equal(contentOf(chunks), 'ok');
  const activities = chunks.flatMap((chunk) => chunk.x_agent ?? []);
  t.match(activities, [{ event: 'tool.started' }, { event: 'tool.completed' }, { event: 'plan', steps }]);
});

t.test('tools without parameters or description are accepted', async (t) => {
  const provider = script(say('ok'));
  const { ask } = await chat(t, provider);
  await ask('hi', { tools: [{ type: 'function', function: { name: 'ping' } }] });
  t.strictSame(provider.requests[0]?.tools, [
    { name: 'ping', description: '', inputSchema: { type: 'object', properties: {} } },
  ]);
});

t.test('Api.EnabledTools limits the tools of the server, also in sessions', async (t) => {
  const readFile = tool({ name: 'ReadFile', isReadOnly: true });
  const exec = tool({ name: 'Exec' });
  const provider = script([callTool('Exec')], say('I may not.'), say('ok'), say('ok'));
  const { ask } = await chat(t, provider, {
    api: { EnabledTools: ['readfile'] },
    runtime: { tools: () => [readFile, exec] },
  });
  const { body } = await ask('run it');
  t.strictSame(names(provider), ['ReadFile']);
  t.match(body.x_agent.steps, [{ tool: 'Exec', outcome: 'failed' }]);
  await ask('hi', {}, { 'x-session-id': 's' });
  await ask('hi', {}, { 'x-session-id': 's' });
  t.strictSame(names(provider, 2), ['ReadFile']);
  t.strictSame(names(provider, 3), ['ReadFile']);
});

t.test("a call of a caller's tool is returned, and its result continues the conversation", async (t) => {
  const provider = script([say('One moment.'), callTool('get_weather', { city: 'Oslo' }, 'call_9')], say('Rain.'));
  const { ask, post } = await chat(t, provider);
  const { body } = await ask('weather?', { tools: [weather] });
  const [choice] = body.choices;
  t.equal(choice.finish_reason, 'tool_calls');
  t.match(choice.message, {
    content: 'One moment.',
    tool_calls: [{ id: 'call_9', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }],
  });
  t.equal(body.x_agent.toolCalls, 0);
  const messages = [
    user('weather?'),
    choice.message,
    { role: 'tool', tool_call_id: 'call_9', content: [{ type: 'text', text: 'rain' }] },
  ];
  const next = await (await post({ messages, tools: [weather] })).json();
  t.equal(next.choices[0].message.content, 'Rain.');
  t.match(provider.requests[1]?.messages.slice(1), [
    { role: 'user' },
    { role: 'assistant', text: 'One moment.', toolCalls: [{ callId: 'call_9', name: 'get_weather' }] },
    { role: 'tool', callId: 'call_9', name: 'get_weather', content: [{ type: 'text', text: 'rain' }] },
  ]);
});

t.test('an answer of calls only has no content', async (t) => {
  const { ask } = await chat(t, script(callTool('get_weather', {})));
  t.equal((await ask('weather?', { tools: [weather] })).body.choices[0].message.content, null);
});

t.test(
  'calls of the caller’s tools in a stream have id, type and name once, and their arguments in pieces',
  async (t) => {
    const provider = script([callTool('get_weather', { city: 'Oslo' }, 'a'), callTool('get_weather', '{"city":', 'b')]);
    const { post } = await chat(t, provider);
    const chunks = chunksOf(await (await post({ messages: [user('?')], tools: [weather], stream: true })).text());
    const calls = chunks.flatMap(({ choices }) => choices[0].delta.tool_calls ?? []);
    t.strictSame(calls, [
      { index: 0, id: 'a', type: 'function', function: { name: 'get_weather', arguments: '' } },
      { index: 0, function: { arguments: '{"city":' } },
      { index: 0, function: { arguments: '"Oslo"}' } },
      { index: 1, id: 'b', type: 'function', function: { name: 'get_weather', arguments: '' } },
      { index: 1, function: { arguments: '{"city":' } },
    ]);
    t.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
  },
);

t.test("in a session results of the caller's tools answer the calls of the previous turn", async (t) => {
  const provider = script(
    [callTool('Look'), callTool('get_weather', { city: 'Oslo' }, 'call_9')],
    [say('Rain on a cat.')],
    [say('Still.')],
  );
  const { post } = await chat(t, provider, { runtime });
  const headers = { 'x-session-id': 's' };
  const more = { tools: [weather], x_agent: { serverTools: true } };
  const first = await (await post({ messages: [user('weather?')], ...more }, headers)).json();
  t.equal(first.choices[0].finish_reason, 'tool_calls');
  t.equal(first.choices[0].message.tool_calls.length, 1, 'the server’s own call is not the caller’s business');
  const messages = [
    user('weather?'),
    first.choices[0].message,
    { role: 'tool', tool_call_id: 'call_9', content: 'rain' },
  ];
  const second = await (await post({ messages, ...more }, headers)).json();
  t.equal(second.choices[0].message.content, 'Rain on a cat.');
  t.equal(second.x_agent.toolCalls, 0);
  const sent = provider.requests[1]?.messages.slice(1) ?? [];
  t.strictSame(sent.flatMap((message) => (message.role === 'tool' ? [message.callId] : [])).toSorted(), [
    'call_1_1',
    'call_9',
  ]);
  t.match(JSON.stringify(sent), /rain/);
});

t.test('tool choice and sampling are passed on unchanged', async (t) => {
  const sampling = {
    temperature: 0.5,
    top_p: 0.9,
    max_completion_tokens: 100,
    stop: ['a'],
    seed: 7,
    logit_bias: { 5: 1 },
  };
  const cases: [object, unknown][] = [
    [{ tool_choice: 'required' }, 'required'],
    [{ tool_choice: 'auto' }, 'auto'],
    [{ tool_choice: { type: 'function', function: { name: 'get_weather' } } }, { name: 'get_weather' }],
  ];
  for (const [body, expected] of cases) {
    const provider = script(say('ok'));
    const { ask } = await chat(t, provider);
    await ask('hi', { tools: [weather], ...body, ...sampling, presence_penalty: null });
    t.strictSame(provider.requests[0]?.toolChoice, expected);
    t.strictSame(provider.requests[0]?.sampling, sampling);
  }
});

t.test('a tool choice that contradicts the tools is refused', async (t) => {
  const { ask } = await chat(t, script());
  const named = { type: 'function', function: { name: 'nope' } };
  const cases: [object, string][] = [
    [{ tools: [weather], tool_choice: named }, 'tool_choice.function.name'],
    [{ tools: [], tool_choice: 'required' }, 'tool_choice'],
    [{ tools: [weather, weather] }, 'tools[1].function.name'],
  ];
  for (const [body, param] of cases) {
    const answer = await ask('hi', body);
    t.equal(answer.status, 400);
    t.equal(answer.body.error.param, param);
  }
});

t.test('AutoApprove decides calls that need approval', async (t) => {
  for (const [AutoApprove, outcome] of [
    [true, 'completed'],
    [false, 'declined'],
  ] as const) {
    const { ask, post } = await chat(t, script(callTool('Touch'), say('so be it'), callTool('Touch'), say('ok')), {
      api: { AutoApprove },
      runtime,
    });
    const { body } = await ask('touch it');
    t.equal(body.x_agent.steps[0].outcome, outcome);
    t.equal(body.choices[0].message.content, 'so be it');
    if (!AutoApprove) t.match(body.x_agent.steps[0].outputPreview, /AutoApprove/);
    const chunks = chunksOf(await (await post({ messages: [user('?')], stream: true })).text());
    t.equal(contentOf(chunks), 'ok');
    t.ok(chunks.some(({ x_agent }) => x_agent?.event === `tool.${outcome}`));
  }
});

t.test('AutoApprove also decides calls of sub-agents', async (t) => {
  const spawn = tool({
    name: 'SpawnSubagent',
    run: (_, { spawnSubagent }) => spawnSubagent({ task: 'touch it', label: undefined, type: undefined }),
  });
  const provider = script(callTool('SpawnSubagent'), callTool('Touch'), say('I was not allowed.'), say('A pity.'));
  const { ask } = await chat(t, provider, {
    api: { AutoApprove: false },
    runtime: { tools: () => [spawn, touch] },
  });
  const { body } = await ask('delegate');
  t.equal(body.choices[0].message.content, 'A pity.');
  t.match(JSON.stringify(provider.requests[2]?.messages), /rejected by policy/);
});
