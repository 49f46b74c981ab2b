import { hash } from 'node:crypto';
import t from 'tap';
import { StorageError } from '../../src/agent/index.ts';
import { tool } from '../agent/helpers.ts';
import { always, callTool, fail, gate, say, script, usage } from '../agent/scripted-provider.ts';
import { chat, chunksOf, contentOf, eventually, reading, requestStore, user } from './harness.ts';

const body = { messages: [user('hi')] };
const streamed = { ...body, stream: true };

t.test('a repeated Idempotency-Key joins the running turn', async (t) => {
  const held = gate();
  const provider = script([say('once '), held, say('only'), usage(1, 2)]);
  const { post } = await chat(t, provider);
  const headers = { 'idempotency-key': 'k' };
  const first = await post(streamed, headers);
  const second = await post(streamed, headers);
  t.equal(provider.requests.length, 1);
  held.open();
  const [one, two] = [chunksOf(await first.text()), chunksOf(await second.text())];
  t.equal(contentOf(one), 'once only');
  t.equal(contentOf(two), 'once only');
  t.equal(one[0].id, two[0].id);
});

t.test('a repeated Idempotency-Key gets the answer of the ended turn, any number of times', async (t) => {
  const look = tool({ name: 'Look', isReadOnly: true });
  const provider = script([say('Let me see.'), callTool('Look')], [say('once'), usage(1, 2)]);
  const { post } = await chat(t, provider, { runtime: { tools: () => [look] } });
  const headers = { 'idempotency-key': 'k' };
  const first = await (await post(body, headers)).json();
  for (let again = 0; again < 3; again += 1) t.strictSame(await (await post(body, headers)).json(), first);
  t.equal(provider.requests.length, 2);
  const keyed = { 'idempotency-key': 's' };
  const other = await chat(t, script([callTool('Look')], [say('a'), usage(1, 1)]), {
    runtime: { tools: () => [look] },
  });
  await (await other.post(streamed, keyed)).text();
  const replayed = chunksOf(await (await other.post(streamed, keyed)).text());
  t.equal(contentOf(replayed), 'a');
  t.strictSame(
    replayed.flatMap(({ x_agent }) => x_agent?.event ?? []),
    ['tool.started', 'tool.completed'],
  );
});

t.test('an Idempotency-Key with another body is refused as not retryable', async (t) => {
  const { post } = await chat(t, script(say('once')));
  await (await post(body, { 'idempotency-key': 'k' })).json();
  const refused = await post({ messages: [user('something else')] }, { 'idempotency-key': 'k' });
  t.equal(refused.status, 422);
  t.match(await refused.json(), { error: { code: 'idempotency_key_reused', param: 'Idempotency-Key' } });
  const long = await post(body, { 'idempotency-key': 'x'.repeat(256) });
  t.equal(long.status, 400);
});

t.test('a retry of a client library joins its own turn', async (t) => {
  const held = gate();
  const provider = script([held, say('once')], say('twice'));
  const { post } = await chat(t, provider);
  const first = post(body, { 'x-stainless-retry-count': '0' });
  await held.reached;
  const second = post(body, { 'x-stainless-retry-count': '1' });
  held.open();
  for (const answer of [first, second]) t.equal((await (await answer).json()).choices[0].message.content, 'once');
  t.equal((await (await post(body, { 'x-stainless-retry-count': '2' })).json()).choices[0].message.content, 'once');
  const anew = await (await post(body, { 'x-stainless-retry-count': '0' })).json();
  t.equal(anew.choices[0].message.content, 'twice', 'who does not retry asks anew');
});

t.test('a turn that failed without effects is run again', async (t) => {
  const { post } = await chat(t, script(fail('upstreamFailed'), say('at last')));
  t.equal((await post(body, { 'idempotency-key': 'k' })).status, 502);
  const again = await post(body, { 'idempotency-key': 'k' });
  t.equal((await again.json()).choices[0].message.content, 'at last');
});

t.test('a turn that failed after a tool had run is not run again; its error is repeated', async (t) => {
  let runs = 0;
  const touch = tool({
    name: 'Touch',
    run: () => {
      runs += 1;
      return { text: 'touched', isError: false };
    },
  });
  const provider = script(callTool('Touch'), fail('upstreamFailed'));
  const { post } = await chat(t, provider, { runtime: { tools: () => [touch] } });
  for (let n = 0; n < 2; n += 1) {
    const answer = await post(body, { 'x-stainless-retry-count': String(n) });
    t.equal(answer.status, 502);
    t.equal(answer.headers.get('x-should-retry'), 'false');
  }
  t.equal(runs, 1);
});

t.test('answers are dropped after a time, and the oldest above the limit', async (t) => {
  const { post } = await chat(t, script(...['a', 'b', 'c'].map(say)), { timing: { idempotencyEntries: 1 } });
  const content = async (key: string) =>
    (await (await post(body, { 'idempotency-key': key })).json()).choices[0].message.content;
  t.equal(await content('1'), 'a');
  t.equal(await content('2'), 'b');
  t.equal(await content('2'), 'b');
  t.equal(await content('1'), 'c');
  const short = await chat(t, script(say('a'), say('b')), { timing: { idempotencyMs: 1 } });
  const ask = async () =>
    (await (await short.post(body, { 'idempotency-key': 'k' })).json()).choices[0].message.content;
  t.equal(await ask(), 'a');
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.equal(await ask(), 'b');
});

t.test('a disconnect that cannot be resumed ends the turn at once, and no tool starts', async (t) => {
  let runs = 0;
  const held = gate();
  const touch = tool({
    name: 'Touch',
    run: () => {
      runs += 1;
      return { text: 'touched', isError: false };
    },
  });
  const provider = always([say('begun'), held, callTool('Touch')]);
  const { post, runtime } = await chat(t, provider, { runtime: { tools: () => [touch] } });
  for (const stream of [true, false]) {
    const controller = new AbortController();
    const answer = post({ ...body, stream }, {}, controller.signal);
    if (stream) await reading(await answer).until((text) => text.includes('begun'));
    else await eventually(() => runtime.turns.count === 1, 'the turn runs');
    controller.abort();
    await answer.then(
      (response) => response.text().catch(() => ''),
      () => '',
    );
    await eventually(() => runtime.turns.count === 0, 'the turn is ended');
  }
  held.open();
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.equal(runs, 0);
  t.strictSame(runtime.threads.list({}), []);
});

t.test('within the grace period a caller can resume its session', async (t) => {
  const held = gate();
  const provider = script([say('begun '), held, say('and done')]);
  const { post, runtime } = await chat(t, provider, { api: { DisconnectGraceMs: 60_000 } });
  const headers = { 'x-session-id': 's', 'x-stainless-retry-count': '0' };
  const controller = new AbortController();
  const lost = await post(streamed, headers, controller.signal);
  await reading(lost).until((text) => text.includes('begun'));
  controller.abort();
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.equal(runtime.turns.count, 1);
  const again = await post(streamed, { ...headers, 'x-stainless-retry-count': '1' });
  held.open();
  t.equal(contentOf(chunksOf(await again.text())), 'begun and done');
  t.equal(provider.requests.length, 1);
});

t.test('after the grace period the turn is ended', async (t) => {
  const { post, runtime } = await chat(t, script([say('begun'), gate()]), { api: { DisconnectGraceMs: 20 } });
  const controller = new AbortController();
  const lost = await post(streamed, { 'x-session-id': 's' }, controller.signal);
  await reading(lost).until((text) => text.includes('begun'));
  controller.abort();
  await eventually(() => runtime.turns.count === 0, 'the turn is ended');
  const [thread] = runtime.threads.list({});
  t.match(runtime.threads.read(thread?.id ?? '', { includeTurns: true }).turns, [{ status: 'cancelled' }]);
});

t.test('with OnDisconnect detach the turn is finished for its session', async (t) => {
  const held = gate();
  const { post, runtime } = await chat(t, script([say('begun '), held, say('and done')]), {
    api: { OnDisconnect: 'detach' },
  });
  const controller = new AbortController();
  const lost = await post(streamed, { 'x-session-id': 's' }, controller.signal);
  await reading(lost).until((text) => text.includes('begun'));
  controller.abort();
  await new Promise((resolve) => setTimeout(resolve, 50));
  held.open();
  await eventually(() => runtime.turns.count === 0, 'the turn ends by itself');
  const [thread] = runtime.threads.list({});
  t.match(runtime.threads.read(thread?.id ?? '', { includeTurns: true }).turns, [{ status: 'completed' }]);
});

t.test('a turn interrupted by another client is reported as such', async (t) => {
  const held = gate();
  const { post, runtime } = await chat(t, script([say('begun'), held], [held]));
  const headers = { 'x-session-id': 's' };
  const answer = await post(streamed, headers);
  const reader = reading(answer);
  await reader.until((text) => text.includes('begun'));
  const [thread] = runtime.threads.list({});
  runtime.turns.interrupt(thread?.id ?? '', 'turn_001')();
  t.match(await reader.rest(), /"code":"turn_interrupted"\}\}\n\n$/);
  const whole = post(body, headers);
  await eventually(() => runtime.turns.count === 1, 'the next turn');
  runtime.turns.interrupt(thread?.id ?? '', 'turn_002')();
  t.equal((await whole).status, 422);
});

t.test('a repetition gets the stored answer of an earlier process', async (t) => {
  const store = requestStore(t);
  const look = tool({ name: 'Look', isReadOnly: true });
  const runtime = { tools: () => [look] };
  const before = await chat(t, script([say('Let me see.'), callTool('Look')], [say('once'), usage(1, 2)]), {
    store,
    runtime,
  });
  const headers = { 'idempotency-key': 'k' };
  const first = await (await before.post(body, headers)).json();
  const counted = { 'x-stainless-retry-count': '0' };
  const other = await chat(t, script([callTool('Look'), say('x')], fail('upstreamFailed')), { store, runtime });
  t.equal((await other.post(streamed, counted)).status, 200);
  const provider = script(say('twice'));
  const after = await chat(t, provider, { store, runtime });
  t.strictSame(await (await after.post(body, headers)).json(), first);
  t.match(await (await after.post(streamed, { 'x-stainless-retry-count': '1' })).text(), /"code":"upstream_failed"/);
  t.equal((await after.post(streamed, headers)).status, 422, 'another body');
  t.equal(provider.requests.length, 0);
});

t.test('a call of a tool of the caller is repeated from the store', async (t) => {
  const store = requestStore(t);
  const tools = [{ type: 'function', function: { name: 'mine', parameters: { type: 'object', properties: {} } } }];
  const asked = { ...body, tools };
  const headers = { 'idempotency-key': 'k', 'x-session-id': 's' };
  const before = await chat(t, script([callTool('mine')]), { store });
  const first = await (await before.post(asked, headers)).json();
  t.equal(first.choices[0].finish_reason, 'tool_calls');
  const after = await chat(t, script(say('twice')), { store });
  const again = await after.post(asked, headers);
  t.equal(again.headers.get('x-session-id'), 's');
  t.strictSame(await again.json(), first);
});

t.test('regression: H43 a turn of an earlier process that has no end is not run again', async (t) => {
  const store = requestStore(t);
  const held = gate();
  const before = await chat(t, always([say('begun '), held, say('done')]), { store });
  const keyed = { 'idempotency-key': 'k' };
  const counted = { 'x-stainless-retry-count': '0', 'x-session-id': 's' };
  const running = [await before.post(streamed, keyed), await before.post(streamed, counted)];
  for (const each of running) await reading(each).until((text) => text.includes('begun'));
  const provider = script(say('twice'));
  const after = await chat(t, provider, { store });
  for (const headers of [keyed, { ...counted, 'x-stainless-retry-count': '1' }]) {
    const refused = await after.post(streamed, headers);
    t.equal(refused.status, 422);
    t.equal(refused.headers.get('x-should-retry'), 'false');
    t.match(await refused.json(), { error: { code: 'outcome_unknown', type: 'server_error' } });
  }
  t.equal(provider.requests.length, 0);
  t.equal((await after.post(body, { 'idempotency-key': 'new' })).status, 200, 'another key runs a turn');
  held.open();
});

t.test('a turn that continues ends when its client does not return within the grace period', async (t) => {
  const open = async (OnDisconnect: 'cancel' | 'detach') => {
    const store = requestStore(t);
    const held = gate();
    const origin = JSON.stringify({
      model: 'm',
      sessionId: 's',
      showsActivity: false,
      onlyFinalText: false,
      callerTools: [],
    });
    const fingerprint = `${hash('sha256', JSON.stringify(streamed))} s`;
    const name = hash('sha256', JSON.stringify(['', 'ua', { fingerprint }]));
    const { runtime, post } = await chat(t, script([say('begun '), held, say('done')]), {
      store,
      api: { OnDisconnect, DisconnectGraceMs: 0 },
      timing: { resumedGraceMs: 3_000 },
      before(runtime) {
        const threadId = runtime.threads.start({}).thread.id;
        const { turn, begin } = runtime.turns.start(threadId, [{ type: 'text', text: 'x' }], undefined);
        store.chatRequests.begin({ name, fingerprint, threadId, turnId: turn.id, origin });
        begin();
      },
    });
    return { held, runtime, ask: () => post(streamed, { 'user-agent': 'ua', 'x-session-id': 's' }) };
  };
  const joined = await open('cancel');
  const answer = await reading(await joined.ask());
  await answer.until((text) => text.includes('begun'));
  const detached = await open('detach');
  const left = await open('cancel');
  await eventually(() => left.runtime.turns.count === 0, 'the turn that was begun last is ended');
  t.equal(detached.runtime.turns.count, 1);
  joined.held.open();
  t.match(await answer.rest(), /done.*DONE/s, 'its client has returned');
  detached.held.open();
});

t.test('a turn that the shutdown ends after a tool call is not run again', async (t) => {
  const store = requestStore(t);
  const held = gate();
  const runtime = {
    tools: () => [
      tool({
        name: 'Touch',
        run: async () => {
          await held.reached;
          return { text: 'touched', isError: false };
        },
      }),
    ],
  };
  const before = await chat(t, script([callTool('Touch')], [held]), { store, runtime });
  const running = before.post(body, { 'idempotency-key': 'k' });
  await eventually(() => before.runtime.turns.count === 1, 'the turn runs');
  const early = await chat(t, script([say('begun'), held]), { store });
  const untouched = await early.post(streamed, { 'idempotency-key': 'early' });
  await reading(untouched).until((text) => text.includes('begun'));
  held.open();
  await Promise.all([before.runtime.close(), early.runtime.close()]);
  t.equal((await running).status, 503);
  const after = await chat(t, script(say('anew')), { store, runtime });
  t.match(await (await after.post(body, { 'idempotency-key': 'k' })).json(), { error: { code: 'outcome_unknown' } });
  t.equal((await after.post(streamed, { 'idempotency-key': 'early' })).status, 200, 'no tool had run');
});

t.test('a request that cannot be stored runs no turn', async (t) => {
  const provider = script(say('once'));
  const store = requestStore(t);
  const { post } = await chat(t, provider, {
    store: {
      ...store,
      chatRequests: Object.assign(Object.create(store.chatRequests), {
        begin() {
          throw new StorageError('diskFull', 'no room');
        },
        unfinished: () => [],
        find: () => undefined,
        trim() {},
      }),
    },
  });
  for (const headers of [{ 'idempotency-key': 'k' }, { 'idempotency-key': 'k', 'x-session-id': 's' }]) {
    const refused = await post(body, headers);
    t.equal(refused.status, 500);
    t.match(await refused.json(), { error: { code: 'storage_failed' } });
  }
  t.equal(provider.requests.length, 0);
});

t.test('another client gets an answer of its own to the same body', async (t) => {
  const provider = script(...['one', 'two', 'three', 'four', 'five'].map(say));
  const { post } = await chat(t, provider);
  const ask = async (headers: Readonly<Record<string, string>>) =>
    (await (await post(body, headers)).json()).choices[0].message.content;
  const client = { 'user-agent': 'OpenAI/JS 1', authorization: 'Bearer a' };
  t.equal(await ask({ ...client, 'x-stainless-retry-count': '0' }), 'one');
  t.equal(await ask({ ...client, 'x-stainless-retry-count': '1', 'user-agent': 'OpenAI/Python 1' }), 'two');
  t.equal(await ask({ ...client, 'x-stainless-retry-count': '1', authorization: 'Bearer b' }), 'three');
  t.equal(await ask({ ...client, 'x-stainless-retry-count': '1' }), 'one', 'the same client gets its answer');
  t.equal(await ask({ ...client, 'idempotency-key': 'k' }), 'four');
  t.equal(await ask({ ...client, 'idempotency-key': 'k', 'user-agent': 'OpenAI/Python 1' }), 'five');
  t.equal(await ask({ ...client, 'idempotency-key': 'k', 'x-stainless-retry-count': '1' }), 'four');
});
