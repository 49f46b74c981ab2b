import t from 'tap';
import { MemoryStore, type ModelRequest } from '../../src/agent/index.ts';
import { tool } from '../agent/helpers.ts';
import { always, callTool, fail, gate, say, script } from '../agent/scripted-provider.ts';
import { chat, eventually, user } from './harness.ts';

const assistant = (content: string) => ({ role: 'assistant', content });
const system = (content: string) => ({ role: 'system', content });

/** Messages of the nth request to the model, without our own system prompt. */
function messagesOf(provider: ReturnType<typeof script>, nth: number): string[] {
  return (provider.requests[nth]?.messages ?? []).slice(1).map((message) => {
    const words = 'content' in message ? message.content : [{ type: 'text' as const, text: message.text }];
    return `${message.role}: ${words.map((part) => (part.type === 'text' ? part.text : part.url)).join('|')}`;
  });
}

const systemOf = (provider: ReturnType<typeof script>, nth: number): string => {
  const [first] = provider.requests[nth]?.messages ?? [];
  return first?.role === 'system' ? first.text : '';
};

t.test('without a session each request carries the whole conversation', async (t) => {
  const provider = script(say('c'), say('d'));
  const { post, runtime } = await chat(t, provider);
  const messages = [system('be brief'), user('a'), assistant('b'), user('c'), user('d')];
  const answer = await post({ messages });
  t.equal(answer.headers.get('x-session-id'), null);
  t.equal((await answer.json()).x_agent.sessionId, null);
  t.strictSame(messagesOf(provider, 0), ['user: a', 'assistant: b', 'user: c|d']);
  t.match(systemOf(provider, 0), 'be brief');
  await post({ messages: [user('again')] });
  t.strictSame(messagesOf(provider, 1), ['user: again']);
  t.strictSame(runtime.threads.list({}), []);
});

t.test('in a session only the new end of a repeated conversation is used', async (t) => {
  const look = tool({ name: 'Look', isReadOnly: true, run: () => ({ text: 'a cat', isError: false }) });
  const provider = script([say('Let me see.'), callTool('Look')], say('A cat.'), say('Black.'));
  const { post, runtime } = await chat(t, provider, { runtime: { tools: () => [look] } });
  const headers = { 'X-Session-Id': 's-1' };
  const first = await post({ messages: [system('be brief'), user('what is there?')] }, headers);
  t.equal(first.headers.get('x-session-id'), 's-1');
  t.equal((await first.json()).x_agent.sessionId, 's-1');
  const repeated = [user('what is there?'), assistant('A cat.'), user('its colour?')];
  await (await post({ messages: repeated }, headers)).json();
  t.strictSame(messagesOf(provider, 2), [
    'user: what is there?',
    'assistant: Let me see.',
    'tool: a cat',
    'assistant: A cat.',
    'user: its colour?',
  ]);
  t.match(systemOf(provider, 2), 'be brief', 'what the system was told stays with the session');
  const [thread] = runtime.threads.list({ channelName: 'api' });
  t.match(thread, { displayName: 's-1', identity: { channelName: 'api', channelContext: 's-1' } });
});

t.test('a session outlives the server', async (t) => {
  const store = new MemoryStore();
  const before = await chat(t, script(say('yes')), { runtime: { store } });
  await (await before.post({ messages: [user('remember')] }, { 'x-session-id': 's' })).json();
  const provider = script(say('I do'));
  const after = await chat(t, provider, { runtime: { store } });
  await (await after.post({ messages: [user('well?')] }, { 'x-session-id': 's' })).json();
  t.strictSame(messagesOf(provider, 0), ['user: remember', 'assistant: yes', 'user: well?']);
});

t.test('a new session starts with the conversation of the caller', async (t) => {
  const provider = script(fail('upstreamFailed'), say('d'));
  const { post } = await chat(t, provider);
  const messages = [user('a'), assistant('b'), user('c')];
  for (const status of [502, 200]) {
    const answer = await post({ messages, metadata: { session_id: 's' } });
    t.equal(answer.status, status);
    await answer.json();
  }
  t.strictSame(messagesOf(provider, 1), ['user: a', 'assistant: b', 'user: c'], 'a turn that failed is no memory');
});

t.test('by default requests with one user are independent conversations', async (t) => {
  const provider = script(say('one'), say('two'), say('three'));
  const { post } = await chat(t, provider);
  for (const messages of [
    [user('first')],
    [user('second')],
    [user('mine'), { role: 'assistant', content: 'before' }, user('third')],
  ]) {
    const answer = await post({ messages, user: 'alice' });
    t.equal(answer.headers.get('x-session-id'), null);
    t.match(await answer.json(), { x_agent: { sessionId: null } });
  }
  t.strictSame(messagesOf(provider, 1), ['user: second']);
  t.strictSame(messagesOf(provider, 2), ['user: mine', 'assistant: before', 'user: third']);
});

t.test('with SessionFromUser the session is taken from header, metadata or user, in this order', async (t) => {
  const { post } = await chat(t, script(...Array.from({ length: 9 }, () => say('ok'))), {
    api: { SessionFromUser: true },
  });
  const cases: [object, Record<string, string>, string | null][] = [
    [{ metadata: { session_id: 'm' }, user: 'u' }, { 'x-session-id': 'h' }, 'h'],
    [{ metadata: { session_id: 'm', conversation_id: 'c' }, user: 'u' }, {}, 'm'],
    [{ metadata: { conversation_id: 'c' }, user: 'u' }, {}, 'c'],
    [{ user: 'u' }, {}, 'user:u'],
    [{ user: 'ü 5%' }, {}, 'user:%C3%BC%205%25'],
    [{ user: '\ud800' }, {}, 'user:%EF%BF%BD'],
    [{ user: 'x'.repeat(1_000) }, {}, 'user:44f8354494a5ba03ba1792a8fed7d7a8'],
    [{ user: '', metadata: { session_id: '' } }, {}, null],
    [{ user: null, metadata: null }, {}, null],
  ];
  for (const [body, headers, expected] of cases) {
    const answer = await post({ messages: [user('hi')], ...body }, headers);
    t.equal(answer.status, 200);
    const given = answer.headers.get('x-session-id');
    if (expected?.startsWith('user:44')) t.match(given, /^user:[0-9a-f]{64}$/);
    else t.equal(given, expected);
    await answer.json();
  }
});

t.test('a session name that is invalid in a header is refused', async (t) => {
  const { post } = await chat(t, script());
  for (const session_id of ['a b', 'ü', 'a\nb', 'x'.repeat(513), 5, {}]) {
    const answer = await post({ messages: [user('hi')], metadata: { session_id } });
    t.equal(answer.status, 400);
    t.equal((await answer.json()).error.param, 'metadata.session_id');
  }
});

t.test('requests of one session are served in order; above the limit they are refused', async (t) => {
  const held = gate();
  const echo = (request: ModelRequest) => {
    const last = request.messages.at(-1);
    return say(last?.role === 'user' && last.content[0]?.type === 'text' ? last.content[0].text : '?');
  };
  const provider = always((request) => (request.messages.length === 2 ? [held, echo(request)] : echo(request)));
  const { post } = await chat(t, provider);
  const ask = (n: number) => post({ messages: [user(`question ${n}`)] }, { 'x-session-id': 's' });
  const answers = Array.from({ length: 18 }, (_, n) => ask(n));
  const refused = await Promise.race(answers);
  t.equal(refused.status, 429, 'one is served, sixteen wait');
  t.equal(refused.headers.get('x-should-retry'), 'false');
  t.equal((await refused.json()).error.code, 'session_busy');
  await held.reached;
  t.equal(provider.requests.length, 1, 'nobody else is served meanwhile');
  held.open();
  let served = 0;
  for (const [n, answer] of answers.entries()) {
    const { status } = await answer;
    if (status !== 200) continue;
    served += 1;
    t.equal((await (await answer).json()).choices[0].message.content, `question ${n}`);
  }
  t.equal(served, 17);
  t.equal(messagesOf(provider, 16).length, 33, 'each was told what came before it');
});

t.test('a disconnect during the wait removes the request without effects', async (t) => {
  const held = gate();
  const provider = script([held, say('first')], say('third'));
  const { post, server } = await chat(t, provider, { api: { DisconnectGraceMs: 0 } });
  const headers = { 'x-session-id': 's' };
  const first = post({ messages: [user('first')] }, headers);
  await held.reached;
  const controller = new AbortController();
  const second = post({ messages: [user('second')] }, headers, controller.signal);
  await new Promise((resolve) => setTimeout(resolve, 50));
  controller.abort();
  await t.rejects(second);
  await eventually(() => server.stats().connections === 1, 'the server has noticed');
  const third = post({ messages: [user('third')] }, headers);
  await new Promise((resolve) => setTimeout(resolve, 50));
  held.open();
  t.equal((await (await first).json()).choices[0].message.content, 'first');
  t.equal((await (await third).json()).choices[0].message.content, 'third');
  t.strictSame(messagesOf(provider, 1), ['user: first', 'assistant: first', 'user: third']);
});

t.test('a request waits for the turn of another interface in the thread of its session', async (t) => {
  const held = gate();
  const provider = script(say('one'), [held, say('two')], say('three'));
  const { post, runtime } = await chat(t, provider);
  const headers = { 'x-session-id': 's' };
  await (await post({ messages: [user('a')] }, headers)).json();
  const [thread] = runtime.threads.list({});
  runtime.turns.start(thread?.id ?? '', [{ type: 'text', text: 'b' }], undefined).begin();
  await held.reached;
  const answer = post({ messages: [user('c')] }, headers);
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.equal(provider.requests.length, 2);
  held.open();
  t.equal((await (await answer).json()).choices[0].message.content, 'three');
});

t.test('an archived session is refused', async (t) => {
  const { post, runtime } = await chat(t, script(say('one')));
  const headers = { 'x-session-id': 's' };
  await (await post({ messages: [user('a')] }, headers)).json();
  runtime.threads.archive(runtime.threads.list({})[0]?.id ?? '', true)();
  const answer = await post({ messages: [user('b')] }, headers);
  t.equal(answer.status, 422);
  t.equal((await answer.json()).error.code, 'session_archived');
});

t.test('a request above the limit of parallel turns is refused; after one ends the next is served', async (t) => {
  const held = gate();
  const { post, runtime } = await chat(t, script([held, say('a')], [held, say('b')], say('c')), {
    api: { MaxConcurrentTurns: 2 },
  });
  const running = [post({ messages: [user('1')] }), post({ messages: [user('2')] })];
  await eventually(() => runtime.turns.count === 2, 'two turns');
  const refused = await post({ messages: [user('3')] });
  t.equal(refused.status, 429);
  t.equal(refused.headers.get('retry-after'), '1');
  t.match(await refused.json(), { error: { type: 'rate_limit_error', code: 'concurrency_limit' } });
  held.open();
  for (const answer of running) t.equal((await answer).status, 200);
  t.equal((await post({ messages: [user('3')] })).status, 200);
});

t.test('a server that is shutting down refuses with its reason', async (t) => {
  const held = gate();
  const { post, runtime } = await chat(t, script([held, say('never')]));
  const running = post({ messages: [user('1')] });
  await held.reached;
  await runtime.close();
  t.equal((await running).status, 503);
  const late = await post({ messages: [user('2')] });
  t.equal(late.status, 503);
  t.equal(late.headers.get('retry-after'), '1');
  t.equal((await late.json()).error.code, 'shutting_down');
});
