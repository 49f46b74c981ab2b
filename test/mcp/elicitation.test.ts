/** Questions of MCP servers: both eras, hostile forms, and the time limit of the call. */
import fc from 'fast-check';
import t from 'tap';
import type { ToolContext } from '../../src/agent/index.ts';
import { checkContent, fieldsOf, type QuestionForm, readElicitation } from '../../src/protocol/index.ts';
import { call, everything, http, inState, room, stdio } from './helpers.ts';
import { ModernServer } from './modern-server.ts';

type Elicit = NonNullable<ToolContext['elicit']>;

/** Notes each form, and answers. */
function user(answer: Elicit) {
  const forms: QuestionForm[] = [];
  const elicit: Elicit = (form, withdrawn) => {
    forms.push(form);
    return answer(form, withdrawn);
  };
  return { forms, elicit };
}

t.test('a server of the older era asks by a form and by a link', async (t) => {
  const mcp = room(t, { all: stdio([everything, 'stdio']) });
  mcp.servers.start();
  await inState(mcp, 'all', 'ready');
  const form = user(async (asked) => {
    const required = fieldsOf(asked).filter(({ isRequired }) => isRequired);
    return { action: 'accept', content: Object.fromEntries(required.map(({ name }) => [name, 'Ada'])) };
  });
  t.match(await call(mcp, '__trigger-elicitation-request', {}, form), { text: /Ada/ });
  t.match(form.forms, [{ source: 'mcp', from: 'all', schema: { type: 'object' } }]);
  const link = user(async () => ({ action: 'decline' }));
  const url = 'https://example.com/connect';
  await call(mcp, '__trigger-url-elicitation', { url, message: 'Connect' }, link);
  t.match(link.forms, [{ url, from: 'all' }]);
});

t.test(
  'a server of the newer era asks in rounds; the time limit stands still; without a user the call continues',
  async (t) => {
    const server = await ModernServer.start(t);
    const mcp = room(t, { small: http(server.url, { toolTimeoutSec: 1 }) });
    mcp.servers.start();
    await inState(mcp, 'small', 'ready');
    const schema = { type: 'object', properties: { name: { type: 'string', pattern: '(a+)+$' } } };
    const slow = user(async () => {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      return { action: 'accept', content: { name: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!' } };
    });
    const asked = { message: 'Your name?', requestedSchema: schema };
    t.match(await call(mcp, '__say', asked, slow), { text: /"who":.*"content":\{"name":"a+!"\}/, isError: false });
    t.match(slow.forms, [{ message: 'Your name?', schema: { properties: { name: { type: 'string' } } } }]);
    t.notMatch(JSON.stringify(slow.forms), /pattern/, 'a pattern never runs here');
    t.match(await call(mcp, '__say', asked), { text: /"action":"cancel"/ });
  },
);

t.test('a server that asks for ever is asked to end, with a user and without one', async (t) => {
  const server = await ModernServer.start(t);
  const mcp = room(t, { small: http(server.url) });
  mcp.servers.start();
  await inState(mcp, 'small', 'ready');
  const schema = { type: 'object', properties: { name: { type: 'string' } } };
  const endless = { message: 'Your name?', requestedSchema: schema, isEndless: true };
  const patient = user(async () => ({ action: 'accept', content: { name: 'Ada' } }));
  t.match(await call(mcp, '__say', endless, patient), { isError: true, text: /rounds/ });
  t.equal(patient.forms.length, 10);
  t.match(await call(mcp, '__say', endless), { isError: true, text: /rounds/ });
  t.match(await call(mcp, '__say', { text: 'still here' }), { isError: false, text: 'still here' });
});

t.test(
  'a form that nests, is huge or asks for a secret, and a link with another scheme or credentials, is refused',
  (t) => {
    const form = (properties: unknown) => ({ message: 'm', requestedSchema: { type: 'object', properties } });
    const deep = (levels: number): unknown =>
      levels === 0 ? {} : { type: 'object', properties: { x: deep(levels - 1) } };
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`f${at}`, { type: 'boolean' }]));
    const refused: [unknown, RegExp][] = [
      [form({ x: deep(3) }), /properties/],
      [form({ x: deep(2_000) }), /properties|too deep/],
      [form(many), /at most 50 fields/],
      [form({ x: { type: 'string', description: 'x'.repeat(70_000) } }), /too large/],
      [form({ apiKey: { type: 'string' } }), /never asks for a secret/],
      [form({ x: { type: 'string', title: 'Your password' } }), /never asks for a secret/],
      [form({ x: { type: 'string', format: 'password' } }), /never asks for a secret/],
      ...['PassWord', 'pass\u200bword', 'ｐassword'].map((name): [unknown, RegExp] => [
        form({ [name]: { type: 'string' } }),
        /never asks for a secret/,
      ]),
      ...['javascript:alert(1)', 'http://example.com/', 'https://a:b@example.com/', 'file:///etc/passwd', 7].map(
        (url): [unknown, RegExp] => [{ mode: 'url', message: 'm', url }, /url: expected/],
      ),
      [{ mode: 'voice', message: 'm' }, /form or url/],
      [undefined, /malformed/],
    ];
    for (const [params, problem] of refused) {
      const read = readElicitation(params, 'mcp', 'server');
      t.match(read, { ok: false, problem });
    }
    t.match(readElicitation(form({ tokens: { type: 'integer' } }), 'mcp', 'server'), { ok: true }, 'positive control');
    t.end();
  },
);

t.test('no schema and no answer makes the reader throw, and only an accepted answer fits its fields', (t) => {
  const field = fc.oneof(
    fc.record({ type: fc.constantFrom('string', 'number', 'integer', 'boolean', 'array', 'object') }),
    fc.record({
      type: fc.constant('string'),
      enum: fc.array(fc.string()),
      minLength: fc.double(),
      pattern: fc.string(),
    }),
    fc.record({
      type: fc.constant('array'),
      items: fc.record({ enum: fc.array(fc.string()) }),
      maxItems: fc.integer(),
    }),
    fc.jsonValue(),
  );
  const schema = fc.record({ type: fc.constant('object'), properties: fc.dictionary(fc.string(), field) });
  const value = fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.array(fc.string()));
  let accepted = 0;
  fc.assert(
    fc.property(schema, fc.array(value), (requestedSchema, values) => {
      const read = readElicitation({ message: '', requestedSchema }, 'mcp', 'server');
      if (!read.ok) return;
      const fields = fieldsOf(read.form);
      const content = Object.fromEntries(fields.map(({ name }, at) => [name, values[at] ?? '']));
      const checked = checkContent(read.form, content);
      if (!checked.ok) return;
      accepted += 1;
      for (const { name, choices, kind } of fields) {
        const given = checked.content[name];
        if (given !== undefined && kind === 'one') t.ok(choices.some((choice) => choice.value === given));
      }
    }),
    { numRuns: 500 },
  );
  t.ok(accepted > 0, 'positive control');
  t.end();
});
