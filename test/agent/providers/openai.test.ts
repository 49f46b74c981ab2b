import t, { type Test } from 'tap';
import type { ModelRequest } from '../../../src/agent/model.ts';
import { answered, json, startMockUpstream, type UpstreamRequest } from '../../fixtures/upstream/mock-upstream.ts';
import { pictures, pictureUrl } from '../../pictures.ts';
import { answerOf, apiKey, collect, hi, openAi, user } from './helpers.ts';

/** The body that a request becomes. */
async function bodyOf(t: Test, request: ModelRequest, options = {}): Promise<UpstreamRequest['body']> {
  const upstream = await startMockUpstream(t, (asked) => answered(asked, { text: 'x' }));
  const provider = openAi(upstream.url, options);
  t.teardown(() => provider.close());
  await collect(provider, request);
  return upstream.requests[0]?.body;
}

t.test('reasoning, text, calls and usage are streamed in order', async (t) => {
  const upstream = await startMockUpstream(t, (request) =>
    answered(request, {
      reasoning: 'Let me look.',
      text: 'Grüß dich 🎼',
      toolCalls: [
        { id: 'a1', name: 'ReadFile', arguments: { path: 'ä.txt' } },
        { id: 'a2', name: 'FindFiles', arguments: { pattern: '*' } },
      ],
      pieceLength: 3,
    }),
  );
  const provider = openAi(`${upstream.url}/`);
  t.teardown(() => provider.close());
  const events = await collect(provider);
  t.same(answerOf(events), {
    thinking: 'Let me look.',
    text: 'Grüß dich 🎼',
    calls: [
      { callId: 'a1', name: 'ReadFile', arguments: '{"path":"ä.txt"}' },
      { callId: 'a2', name: 'FindFiles', arguments: '{"pattern":"*"}' },
    ],
    usage: { type: 'usage', inputTokens: 11, outputTokens: 7 },
    finish: 'toolCalls',
  });
  const kinds = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
  t.same(kinds, ['thinking', 'text', 'toolCallDelta', 'toolCall', 'state', 'usage', 'finish']);
  const pieces = events.flatMap((event) => (event.type === 'toolCallDelta' ? [event] : []));
  t.ok(pieces.length > 6);
  for (const index of [0, 1]) {
    const written = pieces.filter((piece) => piece.index === index).map(({ argumentsDelta }) => argumentsDelta);
    t.equal(written.join(''), answerOf(events).calls[index]?.arguments);
  }
  const [request] = upstream.requests;
  t.equal(request?.path, '/v1/chat/completions');
  t.match(request?.headers, { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' });
  t.strictSame(request?.body, {
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    stream: true,
    stream_options: { include_usage: true },
  });
});

t.test('an answer without streaming gives the same events', async (t) => {
  const upstream = await startMockUpstream(t, (request) =>
    answered(request, { reasoning: 'hm', text: 'whole', toolCalls: [{ name: 'Exec', arguments: { command: 'ls' } }] }),
  );
  const provider = openAi(upstream.url, { streamUpstream: false });
  t.teardown(() => provider.close());
  t.same(await collect(provider), [
    { type: 'thinking', text: 'hm' },
    { type: 'text', text: 'whole' },
    { type: 'toolCallDelta', index: 0, callId: 'call_mock_0', name: 'Exec', argumentsDelta: '{"command":"ls"}' },
    { type: 'toolCall', call: { callId: 'call_mock_0', name: 'Exec', arguments: '{"command":"ls"}' } },
    { type: 'state', state: { owner: 'openai-compatible/m', data: { reasoning_content: 'hm' } } },
    { type: 'usage', inputTokens: 11, outputTokens: 7 },
    { type: 'finish', reason: 'toolCalls' },
  ]);
  t.match(upstream.requests[0]?.body, { stream: false, stream_options: undefined });
});

t.test('a conversation is sent in the format of the interface', async (t) => {
  const picture = { type: 'image', url: pictureUrl(pictures.png, 'png') } as const;
  const deepArguments = `${'{"a":'.repeat(101)}1${'}'.repeat(101)}`;
  const body = await bodyOf(t, {
    model: 'other',
    messages: [
      { role: 'system', text: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See:' },
          { ...picture, detail: 'low' },
        ],
      },
      {
        role: 'assistant',
        text: '',
        toolCalls: [
          { callId: 'c1', name: 'ReadFile', arguments: '{"path":"a.png"}' },
          { callId: 'c2', name: 'Exec', arguments: '' },
          { callId: 'c3', name: 'Exec', arguments: '{"com' },
          { callId: 'c\n4', name: 'Exec', arguments: 'null' },
          { callId: 'c5', name: 'Exec', arguments: '[1]' },
          { callId: 'c6', name: 'Exec', arguments: deepArguments },
          { callId: 'c7', name: `Ex\0ec é${'x'.repeat(100)}`, arguments: '{}' },
          { callId: 'c8', name: '', arguments: '{}' },
        ],
      },
      { role: 'tool', callId: 'c1', name: 'ReadFile', content: [{ type: 'text', text: 'a picture' }, picture] },
      { role: 'tool', callId: 'c2', name: 'Exec', content: [{ type: 'text', text: 'done' }] },
      { role: 'tool', callId: 'c3', name: 'Exec', content: [] },
      { role: 'assistant', text: 'Nice.', toolCalls: [] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'one' },
          { type: 'text', text: 'two' },
        ],
      },
    ],
  });
  const call = (id: string, name: string, args: string) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  });
  t.equal(body.model, 'other');
  const wireId = body.messages[2].tool_calls[3].id;
  t.match(wireId, /^\w{9}$/);
  t.strictSame(body.messages, [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'See:' },
        { type: 'image_url', image_url: { url: picture.url, detail: 'low' } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        call('c1', 'ReadFile', '{"path":"a.png"}'),
        call('c2', 'Exec', '{}'),
        call('c3', 'Exec', '{"invalid_json":"{\\"com"}'),
        call(wireId, 'Exec', '{"invalid_json":"null"}'),
        call('c5', 'Exec', '{"invalid_json":"[1]"}'),
        call('c6', 'Exec', JSON.stringify({ invalid_json: deepArguments })),
        call('c7', `Ex_ec_${'x'.repeat(58)}`, '{}'),
        call('c8', 'unknown', '{}'),
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'a picture' },
    { role: 'tool', tool_call_id: 'c2', content: 'done' },
    { role: 'tool', tool_call_id: 'c3', content: '' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'From the result of ReadFile (c1):' },
        { type: 'image_url', image_url: { url: picture.url } },
      ],
    },
    { role: 'assistant', content: 'Nice.' },
    { role: 'user', content: 'one\ntwo' },
  ]);
});

t.test('images of a tool follow its results, also at the end of the conversation', async (t) => {
  const body = await bodyOf(t, {
    messages: [
      { role: 'assistant', text: 'I look.', toolCalls: [{ callId: 'c1', name: 'R', arguments: '{}' }] },
      { role: 'tool', callId: 'c1', name: 'R', content: [{ type: 'image', url: 'https://example.com/a.png' }] },
    ],
  });
  t.same(
    body.messages.map(({ role }: { role: string }) => role),
    ['assistant', 'tool', 'user'],
  );
  t.equal(body.messages[0].content, 'I look.');
});

const tool = { name: 'ReadFile', description: 'Reads.', inputSchema: { type: 'object', properties: {} } };

t.test('tools, tool choice and response format are sent', async (t) => {
  const responseFormat = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } };
  const body = await bodyOf(t, { ...hi, tools: [tool], toolChoice: { name: 'ReadFile' }, responseFormat });
  t.strictSame(body.tools, [
    { type: 'function', function: { name: 'ReadFile', description: 'Reads.', parameters: tool.inputSchema } },
  ]);
  t.strictSame(body.tool_choice, { type: 'function', function: { name: 'ReadFile' } });
  t.strictSame(body.response_format, responseFormat);
  for (const toolChoice of ['auto', 'none', 'required'] as const) {
    t.equal((await bodyOf(t, { ...hi, tools: [tool], toolChoice })).tool_choice, toolChoice);
  }
  const none = await bodyOf(t, { ...hi, tools: [], toolChoice: 'auto', sampling: { parallel_tool_calls: false } });
  t.notOk('tools' in none || 'tool_choice' in none || 'parallel_tool_calls' in none, 'upstreams refuse these alone');
});

t.test('sampling is passed on and cannot override other fields', async (t) => {
  const sampling = {
    temperature: 0.2,
    top_p: 0.9,
    stop: ['a', 'b'],
    max_tokens: 10,
    max_completion_tokens: 11,
    seed: 7,
    presence_penalty: 0.1,
    frequency_penalty: -0.1,
    logit_bias: { 50256: -100 },
    reasoning_effort: 'low',
    parallel_tool_calls: false,
    verbosity: 'low',
    user: 'u1',
    top_k: 40,
  };
  const meddling = {
    messages: [],
    model: 'evil',
    stream: false,
    stream_options: {},
    tools: [1],
    n: 5,
    functions: [],
    seed2: null,
  };
  const body = await bodyOf(t, { ...hi, tools: [tool], sampling: { ...sampling, ...meddling } });
  t.strictSame(body, {
    ...sampling,
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    tools: body.tools,
    stream: true,
    stream_options: { include_usage: true },
  });
  t.equal(body.tools.length, 1);
});

t.test('every form of an endpoint leads to the path of chat completions', async (t) => {
  const upstream = await startMockUpstream(t, (asked) => answered(asked, { text: 'x' }));
  const base = upstream.url.replace('/v1', '');
  for (const [endPoint, path] of [
    [base, '/chat/completions'],
    [`${base}/`, '/chat/completions'],
    [`${base}/v1//`, '/v1/chat/completions'],
    [`${base}/v1/chat/completions`, '/v1/chat/completions'],
    [`${base}/openai/deployments/x?api-version=1`, '/openai/deployments/x/chat/completions?api-version=1'],
  ] as const) {
    const provider = openAi(endPoint, { apiKey: '' });
    await collect(provider);
    provider.close();
    t.equal(upstream.requests.at(-1)?.path, path);
    t.notOk(upstream.requests.at(-1)?.headers.authorization, 'no key, no header');
  }
  for (const endPoint of ['', 'ftp://x/', 'localhost:1234', '/v1']) {
    t.throws(() => openAi(endPoint), { name: 'ModelError', code: 'upstreamUnreachable' });
  }
});

t.test('the list of models is read', async (t) => {
  const upstream = await startMockUpstream(t, () => []);
  const provider = openAi(upstream.url);
  t.teardown(() => provider.close());
  t.same(await provider.listModels(new AbortController().signal), [
    { id: 'mock-model', ownedBy: 'mock', createdAt: '2023-11-14T22:13:20.000Z' },
  ]);
  t.equal(upstream.requests[0]?.path, '/v1/models');
});

t.test('an invalid list of models is a typed error; invalid fields are left out', async (t) => {
  const list = async (body: unknown) => {
    const { createServer } = await import('node:http');
    const server = createServer((_, response) => response.end(JSON.stringify(body)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => server.close());
    const provider = openAi(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
    t.teardown(() => provider.close());
    return provider.listModels(new AbortController().signal);
  };
  t.same(await list({ data: [{ id: 'a', owned_by: null, created: 1e300 }, { id: 'b' }] }), [
    { id: 'a', ownedBy: '' },
    { id: 'b', ownedBy: '' },
  ]);
  await t.rejects(list({ models: [] }), { code: 'upstreamProtocol' });
  await t.rejects(list('x'), { code: 'upstreamProtocol' });
});

t.test('after a refusal of stream_options requests omit it', async (t) => {
  const upstream = await startMockUpstream(t, (request) =>
    request.body.stream_options
      ? json(422, { detail: [{ loc: ['body', 'stream_options'], msg: 'Extra inputs are not permitted' }] })
      : answered(request, { text: 'fine' }),
  );
  const provider = openAi(upstream.url);
  t.teardown(() => provider.close());
  for (const _ of [1, 2]) t.match(answerOf(await collect(provider)), { text: 'fine', usage: { isEstimated: true } });
  t.equal(upstream.requests.length, 3);
});

t.test('consecutive requests share one connection', async (t) => {
  const upstream = await startMockUpstream(t, (request) => answered(request, { text: 'words and words' }));
  const provider = openAi(upstream.url);
  for (let round = 0; round < 20; round += 1) {
    await collect(provider, { messages: [user(`round ${round}`)] });
    // The connection is free when the answer's end has been read, which is just behind its last word.
    await upstream.requests.at(-1)?.closed;
    await new Promise(setImmediate);
  }
  t.ok(upstream.connections < 5, `${upstream.connections} connections for 20 requests`);
  provider.close();
  await upstream.untilIdle();
});
