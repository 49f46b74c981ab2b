/** Requests of all kinds: accepted ones, refused ones and their errors. */
import fc from 'fast-check';
import t from 'tap';
import { planOf } from '../../src/chat/plan.ts';
import { parseRequest } from '../../src/chat/request.ts';
import { HttpError } from '../../src/http/index.ts';
import { always, say } from '../agent/scripted-provider.ts';
import { anyCharacter } from '../any-character.ts';
import { chat, user } from './harness.ts';

const ok = { messages: [user('hi')] };
const plan = (body: unknown) => planOf(parseRequest(body), { header: undefined, fromUser: false });

function refusal(body: unknown): { status: number; code: string; param: unknown } {
  try {
    plan(body);
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    const { chat } = error.details as { chat: { param: unknown } };
    return { status: error.status, code: error.code, param: chat.param };
  }
  throw new Error(`accepted: ${JSON.stringify(body)}`);
}

t.test('missing, null and unknown fields are accepted', (t) => {
  const optional = [
    'model stream stream_options tools tool_choice response_format user metadata x_agent n logprobs audio modalities',
    'functions temperature top_p max_tokens max_completion_tokens stop seed logit_bias parallel_tool_calls store',
    'presence_penalty frequency_penalty reasoning_effort verbosity service_tier prediction top_logprobs',
  ].flatMap((line) => line.split(' '));
  t.ok(plan({ ...ok, ...Object.fromEntries(optional.map((name) => [name, null])) }));
  t.ok(
    plan({ ...ok, n: 1, modalities: ['text'], functions: [], logprobs: false, store: true, unheard_of: { a: [1] } }),
  );
  t.ok(plan({ ...ok, stream: false, stream_options: { include_usage: true, include_obfuscation: false } }));
  t.ok(plan({ ...ok, response_format: { type: 'text' }, stop: 'x', max_tokens: 5 }));
  t.end();
});

t.test('content is accepted in every form', (t) => {
  const image = 'data:image/png;base64,iVBORw0KGgo=';
  const cases: [unknown, unknown][] = [
    ['text', [{ type: 'text', text: 'text' }]],
    [null, [{ type: 'text', text: '' }]],
    [undefined, [{ type: 'text', text: '' }]],
    [[], [{ type: 'text', text: '' }]],
    [
      [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b', cache_control: {} },
      ],
      [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    ],
    [['a'], [{ type: 'text', text: 'a' }]],
    [[{ type: 'image_url', image_url: { url: image, detail: 'low' } }], [{ type: 'image', url: image }]],
    [
      [{ type: 'image_url', image_url: 'https://example.org/a.png' }],
      [{ type: 'image', url: 'https://example.org/a.png' }],
    ],
  ];
  for (const [content, input] of cases) t.strictSame(plan({ messages: [user(content)] }).conversation.input, input);
  t.end();
});

t.test('every role is translated', (t) => {
  const { conversation } = plan({
    messages: [
      { role: 'developer', content: 'be brief' },
      {
        role: 'system',
        content: [
          { type: 'text', text: 'and' },
          { type: 'text', text: 'kind' },
        ],
      },
      { role: 'user', content: 'a' },
      { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: { x: 1 } } }] },
      { role: 'tool', tool_call_id: 'c', content: 'r' },
      {
        role: 'assistant',
        content: [
          { type: 'refusal', refusal: 'no' },
          { type: 'thinking', thinking: 'hm' },
        ],
      },
      { role: 'assistant', content: null, function_call: { name: 'g', arguments: '{}' } },
      { role: 'function', name: 'g', content: 's' },
      { role: 'user', content: 'b' },
    ],
  });
  t.strictSame(conversation.instructions, ['be brief', 'and\nkind']);
  t.match(conversation.history, [
    { role: 'user' },
    { role: 'assistant', text: '', toolCalls: [{ callId: 'c', name: 'f', arguments: '{"x":1}' }] },
    { role: 'tool', callId: 'c', name: 'f', content: [{ text: 'r' }] },
    { role: 'assistant', text: 'no' },
    { role: 'assistant', text: '', toolCalls: [{ callId: 'function:g', name: 'g', arguments: '{}' }] },
  ]);
  t.match(conversation.toolAnswers, [{ callId: 'function:g', text: 's', isError: false }]);
  t.strictSame(conversation.input, [{ type: 'text', text: 'b' }]);
  t.end();
});

t.test('of a request with system messages only the last is the input', (t) => {
  const { conversation } = plan({
    messages: [
      { role: 'system', content: 'x' },
      { role: 'system', content: 'a title?' },
    ],
  });
  t.strictSame(conversation.instructions, ['x']);
  t.strictSame(conversation.input, [{ type: 'text', text: 'a title?' }]);
  t.end();
});

t.test('a refusal names the field', (t) => {
  const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) });
  const withTool = (parameters: unknown) => ({
    ...ok,
    tools: [{ type: 'function', function: { name: 'f', parameters } }],
  });
  const cases: [unknown, string, string | null][] = [
    [{}, 'missing_required_parameter', 'messages'],
    [{ messages: [] }, 'invalid_parameter', 'messages'],
    [{ messages: [{}] }, 'missing_required_parameter', 'messages[0].role'],
    [{ messages: [user('a'), { role: 'robot' }] }, 'invalid_parameter', 'messages[1].role'],
    [{ messages: [user(5)] }, 'invalid_parameter', 'messages[0].content'],
    [{ messages: [user([{ type: 'text' }])] }, 'missing_required_parameter', 'messages[0].content[0].text'],
    [{ messages: [user([{ text: 'a' }])] }, 'missing_required_parameter', 'messages[0].content[0].type'],
    [{ messages: [user([{ type: 'file', file: {} }])] }, 'unsupported_content_type', 'messages[0].content[0].type'],
    [{ messages: [user([{ type: 'input_audio' }])] }, 'unsupported_content_type', 'messages[0].content[0].type'],
    [
      { messages: [{ role: 'system', content: [{ type: 'image_url', image_url: 'https://a.b/c' }] }] },
      'unsupported_content_type',
      'messages[0].content[0].type',
    ],
    ...['http://a.b/c.png', 'file:///etc/passwd', 'data:text/html;base64,aa', '/etc/passwd'].map(
      (url): [unknown, string, string] => [
        { messages: [user([{ type: 'image_url', image_url: { url } }])] },
        'invalid_parameter',
        'messages[0].content[0].image_url.url',
      ],
    ),
    [{ messages: [user('a'), { role: 'assistant', content: 'b' }] }, 'invalid_parameter', 'messages[1].role'],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'missing_required_parameter', 'messages[0].tool_call_id'],
    [{ ...ok, n: 2 }, 'unsupported_parameter', 'n'],
    [{ ...ok, n: 0 }, 'invalid_parameter', 'n'],
    [{ ...ok, audio: { voice: 'x' } }, 'unsupported_parameter', 'audio'],
    [{ ...ok, modalities: ['text', 'audio'] }, 'unsupported_parameter', 'modalities'],
    [{ ...ok, logprobs: true }, 'unsupported_parameter', 'logprobs'],
    [{ ...ok, functions: [{ name: 'f' }] }, 'unsupported_parameter', 'functions'],
    [{ ...ok, temperature: 'hot' }, 'invalid_parameter', 'temperature'],
    [JSON.parse('{"messages":[{"role":"user"}],"temperature":1e999}'), 'invalid_parameter', 'temperature'],
    [{ ...ok, max_tokens: 0 }, 'invalid_parameter', 'max_tokens'],
    [{ ...ok, stop: ['1', '2', '3', '4', '5'] }, 'invalid_parameter', 'stop'],
    [{ ...ok, stream: 'yes' }, 'invalid_parameter', 'stream'],
    [{ ...ok, tools: [{ type: 'web_search' }] }, 'invalid_parameter', 'tools[0].type'],
    [withTool('string'), 'invalid_parameter', 'tools[0].function.parameters'],
    [withTool(deep(201)), 'invalid_parameter', 'tools[0].function.parameters'],
    [{ ...ok, tool_choice: 'sometimes' }, 'invalid_parameter', 'tool_choice'],
    [{ ...ok, response_format: { type: 'yaml' } }, 'invalid_parameter', 'response_format.type'],
    [
      { ...ok, response_format: { type: 'json_schema', json_schema: {} } },
      'invalid_parameter',
      'response_format.json_schema',
    ],
    [{ ...ok, messages: Array.from({ length: 10_001 }, () => user('a')) }, 'invalid_parameter', 'messages'],
    ['text', 'invalid_parameter', null],
  ];
  for (const [body, code, param] of cases) {
    t.strictSame(refusal(body), { status: 400, code, param }, `${code} ${param}`);
  }
  t.ok(plan(withTool(deep(199))));
  t.end();
});

t.test('an error message names the field and its accepted values', (t) => {
  const withCall = (call: unknown) => ({ messages: [{ role: 'assistant', tool_calls: [call] }] });
  const cases: [unknown, string][] = [
    [{ messages: 5 }, 'messages must be a list of messages.'],
    [{ messages: [user([5])] }, 'messages[0].content[0] must be an object with a type.'],
    [
      { messages: [user([{ type: 'image_url', image_url: 5 }])] },
      'messages[0].content[0].image_url must be an object.',
    ],
    [withCall(5), 'messages[0].tool_calls[0] must be an object.'],
    [
      withCall({ id: 'c', function: 5 }),
      'messages[0].tool_calls[0].function must be an object: only calls of functions are supported.',
    ],
    [{ messages: [{ role: 'assistant', function_call: 5 }] }, 'messages[0].function_call must be an object.'],
    [{ ...ok, tools: [5] }, 'tools[0] must be an object.'],
    [{ ...ok, tools: [{ type: 'function', function: 5 }] }, 'tools[0].function must be an object.'],
    [{ ...ok, tool_choice: { type: 'function', function: 5 } }, 'tool_choice.function must be an object.'],
    [{ ...ok, stream_options: 5 }, 'stream_options must be an object.'],
    [{ ...ok, stop: [5] }, 'stop must be a string, or a list of at most 4 strings.'],
    [{ ...ok, x_agent: 5 }, 'x_agent must be an object.'],
    [{ ...ok, x_agent: { serverTools: 5 } }, 'x_agent.serverTools must be true or false.'],
  ];
  for (const [body, message] of cases) t.throws(() => parseRequest(body), { message });
  t.end();
});

/** JSON that resembles a request in some places and not at all in others. */
const names = [
  'role',
  'content',
  'type',
  'text',
  'image_url',
  'url',
  'tool_calls',
  'function',
  'name',
  'arguments',
  'id',
];
const words = fc.constantFrom<unknown>(
  'user',
  'assistant',
  'system',
  'tool',
  'text',
  'image_url',
  'function',
  'auto',
  'none',
  '',
  'https://a.b/c.png',
  null,
  0,
  1,
  true,
);
const { thing } = fc.letrec<{ thing: unknown }>((tie) => ({
  thing: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    words,
    fc.jsonValue(),
    fc.array(tie('thing'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...names), tie('thing'), { maxKeys: 5 }),
  ),
}));
const message = fc.oneof(
  fc.record(
    { role: fc.constantFrom('user', 'assistant', 'system', 'tool', 'function'), content: thing },
    { requiredKeys: [] },
  ),
  thing,
);
const request = fc.oneof(
  fc.jsonValue(),
  fc.record(
    {
      messages: fc.oneof(fc.array(message, { maxLength: 4 }), thing),
      stream: fc.oneof(fc.boolean(), thing),
      tools: fc.oneof(fc.array(thing, { maxLength: 2 }), thing),
      tool_choice: thing,
      response_format: thing,
      stop: thing,
      user: fc.oneof(fc.string({ unit: anyCharacter }), thing),
      metadata: thing,
      x_agent: thing,
      n: thing,
      temperature: thing,
      model: thing,
    },
    { requiredKeys: ['messages'] },
  ),
);

t.test('any JSON yields a plan or a refusal that names its field', (t) => {
  fc.assert(
    fc.property(request, (body) => {
      try {
        plan(body);
      } catch (error) {
        if (!(error instanceof HttpError) || error.status !== 400) throw error;
      }
    }),
    { numRuns: 3_000 },
  );
  t.pass();
  t.end();
});

t.test('any body yields an answer or an error of the table, and the server continues', async (t) => {
  const { post, bugs, log } = await chat(t, always(say('ok')), { api: { DisconnectGraceMs: 0 } });
  await fc.assert(
    fc.asyncProperty(request, async (body) => {
      const answer = await post(body);
      const text = await answer.text();
      if (answer.status === 200) return;
      const { error } = JSON.parse(text);
      if (answer.status !== 400) throw new Error(`${answer.status} ${text}`);
      const keys = Object.keys(error).toSorted().join();
      if (keys !== 'code,message,param,type') throw new Error(`not an error body: ${text}`);
    }),
    { numRuns: 200 },
  );
  t.equal((await post(ok)).status, 200);
  t.strictSame(bugs, []);
  t.notOk(log.some((line) => /"level":"error"/.test(line)));
});
