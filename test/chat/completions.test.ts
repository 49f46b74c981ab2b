import OpenAI from 'openai';
import t from 'tap';
import { tool } from '../agent/helpers.ts';
import { callTool, fail, finish, gate, say, script, think, usage } from '../agent/scripted-provider.ts';
import { chat, chunksOf, contentOf, framesOf, reading, reasoningOf, user } from './harness.ts';

t.test('a whole answer has every field of the interface', async (t) => {
  const provider = script([think('hm'), say('Hello '), say('there'), usage(3, 2)]);
  const { ask, bugs } = await chat(t, provider);
  const { status, headers, body } = await ask('hi');
  t.equal(status, 200);
  t.match(headers.get('content-type'), /^application\/json/);
  t.match(body.id, /^chatcmpl-[0-9a-f]{32}$/);
  t.ok(Number.isInteger(body.created));
  t.strictSame(
    { ...body, id: '', created: 0 },
    {
      id: '',
      object: 'chat.completion',
      created: 0,
      model: 'scripted',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello there', refusal: null, reasoning_content: 'hm' },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      x_agent: { sessionId: null, toolCalls: 0, steps: [] },
    },
  );
  t.strictSame(bugs, []);
});

t.test('a streamed answer has the role, its pieces, the finish reason and [DONE]', async (t) => {
  const { post } = await chat(t, script([think('hm'), say('Hello '), say('"thére"\n'), usage(3, 2)]));
  const answer = await post({ messages: [user('hi')], stream: true });
  t.equal(answer.status, 200);
  t.equal(answer.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  t.equal(answer.headers.get('cache-control'), 'no-cache');
  t.equal(answer.headers.get('x-accel-buffering'), 'no');
  t.equal(answer.headers.get('access-control-allow-origin'), null);
  const text = await answer.text();
  t.notMatch(text, /^(id|event|:)/m);
  const chunks = chunksOf(text);
  const [first] = chunks;
  for (const chunk of chunks) {
    t.strictSame(Object.keys(chunk).slice(0, 5), ['id', 'object', 'created', 'model', 'choices']);
    t.match(chunk, { id: first.id, created: first.created, object: 'chat.completion.chunk', model: 'scripted' });
    t.equal(chunk.choices.length, 1);
    t.equal(chunk.choices[0].index, 0);
    t.notOk('usage' in chunk);
  }
  t.strictSame(first.choices[0], { index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null });
  t.equal(contentOf(chunks), 'Hello "thére"\n');
  t.equal(reasoningOf(chunks), 'hm');
  t.strictSame(chunks.at(-1).choices[0], { index: 0, delta: {}, finish_reason: 'stop' });
  t.equal(chunks.filter(({ choices }) => choices[0].finish_reason !== null).length, 1);
});

t.test('requested usage is a chunk without choices before [DONE]', async (t) => {
  const { post } = await chat(t, script([say('a'), usage(7, 1)]));
  const answer = await post({ messages: [user('hi')], stream: true, stream_options: { include_usage: true } });
  const chunks = chunksOf(await answer.text());
  t.match(chunks.at(-1), { choices: [], usage: { prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 } });
  t.equal(chunks.filter((chunk) => 'usage' in chunk).length, 1);
});

t.test('the finish reason of the model is reported', async (t) => {
  for (const [reason, written] of [
    ['length', 'length'],
    ['contentFilter', 'content_filter'],
  ] as const) {
    const { ask } = await chat(t, script([say('a'), finish(reason)]));
    t.equal((await ask('hi')).body.choices[0].finish_reason, written);
  }
});

const look = tool({ name: 'Look', isReadOnly: true, run: () => ({ text: 'a cat', isError: false }) });

t.test('activity of server tools is part of a whole answer', async (t) => {
  const provider = script([say('Let me see.'), callTool('Look', { at: 'x' })], [say('It is a cat.')]);
  const { ask } = await chat(t, provider, { runtime: { tools: () => [look] } });
  const { body } = await ask('what is it?');
  const { message, finish_reason } = body.choices[0];
  t.equal(message.content, 'Let me see.\n\nIt is a cat.');
  t.notOk('tool_calls' in message);
  t.equal(finish_reason, 'stop');
  t.match(body.x_agent, {
    toolCalls: 1,
    steps: [{ tool: 'Look', arguments: '{"at":"x"}', outcome: 'completed', outputPreview: 'a cat' }],
  });
  t.match(message.reasoning_content, /^\[Look\] \{"at":"x"\}\n\[Look\] done \(\d+ ms\)\n$/);
});

t.test('activity of server tools is streamed', async (t) => {
  const provider = () => script([say('Let me see.'), callTool('Look', { at: 'x' })], [say('It is a cat.')]);
  const { post } = await chat(t, provider(), { runtime: { tools: () => [look] } });
  const chunks = chunksOf(await (await post({ messages: [user('?')], stream: true })).text());
  t.equal(contentOf(chunks), 'Let me see.\n\nIt is a cat.');
  const events = chunks.filter((chunk) => 'x_agent' in chunk);
  t.match(
    events.map(({ x_agent }) => x_agent),
    [
      { event: 'tool.started', tool: 'Look', arguments: '{"at":"x"}' },
      { event: 'tool.completed', tool: 'Look', outputPreview: 'a cat', durationMs: Number },
    ],
  );
  t.equal(events[0].x_agent.callId, events[1].x_agent.callId);
  for (const { choices } of chunks) t.notOk(choices[0].delta.tool_calls);
  t.match(reasoningOf(chunks), /^\[Look\] \{"at":"x"\}\n\[Look\] done/);
  const quiet = await chat(t, provider(), { runtime: { tools: () => [look] }, api: { ShowToolActivity: false } });
  const silent = chunksOf(await (await quiet.post({ messages: [user('?')], stream: true })).text());
  t.equal(reasoningOf(silent), '');
  t.strictSame(
    silent.filter((chunk) => 'x_agent' in chunk).map(({ choices }) => choices[0].delta),
    [{}, {}],
  );
});

t.test('a request overrides whether activity is shown', async (t) => {
  const { ask } = await chat(
    t,
    script(callTool('Look'), say('a'), callTool('Look'), say('b'), callTool('Look'), say('c')),
    { runtime: { tools: () => [look] } },
  );
  t.notOk((await ask('?', { x_agent: { showToolActivity: false } })).body.choices[0].message.reasoning_content);
  t.notOk((await ask('?', { metadata: { show_tool_activity: 'false' } })).body.choices[0].message.reasoning_content);
  t.ok((await ask('?')).body.choices[0].message.reasoning_content);
});

t.test('an answer with a response format is the last message only, whole or streamed', async (t) => {
  const provider = script(
    [say('First a look.'), callTool('Look')],
    [say('{"is":'), say('"cat"}')],
    [say('First a look.'), callTool('Look')],
    [say('{"is":'), say('"cat"}')],
  );
  const { ask, post } = await chat(t, provider, { runtime: { tools: () => [look] } });
  const form = { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } } };
  const { body } = await ask('?', form);
  t.strictSame(JSON.parse(body.choices[0].message.content), { is: 'cat' });
  t.match(body.choices[0].message.reasoning_content, /First a look\./);
  t.strictSame(provider.requests[0]?.responseFormat, form.response_format);
  const chunks = chunksOf(await (await post({ messages: [user('?')], stream: true, ...form })).text());
  t.strictSame(JSON.parse(contentOf(chunks)), { is: 'cat' });
});

t.test('without server tools an answer with a response format streams at once', async (t) => {
  const held = gate();
  const { post } = await chat(t, script([say('{"is":'), held, say('"cat"}')]));
  const answer = await post({
    messages: [user('?')],
    stream: true,
    tools: [],
    response_format: { type: 'json_object' },
  });
  const body = reading(answer);
  await body.until((text) => text.includes('is'));
  held.open();
  const text = await body.rest();
  t.equal(contentOf(chunksOf(text)), '{"is":"cat"}');
});

t.test('an error before the first byte has its own status', async (t) => {
  const cases = [
    ['upstreamUnauthorized', 502, 'upstream_error', 'upstream_auth', 'false'],
    ['upstreamRateLimited', 429, 'rate_limit_error', 'upstream_rate_limit', null],
    ['upstreamUnreachable', 502, 'upstream_error', 'upstream_unreachable', null],
    ['upstreamFailed', 502, 'upstream_error', 'upstream_failed', null],
    ['upstreamProtocol', 502, 'upstream_error', 'upstream_protocol', null],
    ['upstreamRejected', 400, 'invalid_request_error', 'upstream_rejected', null],
    ['upstreamQuotaExceeded', 402, 'upstream_error', 'insufficient_quota', 'false'],
    ['upstreamEmptyAnswer', 502, 'upstream_error', 'upstream_empty_answer', null],
    ['answerTooLong', 502, 'upstream_error', 'answer_too_long', null],
    ['contextTooLong', 400, 'invalid_request_error', 'context_length_exceeded', null],
  ] as const;
  for (const [code, status, type, written, retry] of cases) {
    for (const stream of [false, true]) {
      const { post } = await chat(t, script(fail(code), fail(code)));
      const answer = await post({ messages: [user('hi')], stream });
      t.equal(answer.status, status, code);
      t.equal(answer.headers.get('x-should-retry'), retry);
      t.strictSame(await answer.json(), { error: { message: 'as the script says', type, param: null, code: written } });
    }
  }
});

t.test('a bug is a 500 without details', async (t) => {
  const { post } = await chat(
    t,
    script(() => {
      throw new Error('a secret');
    }),
  );
  const answer = await post({ messages: [user('hi')] });
  t.equal(answer.status, 500);
  t.notMatch(await answer.text(), 'a secret');
});

t.test('an error during a stream is its last frame', async (t) => {
  const { post } = await chat(t, script([say('begun'), fail('upstreamFailed')]));
  const answer = await post({ messages: [user('hi')], stream: true });
  t.equal(answer.status, 200);
  const frames = framesOf(await answer.text());
  t.strictSame(JSON.parse(frames.at(-1) ?? ''), {
    error: { message: 'as the script says', type: 'upstream_error', param: null, code: 'upstream_failed' },
  });
  t.notOk(frames.includes('[DONE]'));
});

t.test('an error after a tool has run is marked as not retryable', async (t) => {
  const provider = script(callTool('Look'), fail('upstreamFailed'));
  const { post } = await chat(t, provider, { runtime: { tools: () => [look] } });
  const answer = await post({ messages: [user('hi')] });
  t.equal(answer.status, 502);
  t.equal(answer.headers.get('x-should-retry'), 'false');
});

t.test('a silent stream gets empty chunks', async (t) => {
  const held = gate();
  const { post } = await chat(t, script([held, say('late')]), { timing: { heartbeatMs: 20 } });
  const answer = await post({ messages: [user('hi')], stream: true });
  t.equal(answer.status, 200, 'the head is there before the model has said a word');
  const body = reading(answer);
  await body.until((text) => text.split('"delta":{}').length >= 4);
  held.open();
  const text = await body.rest();
  const chunks = chunksOf(text);
  t.match(chunks[1].choices, [{ index: 0, delta: {}, finish_reason: null }]);
  t.equal(contentOf(chunks), 'late');
});

t.test('a slow whole answer sends its head, then empty lines, then its body', async (t) => {
  const held = gate();
  const timing = { trickleAfterMs: 20, trickleMs: 20 };
  const { post } = await chat(t, script([held, say('late'), usage(1, 1)]), { timing });
  const answer = await post({ messages: [user('hi')] });
  t.equal(answer.status, 200);
  t.match(answer.headers.get('content-type'), /^application\/json/);
  const body = reading(answer);
  t.match(await body.until((text) => text.length >= 3), /^\n+$/);
  held.open();
  const text = await body.rest();
  t.equal(JSON.parse(text).choices[0].message.content, 'late');
});

t.test('a failure after the head cuts the body: clients report an error, and the log has the reason', async (t) => {
  for (const adapter of ['node', 'uws']) {
    process.env['ORATORIO_HTTP_ADAPTER'] = adapter;
    const held = gate();
    const { url, log } = await chat(t, script([say('half'), held, fail('upstreamFailed')], say('whole')), {
      timing: { trickleAfterMs: 20, trickleMs: 20 },
    }).finally(() => delete process.env['ORATORIO_HTTP_ADAPTER']);
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 });
    const question = { model: 'scripted', messages: [{ role: 'user' as const, content: 'hi' }] };
    const asked = client.chat.completions.create(question);
    t.equal((await asked.asResponse()).status, 200, 'the head is early');
    held.open();
    await t.rejects(asked, adapter);
    t.match(log.join(''), /upstream_failed/, adapter);
    t.equal((await client.chat.completions.create(question)).choices[0]?.message.content, 'whole', adapter);
  }
});

t.test('parallel requests get their own answers', async (t) => {
  const provider = script(...Array.from({ length: 40 }, (_, n) => [say(`${n}:`), say('x'.repeat(n))]));
  const { ask, post, runtime } = await chat(t, provider);
  const answers = await Promise.all(
    Array.from({ length: 40 }, async (_, n) => {
      if (n % 2) return (await ask('hi')).body.choices[0].message.content as string;
      return contentOf(chunksOf(await (await post({ messages: [user('hi')], stream: true })).text()));
    }),
  );
  for (const answer of answers) {
    const [n, rest] = answer.split(':');
    t.equal(rest?.length, Number(n));
  }
  t.equal(new Set(answers).size, 40);
  t.equal(runtime.turns.count, 0);
  t.strictSame(runtime.threads.list({}), [], 'requests without a session leave nothing behind');
});
