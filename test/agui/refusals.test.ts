/** Admitted and refused requests: a refused one changes nothing. */
import type { RunAgentInput } from '@ag-ui/core';
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import fc from 'fast-check';
import t from 'tap';
import * as v from 'valibot';
import { RunInput } from '../../src/agui/input.ts';
import { agentOf, refusal, run, say, serve } from './harness.ts';
import { says, scripted } from './model.ts';

const input: RunAgentInput = {
  threadId: 't',
  runId: 'r',
  messages: [{ id: '1', role: 'user', content: 'hi' }],
  tools: [],
  context: [],
};

t.test('a configured key is required on every path', async (t) => {
  const { url, runtime } = await serve(t, scripted(says('hi')), { apiKey: 'right' });
  for (const headers of [{}, { authorization: 'Bearer wrong' }]) {
    const agent = agentOf(url, 'x', headers);
    say(agent, 'hi');
    t.match(await refusal(t, agent), { status: 401, payload: { error: { code: 'unauthorized' } } });
    t.equal((await fetch(`${url}/approvals`, { headers })).status, 401);
    t.equal((await fetch(`${url}/approvals/x`, { method: 'POST', headers })).status, 401);
  }
  t.strictSame(runtime.threads.list({}), []);
  const agent = agentOf(url, 'x', { authorization: 'Bearer right' });
  say(agent, 'hi');
  t.match((await run(agent)).types.at(-1), 'RUN_FINISHED');
});

t.test('a server that shuts down refuses runs and approvals with 503, and changes nothing', async (t) => {
  const { url, runtime } = await serve(t, scripted(says('hi')));
  await runtime.close();
  const headers = { 'content-type': 'application/json' };
  const answers = [
    await fetch(url, { method: 'POST', headers, body: JSON.stringify(input) }),
    await fetch(`${url}/approvals`),
    await fetch(`${url}/approvals/x`, { method: 'POST', headers, body: '{"decision":"accept"}' }),
  ];
  for (const answer of answers) {
    t.match(
      { status: answer.status, body: await answer.json() },
      { status: 503, body: { error: { code: 'stopping' } } },
    );
    t.equal(answer.headers.get('retry-after'), '1');
  }
  t.strictSame(runtime.threads.list({}), []);
});

t.test('an invalid body is refused with the expected form', async (t) => {
  const { url, runtime } = await serve(t, scripted(says('hi')));
  const cases: [string, unknown, RegExp][] = [
    ['not JSON', undefined, /JSON/],
    ['no messages', { ...input, messages: undefined }, /messages/],
    ['an unknown role', { ...input, messages: [{ id: '1', role: 'king', content: 'x' }] }, /messages\.0\.role/],
    ['two tools of one name', { ...input, tools: ['a', 'a'].map((name) => ({ name, description: '' })) }, /tools/],
    ['a tool no model can be told of', { ...input, tools: [{ name: 'a b', description: '' }] }, /tools\.0\.name/],
    ['no name of the thread', { ...input, threadId: '' }, /threadId/],
    ['an endless name of the thread', { ...input, threadId: 'x'.repeat(513) }, /threadId/],
    ['nothing to answer', { ...input, messages: [] }, /nothing new/],
    ['only a past', { ...input, messages: [{ id: '1', role: 'assistant', content: 'x' }] }, /nothing new/],
    [
      'sound',
      {
        ...input,
        messages: [
          {
            id: '1',
            role: 'user',
            content: [{ type: 'audio', source: { type: 'data', value: 'aGk=', mimeType: 'audio/wav' } }],
          },
        ],
      },
      /audio/,
    ],
    [
      'a picture from a file of this machine',
      {
        ...input,
        messages: [
          { id: '1', role: 'user', content: [{ type: 'image', source: { type: 'url', value: 'file:///etc/passwd' } }] },
        ],
      },
      /image/,
    ],
  ];
  for (const [name, body, message] of cases) {
    const text = body === undefined ? '{' : JSON.stringify(body);
    const response = await fetch(url, { method: 'POST', body: text });
    t.equal(response.status, 400, name);
    t.match(await response.json(), { error: { code: /^(invalidRequest|unsupportedContent)$/, message } }, name);
  }
  t.strictSame(runtime.threads.list({ includeArchived: true }), [], 'nothing came of it');
});

t.test('other methods, pages of other origins and other hosts are refused', async (t) => {
  const { url } = await serve(t, scripted(says('hi')));
  t.equal((await fetch(url)).status, 405);
  const body = JSON.stringify(input);
  const foreign = await fetch(url, { method: 'POST', body, headers: { origin: 'https://evil.example' } });
  t.equal(foreign.status, 403);
});

t.test('a run in an archived thread is refused', async (t) => {
  const { url, runtime } = await serve(t, scripted(says('hi')));
  const agent = agentOf(url);
  say(agent, 'hi');
  await run(agent);
  const [{ id = '' } = {}] = runtime.threads.list({});
  runtime.threads.archive(id, true)();
  say(agent, 'again');
  t.match(await refusal(t, agent), { status: 409, payload: { error: { code: 'threadNotActive' } } });
});

t.test('everything that the schema of the protocol accepts is accepted', (t) => {
  const text = fc.string();
  const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
  const name = fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/);
  const id = fc.string({ minLength: 1, maxLength: 500 });
  const source = fc.oneof(
    fc.record({ type: fc.constant('data'), value: text, mimeType: text }),
    fc.record({ type: fc.constantFrom('url', 'file'), value: text }),
  );
  const part = fc.oneof(
    fc.record({ type: fc.constant('text'), text }),
    fc.record({ type: fc.constantFrom('image', 'audio', 'video', 'document'), source }),
  );
  const content = fc.oneof(text, fc.array(part, { maxLength: 3 }));
  const call = fc.record({ id, type: fc.constant('function'), function: fc.record({ name: text, arguments: text }) });
  const message = fc.oneof(
    fc.record({ role: fc.constantFrom('system', 'developer'), id: text, content: text }),
    fc.record({ role: fc.constant('user'), id: text, content }),
    fc.record({ role: fc.constant('assistant'), id: text, content: maybe(text), toolCalls: maybe(fc.array(call)) }),
    fc.record({ role: fc.constant('tool'), id: text, toolCallId: id, content, error: maybe(text) }),
    fc.record({ role: fc.constant('reasoning'), id: text, content: text }),
    fc.record({
      role: fc.constant('activity'),
      id: text,
      activityType: text,
      content: fc.dictionary(text, fc.jsonValue()),
    }),
  );
  const runs = fc.record({
    threadId: id,
    runId: id,
    parentRunId: maybe(text),
    state: fc.dictionary(text, fc.jsonValue()),
    messages: fc.array(message, { maxLength: 5 }),
    tools: maybe(
      fc.uniqueArray(fc.record({ name, description: text, parameters: maybe(fc.dictionary(text, fc.jsonValue())) }), {
        selector: (tool) => tool.name,
        maxLength: 5,
      }),
    ),
    context: maybe(fc.array(fc.record({ description: text, value: text }), { maxLength: 5 })),
    resume: maybe(
      fc.array(
        fc.record({ interruptId: text, status: fc.constantFrom('resolved', 'cancelled'), payload: fc.jsonValue() }),
        { maxLength: 3 },
      ),
    ),
  });
  fc.assert(
    fc.property(runs, (value) => {
      const wire: unknown = JSON.parse(JSON.stringify(value));
      fc.pre(RunAgentInputSchema.safeParse(wire).success);
      return v.safeParse(RunInput, wire).success;
    }),
  );
  t.end();
});
