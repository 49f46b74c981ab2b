import t from 'tap';
import type { ModelEvent, ModelMessage, ModelRequest, ModelTool, ModelToolCall } from '../../../src/agent/model.ts';
import { DemoProvider } from '../../../src/agent/providers/demo.ts';
import { answerOf, collect, rejection, user } from './helpers.ts';

const tool = (name: string, ...properties: readonly string[]): ModelTool => ({
  name,
  description: name,
  inputSchema: { type: 'object', properties: Object.fromEntries(properties.map((property) => [property, {}])) },
});

const tools: readonly ModelTool[] = [
  tool('ReadFile', 'path', 'offset', 'limit'),
  tool('WriteFile', 'path', 'content'),
  tool('EditFile', 'path', 'old_string', 'new_string', 'replace_all'),
  tool('GrepFiles', 'pattern', 'path'),
  tool('FindFiles', 'pattern', 'path'),
  tool('Exec', 'command'),
  tool('WebFetch', 'url'),
  tool('WebSearch', 'query'),
  tool('SpawnSubagent', 'task'),
  tool('mcp__files__stat', 'path'),
];

const ask = (words: string, more: Partial<ModelRequest> = {}, paceMs = 0) =>
  collect(new DemoProvider({ paceMs }), { messages: [user(words)], ...more });

interface Round {
  readonly calls: readonly ModelToolCall[];
  readonly thinking: string;
  readonly text: string;
}

/** A whole turn: the calls of every answer are answered by `answerCall` until no call is left. */
async function turn(words: string, answerCall: (call: ModelToolCall) => string, more: Partial<ModelRequest> = {}) {
  const messages: ModelMessage[] = [user(words)];
  const rounds: Round[] = [];
  for (;;) {
    const said = answerOf(await collect(new DemoProvider({ paceMs: 0 }), { messages, tools, ...more }));
    rounds.push(said);
    if (said.calls.length === 0) return { rounds, answer: said.text, calls: rounds.flatMap(({ calls }) => calls) };
    messages.push({ role: 'assistant', text: said.text, toolCalls: said.calls });
    for (const call of said.calls) {
      messages.push({
        role: 'tool',
        callId: call.callId,
        name: call.name,
        content: [{ type: 'text', text: answerCall(call) }],
      });
    }
  }
}

const argumentsOf = (calls: readonly ModelToolCall[]) =>
  calls.map(({ name, arguments: args }) => [name, JSON.parse(args)]);

t.test('every answer names the demo model, streams word by word, and ends with usage and finish', async (t) => {
  for (const words of [
    'hello',
    'help',
    '',
    '   ',
    'echo x',
    'count to 3',
    'what is the meaning of life?',
    '🎼 ünï',
    'x'.repeat(10_000),
  ]) {
    const events = await ask(words);
    const { text, thinking, finish } = answerOf(events);
    t.match(text, /^Demo model \(offline, no AI\): \S/, words.slice(0, 20));
    t.not(thinking, '');
    t.ok(events.filter(({ type }) => type === 'text').length > 5);
    t.match(events.at(-2), { type: 'usage', inputTokens: Number, outputTokens: Number, isEstimated: true });
    t.equal(finish, 'stop');
  }
});

t.test('a conversation follows the documented rules', async (t) => {
  const answer = async (words: string) => answerOf(await ask(words)).text;
  t.match(await answer('Hello there'), /Hello! I can/);
  t.match(await answer('what can you do?'), /oratorio login.*oratorio model/);
  t.equal(await answer('echo  two\n lines '), 'Demo model (offline, no AI): two\n lines');
  t.equal(await answer('echo read a.txt then run: ls'), 'Demo model (offline, no AI): read a.txt then run: ls');
  t.equal(await answer('please count to 5'), 'Demo model (offline, no AI): 1 2 3 4 5');
  t.match(await answer('count to 0'), /nothing to count/);
  t.match(await answer('count to 999999999999'), / 1000 … and so on; I stop at 1000\.$/);
  t.match(await answer('Why is the sky blue?'), /You said: Why is the sky blue\?\n\nI do not understand that/);
  t.match(await answer('Why is the sky blue?'), /read FILE/, 'it shows what it would understand');
});

t.test('the same request gets the same answer', async (t) => {
  t.same(await ask('read a.txt', { tools }), await ask('read a.txt', { tools }));
});

t.test('an abort ends the answer', async (t) => {
  const abort = new AbortController();
  const reason = new Error('enough');
  let heard = 0;
  const emit = ({ type }: ModelEvent) => {
    heard += type === 'text' ? 1 : 0;
    if (heard === 5) abort.abort(reason);
  };
  const stream = new DemoProvider({ paceMs: 1 }).stream({ messages: [user('count to 1000')] }, emit, abort.signal);
  t.ok(await rejection(stream));
  t.equal(heard, 5);
});

t.test('the list of models has the demo model; closing has no effect', async (t) => {
  const provider = new DemoProvider();
  t.same(await provider.listModels(), [{ id: 'demo', ownedBy: 'oratorio' }]);
  provider.close();
});

t.test('every form of a request becomes a call of a tool', async (t) => {
  const cases: readonly (readonly [string, string, object])[] = [
    ['read notes.txt', 'ReadFile', { path: 'notes.txt' }],
    ['Please read the file "my notes.txt".', 'ReadFile', { path: 'my notes.txt' }],
    ['read src/a.ts.', 'ReadFile', { path: 'src/a.ts' }],
    ['read a.ts lines 3-7', 'ReadFile', { path: 'a.ts', offset: 3, limit: 5 }],
    ['cat a.ts line 9', 'ReadFile', { path: 'a.ts', offset: 9, limit: 1 }],
    ['list', 'ReadFile', { path: '.' }],
    ['list .', 'ReadFile', { path: '.' }],
    ['list the files in src', 'ReadFile', { path: 'src' }],
    ['ls src/agent', 'ReadFile', { path: 'src/agent' }],
    ['find "**/*.ts"', 'FindFiles', { pattern: '**/*.ts' }],
    ['find *.md in docs', 'FindFiles', { pattern: '*.md', path: 'docs' }],
    ['grep "to do" in src', 'GrepFiles', { pattern: 'to do', path: 'src' }],
    ['grep `a\\d+`', 'GrepFiles', { pattern: 'a\\d+' }],
    ['search for TODO in a.txt', 'GrepFiles', { pattern: 'TODO', path: 'a.txt' }],
    ['write a.txt: first this then that', 'WriteFile', { path: 'a.txt', content: 'first this then that\n' }],
    ['write "a\\tb" to a.txt', 'WriteFile', { path: 'a.txt', content: 'a\tb' }],
    ['create a.js:\n```js\nlet a;\n\nthen();\n```', 'WriteFile', { path: 'a.js', content: 'let a;\n\nthen();\n' }],
    ['write the file a.js ```\nx\n```', 'WriteFile', { path: 'a.js', content: 'x\n' }],
    ['write a.txt:\n```\n```', 'WriteFile', { path: 'a.txt', content: '' }],
    ['append to a.txt: more', 'Exec', { command: "printf '%s' 'more\n' >> 'a.txt'" }],
    ['append "it\'s" to a.txt', 'Exec', { command: "printf '%s' 'it'\\''s' >> 'a.txt'" }],
    ['replace "a" with "b" in a.txt', 'EditFile', { path: 'a.txt', old_string: 'a', new_string: 'b' }],
    [
      'replace all `a` with "" in a.txt',
      'EditFile',
      { path: 'a.txt', old_string: 'a', new_string: '', replace_all: true },
    ],
    ['run: ls -l; find . then go', 'Exec', { command: 'ls -l; find . then go' }],
    ['run: if a; then cat b; fi', 'Exec', { command: 'if a; then cat b; fi' }],
    ['run `a then read b`.', 'Exec', { command: 'a then read b' }],
    ['run `a; b`', 'Exec', { command: 'a; b' }],
    ['run:\n```sh\na\nb\n```', 'Exec', { command: 'a\nb' }],
    ['fetch https://example.com/a?b=c', 'WebFetch', { url: 'https://example.com/a?b=c' }],
    ['search the web for cats and dogs', 'WebSearch', { query: 'cats and dogs' }],
    ['delegate: read a.txt', 'SpawnSubagent', { task: 'read a.txt' }],
    ['delegate "read a.txt then list src"', 'SpawnSubagent', { task: 'read a.txt then list src' }],
    [
      'call mcp__files__stat {"path": "a; then read b", "n": {"m": 1}}',
      'mcp__files__stat',
      { path: 'a; then read b', n: { m: 1 } },
    ],
    ['call the tool MCP__files__stat with {\n  "path": "a"\n}', 'mcp__files__stat', { path: 'a' }],
    ['call mcp__files__stat', 'mcp__files__stat', {}],
  ];
  for (const [words, name, args] of cases) {
    const events = await ask(words, { tools });
    const { calls, finish, text } = answerOf(events);
    t.strictSame(argumentsOf(calls), [[name, args]], words);
    t.equal(finish, 'toolCalls');
    t.equal(text, '');
    const written = events.flatMap((event) => (event.type === 'toolCallDelta' ? [event.argumentsDelta] : []));
    t.equal(written.join(''), calls[0]?.arguments, 'the pieces are the whole');
  }
});

t.test('text that only resembles a step calls no tool', async (t) => {
  for (const words of [
    'read a book about cats',
    'write a story: about cats',
    'write me a poem',
    'running',
    'fetch the ball',
    'replace a with b',
  ]) {
    const { calls, text } = answerOf(await ask(words, { tools }));
    t.same(calls, [], words);
    t.match(text, /I do not understand/);
  }
});

t.test('every notation of a list is read as steps', async (t) => {
  const expected = [
    ['WriteFile', { path: 'a.txt', content: 'x\n' }],
    ['ReadFile', { path: 'a.txt' }],
    ['Exec', { command: 'cat a.txt' }],
  ];
  for (const words of [
    'write a.txt: x\nread a.txt\nrun: cat a.txt',
    'write a.txt: x\r\nread a.txt\r\nrun: cat a.txt',
    'write a.txt: x then read a.txt, and then run: cat a.txt',
    'Please write a.txt: x. Then read a.txt. Then run `cat a.txt`.',
    '1. write a.txt: x\n2) read a.txt\n- run: cat a.txt',
    '1. write a.txt: x 2. read a.txt 3. run: cat a.txt',
    'write a.txt:\n```\nx\n```\nthen read a.txt\n\nfinally, run: cat a.txt',
    'Hello! Could you write a.txt: x\nNow read a.txt\nrun: cat a.txt',
  ]) {
    const { calls } = await turn(words, () => 'ok');
    t.strictSame(argumentsOf(calls), expected, words);
  }
});

t.test('steps run in order, reading steps in parallel; the report is made from the results', async (t) => {
  const { rounds, answer, calls } = await turn(
    [
      'think about the task',
      'read a.txt',
      'grep "x" in .',
      'say now I write',
      'write b.txt: hi',
      'run: node b.js',
      'say all done',
    ].join('\n'),
    ({ name }) =>
      ({ ReadFile: 'one\ntwo\nthree', GrepFiles: '', WriteFile: 'Wrote b.txt (3 bytes).', Exec: 'hi' })[name] ?? '',
  );
  t.same(
    rounds.map((round) => round.calls.map(({ name }) => name)),
    [['ReadFile', 'GrepFiles'], ['WriteFile'], ['Exec'], []],
  );
  t.match(rounds[0]?.thinking, /^Demo model .*\nthe task\nStep 2 of 7: read a\.txt\.\nStep 3 of 7: grep "x" in \.\./);
  t.match(rounds[1]?.text, /^Demo model \(offline, no AI\): now I write/);
  t.equal(new Set(calls.map(({ callId }) => callId)).size, 4);
  t.equal(
    answer,
    [
      'Demo model (offline, no AI): 4 of 4 steps done.',
      '2. read a.txt: done by ReadFile, 3 lines:\n    one\n    two\n    three',
      '3. grep "x" in .: done by GrepFiles, 0 lines:',
      '5. write b.txt: hi: done by WriteFile, 1 line:\n    Wrote b.txt (3 bytes).',
      '6. run: node b.js: done by Exec, 1 line:\n    hi',
      'all done',
    ].join('\n\n'),
  );
});

t.test('a long result is shortened in the report', async (t) => {
  const { answer } = await turn('read a.txt', () => `${'x'.repeat(1000)}\n`.repeat(30));
  t.match(answer, /30 lines:\n/);
  t.match(answer, /\n {4}… 20 more$/);
  t.ok(answer.length < 3000);
});

t.test('a failed step ends the plan and is named in the report', async (t) => {
  for (const result of [
    'Error: rejected by policy: …',
    'some output\n\nExit code 3.',
    '(no output)\n\nThe command was ended by SIGKILL.',
  ]) {
    const { answer, calls } = await turn('run: x then write a.txt: y then say fine', () => result);
    t.equal(calls.length, 1, result);
    t.match(answer, /^Demo model \(offline, no AI\): 0 of 2 steps done/);
    t.match(answer, /1\. run: x: failed by Exec/);
    t.match(answer, /2\. write a\.txt: y: not done, because a step before it failed\./);
    t.notMatch(answer, /fine/);
  }
});

t.test('error words inside a file or a page do not end the plan', async (t) => {
  const { calls } = await turn('read a.sh then fetch http://x/ then run: y', () => 'Errors:\n\nExit code 1');
  t.equal(calls.length, 3);
});

t.test('a step for a tool that is not offered is reported, not called', async (t) => {
  for (const more of [
    { tools: undefined },
    { tools: [] },
    { tools: [tool('Other')] },
    { toolChoice: 'none' },
  ] as const) {
    const { calls, answer } = await turn('read a.txt', () => '', more as Partial<ModelRequest>);
    t.same(calls, []);
    t.match(answer, /1\. read a\.txt: not done, the tool ReadFile is not offered to me here\./);
  }
  const { calls, answer } = await turn('fetch http://x/ then read a.txt', () => 'ok', {
    tools: [tool('ReadFile', 'path')],
  });
  t.equal(calls.length, 1, 'the others are done');
  t.match(answer, /1 of 2 steps done/);
});

t.test('arguments are named as the offered tool declares them', async (t) => {
  const other = [tool('EditFile', 'file_path', 'oldText', 'newText'), tool('SpawnSubagent', 'prompt')];
  const { calls } = await turn('replace "a" with "b" in c then delegate: d', () => 'ok', { tools: other });
  t.strictSame(argumentsOf(calls), [
    ['EditFile', { file_path: 'c', oldText: 'a', newText: 'b' }],
    ['SpawnSubagent', { prompt: 'd' }],
  ]);
});

t.test('lines that are not steps are listed in the answer', async (t) => {
  const { answer } = await turn('Do this for me:\nread a.txt\nand be quick', () => 'ok');
  t.match(answer, /I left out the parts that I do not understand: “Do this for me:”, “be quick”\.$/);
});

t.test('only the last user message is read; earlier results are ignored', async (t) => {
  const first = answerOf(await ask('read a.txt', { tools })).calls;
  const messages: ModelMessage[] = [
    user('read a.txt'),
    { role: 'assistant', text: '', toolCalls: first },
    { role: 'tool', callId: first[0]?.callId ?? '', name: 'ReadFile', content: [{ type: 'text', text: 'old' }] },
    { role: 'assistant', text: 'done', toolCalls: [] },
    user('read b.txt'),
  ];
  const { calls } = answerOf(await collect(new DemoProvider({ paceMs: 0 }), { messages, tools }));
  t.strictSame(argumentsOf(calls), [['ReadFile', { path: 'b.txt' }]]);
  t.not(calls[0]?.callId, first[0]?.callId);
});

t.test('a missing result is reported as missing', async (t) => {
  const { calls } = answerOf(await ask('read a.txt', { tools }));
  const messages: ModelMessage[] = [user('read a.txt'), { role: 'assistant', text: '', toolCalls: calls }];
  const { text } = answerOf(await collect(new DemoProvider({ paceMs: 0 }), { messages, tools }));
  t.match(text, /0 of 1 step done\.\n\n1\. read a\.txt: ReadFile was called, but no result came back\./);
});

t.test('an image is answered with a note that it cannot be read', async (t) => {
  const image = { type: 'image', url: 'data:image/png;base64,AAAA' } as const;
  const content = [{ type: 'text', text: 'hello' } as const, image];
  const see = async (parts: typeof content) =>
    answerOf(await collect(new DemoProvider({ paceMs: 0 }), { messages: [{ role: 'user', content: parts }] })).text;
  t.match(await see(content), /There is a picture in the message; I cannot see pictures\.$/);
  t.match(await see([...content, image]), /There are 2 pictures/);
});

t.test('a request for JSON gets an object', async (t) => {
  const responseFormat = { type: 'json_object' };
  t.match(JSON.parse(answerOf(await ask('hello', { responseFormat })).text), { model: 'demo', answer: /^Demo model/ });
  const { answer } = await turn('read a.txt', () => 'one', { responseFormat });
  t.match(JSON.parse(answer), { steps: [{ step: 'read a.txt', tool: 'ReadFile', result: 'one' }] });
});

t.test('a request for JSON of a schema gets an instance of it', async (t) => {
  const answer = async (schema: unknown) =>
    JSON.parse(
      answerOf(await ask('hello', { responseFormat: { type: 'json_schema', json_schema: { name: 'x', schema } } }))
        .text,
    );
  const label = /^Demo model/;
  t.match(await answer({ type: 'string' }), label);
  t.match(await answer(undefined), { answer: label });
  t.strictSame(
    await answer({
      type: 'object',
      properties: {
        count: { type: 'integer', minimum: 3 },
        small: { type: 'number', maximum: -1 },
        more: { type: 'number', exclusiveMinimum: 0 },
        kind: { enum: ['b', 'a'] },
        fixed: { const: 7 },
        on: { type: 'boolean' },
        nothing: { type: 'null' },
        list: { type: 'array', items: { $ref: '#/$defs/item' }, minItems: 2 },
        empty: { type: 'array' },
        maybe: { anyOf: [{ type: 'null' }, { type: 'boolean' }] },
        both: { allOf: [{ properties: { a: { type: 'boolean' } } }, { type: 'object' }] },
        either: { type: ['null', 'integer'] },
        given: { default: 'd' },
        day: { type: 'string', format: 'date' },
        short: { type: 'string', maxLength: 4 },
        open: { type: 'object' },
        left: { type: 'boolean' },
      },
      required: [
        'count',
        'small',
        'more',
        'kind',
        'fixed',
        'on',
        'nothing',
        'list',
        'empty',
        'maybe',
        'both',
        'either',
        'given',
        'day',
        'short',
        'open',
        'gone',
      ],
      $defs: { item: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] } },
    }),
    {
      count: 3,
      small: -1,
      more: 1,
      kind: 'b',
      fixed: 7,
      on: false,
      nothing: null,
      list: [{ ok: false }, { ok: false }],
      empty: [],
      maybe: false,
      both: { a: false },
      either: 0,
      given: 'd',
      day: '1970-01-01',
      short: 'Demo',
      open: {},
    },
  );
  const endless = { $ref: '#/$defs/n', $defs: { n: { type: 'array', minItems: 9, items: { $ref: '#/$defs/n' } } } };
  t.ok(Array.isArray(await answer(endless)), 'a schema without an end has one here');
});

t.test('a forced tool choice yields one call, then an answer', async (t) => {
  const weather = {
    name: 'get_weather',
    description: 'x',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  };
  for (const toolChoice of ['required', { name: 'get_weather' }] as const) {
    const { calls, answer } = await turn('Berlin?', () => 'sunny', { tools: [weather], toolChoice });
    t.strictSame(argumentsOf(calls), [['get_weather', { city: 'Berlin?' }]]);
    t.match(answer, /done by get_weather, 1 line:\n {4}sunny/);
  }
  const missing = await turn('Berlin?', () => '', { tools: [weather], toolChoice: { name: 'other' } });
  t.same(missing.calls, []);
});

t.test('invalid JSON arguments are passed on unchanged', async (t) => {
  const { calls } = answerOf(await ask('call mcp__files__stat {"path"', { tools }));
  t.equal(calls[0]?.arguments, '{"path"');
});

t.test('unusual and huge messages are answered quickly', async (t) => {
  for (const words of [
    '"'.repeat(50_000),
    '`'.repeat(50_000),
    '```'.repeat(20_000),
    '{'.repeat(50_000),
    'call x {'.repeat(5_000),
    ' then '.repeat(10_000),
    'read a then '.repeat(2_000),
    '1. '.repeat(20_000),
    'write '.repeat(10_000),
    ' '.repeat(100_000),
    'x'.repeat(2_000_000),
  ]) {
    const { finish } = answerOf(await ask(words, { tools }));
    t.match(finish, /stop|toolCalls/, words.slice(0, 10));
  }
});
