/** Several clients of one server, with `vscode-jsonrpc`: notifications of a shared thread, and tools of clients. */
import { once } from 'node:events';
import t from 'tap';
import { ErrorCodes, ResponseError } from 'vscode-jsonrpc/node';
import { WebSocket } from 'ws';
import type { DynamicTool, Item, Turn } from '../../src/protocol/index.ts';
import { eventually, startServer, words } from './harness.ts';
import { Session, type SessionOptions, scenario } from './session.ts';

const accept = () => ({ decision: 'accept' });
const results = (items: readonly Item[]) => items.filter((item) => item.type === 'toolResult');

/** Texts of a turn as a client that subscribed during the turn knows them: the replayed text plus later deltas. */
function textsOf({ heard }: Session): Map<string, string> {
  const texts = new Map<string, string>();
  const put = (item: Item) => {
    if (item.type === 'agentMessage' || item.type === 'reasoningContent') texts.set(item.id, item.text);
  };
  for (const { method, params } of heard) {
    const { turn, item, itemId, delta } = params as Partial<{ turn: Turn; item: Item; itemId: string; delta: string }>;
    if (method === 'turn/started') turn?.items.forEach(put);
    if (method === 'item/started' && item) put(item);
    if (/Message\/delta$|reasoning\/delta$/.test(method) && itemId) {
      texts.set(itemId, (texts.get(itemId) ?? '(no beginning) ') + delta);
    }
  }
  return texts;
}

scenario(
  t,
  'two clients of one thread receive the same notifications, in the same order, once',
  {},
  async (t, { open }) => {
    const [one, other] = [await open({ onApproval: accept }), await open()];
    const { thread } = await one.call('thread/start', {});
    const { id: threadId } = thread;
    await other.call('thread/subscribe', { threadId });
    await other.call('thread/subscribe', { threadId });
    await one.call('thread/resume', { threadId });
    await one.say(threadId, 'think twice\nrun: echo a; echo b; echo c\nwrite a.txt: hello\nread a.txt');
    for (const client of [one, other]) await client.until('turn/completed');
    await other.say(threadId, 'count to 30');
    for (const client of [one, other]) await client.until('turn/completed', undefined, 2);
    t.same(one.story(), other.story());
    const once = one.story().filter((line) => !/^\S+delta /i.test(line));
    t.equal(new Set(once).size, once.length, 'no notification is sent twice');
  },
);

scenario(
  t,
  'a client that subscribes during a turn receives the turn so far and the rest without a gap',
  {},
  async (t, { open }) => {
    const first = await open();
    const { threadId, turnId } = await first.begin('count to 100');
    const comers: Session[] = [];
    for (const nth of [5, 15, 25]) {
      await first.until('item/agentMessage/delta', undefined, nth);
      const late = await open();
      await late.call('thread/subscribe', { threadId, replayRecent: true });
      t.match((await late.until('turn/started')).turn, { id: turnId, status: 'running' });
      comers.push(late);
    }
    const { turn } = await first.until('turn/completed');
    const said = turn.items.flatMap((item) =>
      item.type === 'agentMessage' || item.type === 'reasoningContent' ? [[item.id, item.text]] : [],
    );
    for (const late of comers) {
      await late.until('turn/completed');
      t.same([...textsOf(late)], said);
    }
  },
);

scenario(t, 'a turn continues without clients, and can be read by the next one', {}, async (t, { open }) => {
  const first = await open();
  const { threadId, turnId } = await first.begin('count to 30');
  await first.until('item/agentMessage/delta');
  await first.drop();
  const second = await open();
  const { thread } = await second.call('thread/resume', { threadId });
  const now = thread.turns?.at(-1);
  t.equal(now?.id, turnId);
  if (now?.status === 'running') await second.until('turn/completed');
  const { thread: read } = await second.call('thread/read', { threadId, includeTurns: true });
  t.match(read.turns?.at(-1)?.items.at(-1), { type: 'agentMessage', text: / 30$/ });
});

scenario(
  t,
  'a client receives nothing of a thread after unsubscribe, or of a thread without a subscription',
  {},
  async (t, { open }) => {
    const [one, other] = [await open(), await open()];
    const { threadId } = await one.begin('echo first');
    await one.until('turn/completed');
    await other.call('thread/subscribe', { threadId });
    await other.call('thread/unsubscribe', { threadId });
    await one.say(threadId, 'echo second');
    await one.until('turn/completed', undefined, 2);
    await other.call('thread/list', {});
    t.same(other.story(), []);
  },
);

scenario(t, 'each connection may have 32 requests in flight', {}, async (t, { open }) => {
  const [greedy, modest] = [await open(), await open()];
  const asked = Array.from({ length: 100 }, () =>
    greedy.connection.sendRequest('model/list', {}).then(
      () => 'answered',
      (error: unknown) => (error instanceof ResponseError ? error.code : String(error)),
    ),
  );
  await modest.call('model/list', {});
  const outcomes = await Promise.all(asked);
  const answered = outcomes.filter((outcome) => outcome === 'answered').length;
  t.ok(answered >= 32, `${answered} were answered`);
  t.same(
    [...new Set(outcomes)].filter((outcome) => outcome !== 'answered' && outcome !== -32_001),
    [],
  );
  await greedy.call('model/list', {});
});

const weather: DynamicTool = {
  namespace: 'sky',
  name: 'weather',
  description: 'Tells the weather.',
  inputSchema: { type: 'object', properties: { where: { type: 'string' } } },
};
const sunny = { success: true, contentItems: [{ type: 'text', text: 'sunny' }] };
const ask = 'call sky__weather {"where": "here"}';

scenario(t, 'a tool of the client is offered to the model, called, and its result used', {}, async (t, { open }) => {
  const session = await open({ onTool: () => sunny });
  const { threadId, turnId } = await session.begin(ask, { dynamicTools: [weather] });
  const { turn } = await session.until('turn/completed');
  t.match(session.toolCalls, [{ threadId, turnId, namespace: 'sky', tool: 'weather', arguments: { where: 'here' } }]);
  t.match(
    turn.items.find(({ type }) => type === 'toolCall'),
    { tool: 'sky__weather', source: 'dynamic' },
  );
  t.match(results(turn.items), [{ tool: 'sky__weather', outcome: 'completed', text: 'sunny' }]);
});

const badly: readonly [string, SessionOptions['onTool'], RegExp][] = [
  ['an error result', () => ({ success: false, errorCode: 'cloudy', errorMessage: 'no sky' }), /cloudy: no sky/],
  ['an error', () => new ResponseError(ErrorCodes.InternalError, 'broken window'), /broken window/],
  ['a rejection', () => Promise.reject(new Error('thrown')), /thrown/],
  ['something else', () => ({ weather: 'fine' }), /has an unexpected form/],
  ['nothing', () => null, /has an unexpected form/],
  ['that it has no such method', undefined, /sky__weather|-32601/],
];
scenario(t, 'the model receives an error when a tool of the client gives no result', {}, async (t, { open }) => {
  for (const [what, onTool, says] of badly) {
    await t.test(`the client answers with ${what}`, async (t) => {
      const session = await open(onTool && { onTool });
      await session.begin(ask, { dynamicTools: [weather] });
      const { turn } = await session.until('turn/completed');
      t.match(results(turn.items), [{ outcome: 'failed', text: says }]);
      await session.drop();
    });
  }
});

scenario(t, 'a turn continues when the client of a tool disconnects during its call', {}, async (t, { open }) => {
  const bringer = await open({ onTool: () => new Promise(() => undefined) });
  const { threadId } = await bringer.begin(`${ask}\nsay after all`, { dynamicTools: [weather] });
  const watcher = await open();
  await watcher.call('thread/subscribe', { threadId });
  await bringer.toolCall();
  await bringer.drop();
  const { turn } = await watcher.until('turn/completed');
  t.match(results(turn.items), [{ outcome: 'failed', text: /has gone/ }]);
  await watcher.say(threadId, ask);
  const { turn: again } = await watcher.until('turn/completed', undefined, 2);
  t.match(results(again.items), [{ outcome: 'failed', text: /has gone/ }]);

  const second = await open({ onTool: () => sunny });
  await second.call('thread/resume', { threadId, dynamicTools: [weather] });
  await second.say(threadId, ask);
  const { turn: bound } = await second.until('turn/completed');
  t.match(results(bound.items), [{ outcome: 'completed', text: 'sunny' }], 'brought again by thread/resume');
});

scenario(t, 'an interrupt does not wait for a tool of the client', {}, async (t, { open }) => {
  let answer: (value: unknown) => void = () => undefined;
  const session = await open({
    onTool: () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  });
  const { threadId, turnId } = await session.begin(ask, { dynamicTools: [weather] });
  await session.toolCall();
  await session.call('turn/interrupt', { threadId, turnId });
  const { turn } = await session.until('turn/cancelled');
  t.match(results(turn.items), [{ outcome: 'cancelled' }]);
  answer(sunny);
  await session.call('thread/list', {});
});

scenario(t, 'a tool of the client that needs approval is not called before it', {}, async (t, { open }) => {
  const approval = { kind: 'remoteResource', targetArgument: 'where', operation: 'look at' } as const;
  const decisions = ['accept', 'decline'];
  const session = await open({ onTool: () => sunny, onApproval: () => ({ decision: decisions.shift() }) });
  const { threadId } = await session.begin(ask, { dynamicTools: [{ ...weather, approval }] });
  await session.until('turn/completed');
  t.match(session.approvals, [{ approvalType: 'remoteResource', operation: 'look at', target: 'here' }]);
  await session.say(threadId, ask);
  const { turn } = await session.until('turn/completed', undefined, 2);
  t.match(results(turn.items), [{ outcome: 'declined' }]);
  t.equal(session.toolCalls.length, 1);
});

scenario(t, 'a duplicate tool name is refused without a change', {}, async (t, { open }) => {
  const session = await open({ onTool: () => sunny });
  const conflict = { name: 'toolConflict', code: -32_016 };
  const exec = { ...weather, namespace: undefined, name: 'Exec' };
  t.match(await session.refused('thread/start', { dynamicTools: [exec] }), { ...conflict, data: { tool: 'Exec' } });
  t.match(await session.refused('thread/start', { dynamicTools: [weather, weather] }), conflict);
  t.same((await session.call('thread/list', {})).data, []);
  const { threadId } = await session.begin(ask, { dynamicTools: [weather] });
  await session.until('turn/completed');
  t.match(await session.refused('thread/resume', { threadId, dynamicTools: [exec] }), conflict);
  t.match(await session.refused('thread/resume', { threadId: 'none', dynamicTools: [weather] }), {
    name: 'threadNotFound',
  });
  await session.call('turn/start', { threadId, input: words(ask) });
  const { turn } = await session.until('turn/completed', undefined, 2);
  t.match(results(turn.items), [{ text: 'sunny' }], 'the tools from before are still there');
  t.match(await session.refused('thread/start', { dynamicTools: [{ ...weather, name: 'no spaces' }] }), {
    name: 'invalidParams',
    data: { path: 'dynamicTools.0.name' },
  });
});

t.test('a client that never reads is disconnected, and others are served', async (t) => {
  const { server } = await startServer(t);
  const deaf = new WebSocket(server.webSocketUrl);
  await once(deaf, 'open');
  const closed = once(deaf, 'close');
  const ask = (id: number, method: string, params: unknown) =>
    deaf.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  ask(0, 'initialize', { clientInfo: { name: 'deaf', version: '1' } });
  ask(1, 'thread/start', { displayName: 'x'.repeat(1_048_576) });
  await once(deaf, 'message');
  deaf.pause();
  for (let id = 2; id < 60; id += 1) ask(id, 'thread/list', {});
  const other = await Session.open(t, server.webSocketUrl);
  await other.begin('echo well');
  await other.until('turn/completed');
  const health = async () => (await fetch(`${server.baseUrl}/healthz`)).json();
  await eventually(async () => ((await health()).connections === 1 ? true : undefined), 'it is disconnected');
  deaf.resume();
  const [code] = await closed;
  t.ok(code === 1013 || code === 1006, `closed with ${code}`);
});
