import t from 'tap';
import { tool } from '../agent/helpers.ts';
import { always, callTool, fail, gate, say, script, usage } from '../agent/scripted-provider.ts';
import { chat, chunksOf, contentOf, eventually, reading, user } from './harness.ts';

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
  const { post, threads } = await chat(t, provider, { runtime: { tools: () => [touch] } });
  for (const stream of [true, false]) {
    const controller = new AbortController();
    const answer = post({ ...body, stream }, {}, controller.signal);
    if (stream) await reading(await answer).until((text) => text.includes('begun'));
    else await eventually(() => threads.activeTurns === 1, 'the turn runs');
    controller.abort();
    await answer.then(
      (response) => response.text().catch(() => ''),
      () => '',
    );
    await eventually(() => threads.activeTurns === 0, 'the turn is ended');
  }
  held.open();
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.equal(runs, 0);
  t.strictSame(threads.list({}), []);
});

t.test('within the grace period a caller can resume its session', async (t) => {
  const held = gate();
  const provider = script([say('begun '), held, say('and done')]);
  const { post, threads } = await chat(t, provider, { api: { DisconnectGraceMs: 60_000 } });
  const headers = { 'x-session-id': 's', 'x-stainless-retry-count': '0' };
  const controller = new AbortController();
  const lost = await post(streamed, headers, controller.signal);
  await reading(lost).until((text) => text.includes('begun'));
  controller.abort();
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.equal(threads.activeTurns, 1);
  const again = await post(streamed, { ...headers, 'x-stainless-retry-count': '1' });
  held.open();
  t.equal(contentOf(chunksOf(await again.text())), 'begun and done');
  t.equal(provider.requests.length, 1);
});

t.test('after the grace period the turn is ended', async (t) => {
  const { post, threads } = await chat(t, script([say('begun'), gate()]), { api: { DisconnectGraceMs: 20 } });
  const controller = new AbortController();
  const lost = await post(streamed, { 'x-session-id': 's' }, controller.signal);
  await reading(lost).until((text) => text.includes('begun'));
  controller.abort();
  await eventually(() => threads.activeTurns === 0, 'the turn is ended');
  const [thread] = threads.list({});
  t.match(threads.read(thread?.id ?? '', { includeTurns: true }).turns, [{ status: 'cancelled' }]);
});

t.test('with OnDisconnect detach the turn is finished for its session', async (t) => {
  const held = gate();
  const { post, threads } = await chat(t, script([say('begun '), held, say('and done')]), {
    api: { OnDisconnect: 'detach' },
  });
  const controller = new AbortController();
  const lost = await post(streamed, { 'x-session-id': 's' }, controller.signal);
  await reading(lost).until((text) => text.includes('begun'));
  controller.abort();
  await new Promise((resolve) => setTimeout(resolve, 50));
  held.open();
  await eventually(() => threads.activeTurns === 0, 'the turn ends by itself');
  const [thread] = threads.list({});
  t.match(threads.read(thread?.id ?? '', { includeTurns: true }).turns, [{ status: 'completed' }]);
});

t.test('a turn interrupted by another client is reported as such', async (t) => {
  const held = gate();
  const { post, threads } = await chat(t, script([say('begun'), held], [held]));
  const headers = { 'x-session-id': 's' };
  const answer = await post(streamed, headers);
  const reader = reading(answer);
  await reader.until((text) => text.includes('begun'));
  const [thread] = threads.list({});
  threads.interrupt(thread?.id ?? '', 'turn_001')();
  t.match(await reader.rest(), /"code":"turn_interrupted"\}\}\n\n$/);
  const whole = post(body, headers);
  await eventually(() => threads.activeTurns === 1, 'the next turn');
  threads.interrupt(thread?.id ?? '', 'turn_002')();
  t.equal((await whole).status, 422);
});
