/** The responses API: shapes, chains, streams taken up again, bad input. */
import t from 'tap';
import { tool } from '../agent/helpers.ts';
import { callTool, gate, say, script } from '../agent/scripted-provider.ts';
import { chat, eventually, type Running, requestStore } from './harness.ts';

type Body = Readonly<Record<string, unknown>>;
// biome-ignore lint/suspicious/noExplicitAny: any response of the server
type Any = any;

const look = tool({ name: 'Look', isReadOnly: true, run: () => ({ text: 'a cat', isError: false }) });
const weather = { type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } };

function client({ url }: Pick<Running, 'url'>) {
  const send = (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${url}/v1/responses${path}`, {
      method,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  const create = async (body: Body, headers = {}): Promise<Any> => (await send('POST', '', body, headers)).json();
  const read = async (id: string): Promise<Any> => (await send('GET', `/${id}`)).json();
  const events = async (path: string): Promise<Any[]> => eventsIn(await (await send('GET', path)).text());
  return { send, create, read, events };
}

/** Events of a stream; each frame must name the type of its event. */
function eventsIn(text: string): Any[] {
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('event: '))
    .map((frame) => {
      const [, type, data] = /^event: (\S+)\ndata: ([^\n]+)$/.exec(frame) ?? [];
      const event = JSON.parse(data ?? 'null');
      if (event?.type !== type) throw new Error(`not a frame: ${frame}`);
      return event;
    });
}

const user = (content: string) => ({ role: 'user', content });
const wordsOf = (provider: ReturnType<typeof script>, nth: number): string[] =>
  (provider.requests[nth]?.messages ?? []).slice(1).map((message) => {
    const parts = 'content' in message ? message.content : [{ type: 'text' as const, text: message.text }];
    return `${message.role}: ${parts.map((part) => (part.type === 'text' ? part.text : part.url)).join('|')}`;
  });

t.test('a response has every field of the interface, and the words of the turn', async (t) => {
  const provider = script([callTool('Look')], say('A cat.'));
  const { create, read } = client(await chat(t, provider, { runtime: { tools: () => [look] } }));
  const body = { input: 'what is there?', instructions: 'be brief', metadata: { a: 'b' }, user: 'ann' };
  const response = await create(body);
  t.match(response, {
    id: /^resp_[0-9a-f]{32}$/,
    object: 'response',
    status: 'completed',
    model: 'scripted',
    ...{ previous_response_id: null, instructions: 'be brief', metadata: { a: 'b' }, error: null },
    ...{ incomplete_details: null, tools: [], tool_choice: 'auto', truncation: 'disabled', user: 'ann' },
    ...{ parallel_tool_calls: true, text: { format: { type: 'text' } }, store: true, background: false },
    reasoning: { effort: null, summary: null },
    x_agent: { toolCalls: 1, steps: [{ tool: 'Look', outcome: 'completed' }] },
  });
  const message = response.output.at(-1);
  t.match(message, { type: 'message', id: /^msg_/, role: 'assistant', status: 'completed' });
  t.strictSame(message.content, [{ type: 'output_text', text: 'A cat.', annotations: [], logprobs: [] }]);
  t.strictSame(await read(response.id), response, 'it can be read again');
  t.match(provider.requests[0]?.messages[0], { role: 'system', text: /be brief/ });
});

t.test('a stream can be taken up after each of its events, also from the next server', async (t) => {
  const store = requestStore(t);
  const provider = script(
    [say('Let '), say('me '), say('see.'), callTool('Look')],
    [say('A '), say('cat.'), callTool('get_weather', { city: 'Oslo' })],
  );
  const running = await chat(t, provider, { runtime: { tools: () => [look] }, store });
  const { send, events } = client(running);
  const order = { input: 'hi', stream: true, tools: [weather], x_agent: { serverTools: true } };
  const sent = eventsIn(await (await send('POST', '', order)).text());
  t.strictSame(
    sent.map(({ sequence_number }) => sequence_number),
    sent.map((_, index) => index),
    'the numbers have no gap',
  );
  t.strictSame(
    [sent[0].type, sent[1].type, sent.at(-1).type],
    ['response.created', 'response.in_progress', 'response.completed'],
  );
  t.equal(
    sent.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join(''),
    'Let me see.\n\nA cat.',
  );
  const { id } = sent[0].response;
  const next = client(await chat(t, script(), { store }));
  for (const from of [events, next.events]) {
    t.strictSame(await from(`/${id}?stream=true`), sent);
    for (const [index] of sent.entries()) {
      t.strictSame(await from(`/${id}?stream=true&starting_after=${index}`), sent.slice(index + 1));
    }
  }
});

t.test('the newest response is continued in its thread, an older one in a fork', async (t) => {
  const provider = script(say('one'), say('two'), say('other'), say('more'));
  const { runtime, url } = await chat(t, provider);
  const { create } = client({ url });
  const system = { type: 'message', role: 'developer', content: 'a rule of the input' };
  const first = await create({ input: [system, user('a')], instructions: 'only here' });
  const second = await create({ input: 'b', previous_response_id: first.id });
  t.strictSame(wordsOf(provider, 1), ['user: a', 'assistant: one', 'user: b']);
  const [head] = provider.requests[1]?.messages ?? [];
  t.match(head, { text: /a rule of the input/ }, 'messages of the input stay');
  t.notMatch(head, { text: /only here/ }, 'instructions are those of one response');
  await create({ input: 'c', previous_response_id: first.id });
  t.strictSame(wordsOf(provider, 2), ['user: a', 'assistant: one', 'user: c']);
  await create({ input: 'd', previous_response_id: second.id });
  t.strictSame(wordsOf(provider, 3), ['user: a', 'assistant: one', 'user: b', 'assistant: two', 'user: d']);
  t.equal(runtime.threads.list({ channelName: 'api' }).length, 2);
});

t.test('of two requests that continue a response at once, one gets a fork', async (t) => {
  const listed = Promise.withResolvers<[]>();
  const provider = Object.assign(script(say('one'), say('two'), say('two')), { listModels: () => listed.promise });
  const { runtime, url } = await chat(t, provider);
  const { create } = client({ url });
  const first = await create({ input: 'a' });
  // Both wait for the models of the provider, and continue in one turn of the event loop.
  const both = ['b', 'c'].map((input) => create({ model: 'other', input, previous_response_id: first.id }));
  for (let asked = 0; asked < 5; asked += 1) await fetch(`${url}/v1/health`);
  listed.resolve([]);
  await Promise.all(both);
  const asked = [wordsOf(provider, 1), wordsOf(provider, 2)];
  t.strictSame(
    new Set(asked.map((words) => words.join())),
    new Set(['user: a,assistant: one,user: b', 'user: a,assistant: one,user: c']),
  );
  t.equal(runtime.threads.list({ channelName: 'api' }).length, 2);
});

t.test('requests of a client that sends the whole conversation each time are one session of the traces', async (t) => {
  const store = requestStore(t);
  const provider = script(say('one'), say('two'), say('three'), say('four'), say('five'));
  const { runtime, url } = await chat(t, provider, { store, runtime: { store: store.threads, traces: store.traces } });
  const { create } = client({ url });
  const stateless = { store: false, instructions: 'be brief' };
  const begun = [user('a')];
  const continued = [...begun, { role: 'assistant', content: 'one' }, user('b')];
  for (const input of [begun, continued, 'a', [user('other')]]) {
    t.match(await create({ ...stateless, input }), { status: 'completed' });
  }
  t.match(await create({ ...stateless, input: 'a', prompt_cache_key: 'k' }), { status: 'completed' });
  t.strictSame(wordsOf(provider, 1), ['user: a', 'assistant: one', 'user: b'], 'each request has its own history');
  store.traces.flush();
  const sessions = store.traces.sessions({ limit: 9 }).map(({ turnCount }) => turnCount);
  t.strictSame(sessions.toSorted(), [1, 1, 1, 2], 'the same list of messages is one conversation');
  t.strictSame(runtime.threads.list({}), []);
});

t.test('a request that is refused after its conversation was forked leaves no fork', async (t) => {
  const middle = gate();
  const provider = script(say('one'), say('two'), [middle, say('three')]);
  const { runtime, url } = await chat(t, provider, { api: { MaxConcurrentTurns: 1 } });
  const { create } = client({ url });
  const first = await create({ input: 'a' });
  await create({ input: 'b', previous_response_id: first.id });
  const lost = { type: 'item_reference', id: `msg_${'0'.repeat(32)}_0` };
  t.match(await create({ input: [lost], previous_response_id: first.id }), { error: { code: 'invalid_parameter' } });
  const running = create({ input: 'c' });
  await middle.reached;
  t.match(await create({ input: 'd', previous_response_id: first.id }), { error: { code: 'concurrency_limit' } });
  t.equal(runtime.threads.list({ channelName: 'api' }).length, 2);
  middle.open();
  await running;
});

t.test('an unstored response continues another, and leaves nothing behind', async (t) => {
  const provider = script(say('one'), say('two'), say('three'));
  const { chatRequests, responses } = requestStore(t);
  const saved: string[] = [];
  const begin = chatRequests.begin.bind(chatRequests);
  chatRequests.begin = (request) => {
    saved.push(request.name);
    begin(request);
  };
  const { runtime, url } = await chat(t, provider, { store: { chatRequests, responses } });
  const { create, send } = client({ url });
  const first = await create({ input: 'a' });
  const second = await create({ input: 'b', previous_response_id: first.id, store: false });
  t.match(second, { status: 'completed', store: false });
  t.strictSame(wordsOf(provider, 1), ['user: a', 'assistant: one', 'user: b']);
  t.equal((await send('GET', `/${second.id}`)).status, 404);
  await create({ input: 'c', store: false });
  await eventually(() => runtime.threads.list({}).length === 1, 'the thread of its own is gone');
  t.strictSame(saved, [first.id], 'the requests of unstored responses are not on disk');
  t.equal((await send('DELETE', `/${first.id}`)).status, 200);
  t.strictSame(runtime.threads.list({}), [], 'the thread goes with its last response');
});

t.test('a response in the background needs no client, and the next response waits for it', async (t) => {
  const door = gate();
  const provider = script([say('begun '), door, say('done')], say('after'));
  const { create, read, send } = client(await chat(t, provider));
  const begun = await create({ input: 'go', background: true });
  t.match(begun, { status: 'in_progress', output: [], background: true });
  const refused = await send('DELETE', `/${begun.id}`);
  t.match([refused.status, await refused.json()], [409, { error: { code: 'response_in_progress' } }]);
  const queued = create({ input: 'and then?', previous_response_id: begun.id });
  while ((await read(begun.id)).output.length === 0);
  door.open();
  t.match(await queued, { status: 'completed', output: [{ content: [{ text: 'after' }] }] });
  t.match(await read(begun.id), { status: 'completed', output: [{ content: [{ text: 'begun done' }] }] });
});

t.test('a tool that takes text is called with text', async (t) => {
  const provider = script([callTool('patch', { input: '*** Begin' })], say('applied'));
  const { create, send } = client(await chat(t, provider));
  const tools = [{ type: 'custom', name: 'patch', description: 'Applies a patch' }, { type: 'web_search' }];
  const first = await create({ input: 'go', tools });
  t.match(first.tools, [{ type: 'custom', name: 'patch' }], 'the tools of a provider are not offered');
  t.equal(first.tools.length, 1);
  const [call] = first.output;
  t.match(call, { type: 'custom_tool_call', name: 'patch', input: '*** Begin', status: 'completed' });
  const output = { type: 'custom_tool_call_output', call_id: call.call_id, output: 'ok' };
  const events = eventsIn(
    await (
      await send('POST', '', {
        input: [user('go'), { type: 'item_reference', id: call.id }, output],
        tools,
        stream: true,
      })
    ).text(),
  );
  t.equal(events.at(-1).response.output[0].content[0].text, 'applied');
  t.strictSame(wordsOf(provider, 1), ['user: go', 'assistant: ', 'tool: ok']);
  t.match(provider.requests[1]?.messages[2], { toolCalls: [{ name: 'patch', arguments: '{"input":"*** Begin"}' }] });
});

t.test('a repeated request gets the same response, and a key of another interface is refused', async (t) => {
  const provider = script(say('once'), say('twice'));
  const running = await chat(t, provider);
  const { create, send } = client(running);
  const headers = { 'idempotency-key': 'k' };
  const first = await create({ input: 'a' }, headers);
  t.strictSame(await create({ input: 'a' }, headers), first);
  t.equal((await send('POST', '', { input: 'b' }, headers)).status, 422);
  const body = { input: 'a', messages: [user('a')] };
  await running.post(body, { 'idempotency-key': 'chat' });
  const other = await send('POST', '', body, { 'idempotency-key': 'chat' });
  t.match([other.status, await other.json()], [422, { error: { code: 'idempotency_key_reused' } }]);
  t.equal(provider.requests.length, 2);
});

t.test('a bad request is refused with the field, and begins nothing', async (t) => {
  const provider = script();
  const { send } = client(await chat(t, provider));
  let deep: unknown = {};
  for (let level = 0; level < 300; level += 1) deep = { deep };
  const bad: readonly (readonly [unknown, number, string, string | null])[] = [
    ['nonsense', 400, 'invalid_json', null],
    [[], 400, 'missing_required_parameter', 'input'],
    [{}, 400, 'missing_required_parameter', 'input'],
    [{ input: [] }, 400, 'invalid_parameter', 'input'],
    [{ input: 7 }, 400, 'invalid_parameter', 'input'],
    [{ input: [{ type: 'computer_call' }] }, 400, 'invalid_parameter', 'input[0].type'],
    [{ input: [{ role: 'user' }] }, 400, 'missing_required_parameter', 'input[0].content'],
    [{ input: [user('a'), { role: 'assistant', content: 'b' }] }, 400, 'invalid_parameter', 'input[1].role'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] },
      400,
      'unsupported_content_type',
      'input[0].content[0].type',
    ],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'file:///etc/passwd' }] }] },
      400,
      'invalid_parameter',
      'input[0].content[0].image_url.url',
    ],
    [{ input: [{ id: 'msg_x' }] }, 400, 'invalid_parameter', 'input[0].id'],
    [{ input: 'a', previous_response_id: 'resp_x' }, 400, 'previous_response_not_found', 'previous_response_id'],
    [{ input: 'a', tools: [weather, weather] }, 400, 'invalid_parameter', 'tools[1].name'],
    [{ input: 'a', tools: [{ ...weather, parameters: deep }] }, 400, 'invalid_parameter', 'tools[0].parameters'],
    [{ input: 'a', tools: [], tool_choice: weather }, 400, 'invalid_parameter', 'tool_choice.name'],
    [{ input: 'a', background: true, store: false }, 400, 'invalid_parameter', 'background'],
    [{ input: 'a', metadata: { a: 'b'.repeat(513) } }, 400, 'invalid_parameter', 'metadata.a'],
    [{ input: 'a', metadata: { a: 1 } }, 400, 'invalid_parameter', 'metadata.a'],
    [{ input: 'a', conversation: 'c' }, 400, 'unsupported_parameter', 'conversation'],
    [{ input: 'a', text: { format: { type: 'xml' } } }, 400, 'invalid_parameter', 'text.format.type'],
  ];
  for (const [body, status, code, param] of bad) {
    const answer = await send('POST', '', body);
    t.match(
      [answer.status, await answer.json()],
      [status, { error: { code, param } }],
      JSON.stringify(body).slice(0, 80),
    );
  }
  for (const path of ['/resp_x', '/resp_x?stream=true', '/%00', '/thread_1']) {
    const answer = await send('GET', path);
    t.match([answer.status, await answer.json()], [404, { error: { code: 'response_not_found' } }], path);
  }
  t.equal(provider.requests.length, 0);
});

t.test('a caller cannot reach a conversation of another interface', async (t) => {
  const provider = script(say('secret'));
  const running = await chat(t, provider);
  await running.ask('a', {}, { 'x-session-id': 's' });
  const [thread] = running.runtime.threads.list({});
  const { send } = client(running);
  t.equal((await send('GET', `/${thread?.id}`)).status, 404);
  t.equal((await send('POST', '', { input: 'b', previous_response_id: thread?.id })).status, 400);
  t.equal((await send('DELETE', `/${thread?.id}`)).status, 404);
  t.equal(running.runtime.threads.list({}).length, 1);
});

t.test('with Api.Responses off its paths do not exist', async (t) => {
  const { send } = client(await chat(t, script(), { api: { Responses: false } }));
  t.equal((await send('POST', '', { input: 'a' })).status, 404);
});
