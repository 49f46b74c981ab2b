/** A turn that is followed over lost connections to a real agent server. */
import { once } from 'node:events';
import t, { type Test } from 'tap';
import {
  AppServerClient,
  AppServerConnectionError,
  lastingTurn,
  startThread,
  startTurn,
  type TurnEvent,
} from '../../src/client/index.ts';
import { surroundings } from '../acp/harness.ts';
import { scripted } from '../agui/model.ts';

/** A turn that says pieces of text, each when the test lets it. */
async function talking(t: Test, pieces: readonly string[]) {
  const gates = pieces.map(() => Promise.withResolvers<void>());
  const provider = scripted(async (_, emit, signal) => {
    const aborted = once(signal, 'abort').then(() => {
      throw signal.reason;
    });
    aborted.catch(() => undefined);
    for (const [index, text] of pieces.entries()) {
      await Promise.race([gates[index]?.promise, aborted]);
      emit({ type: 'text', text });
    }
    emit({ type: 'finish', reason: 'stop' });
  });
  const { server, workspace } = await surroundings(t, provider);
  const connect = async () => {
    const client = await AppServerClient.connect(server.webSocketUrl);
    t.teardown(() => client.close());
    return client;
  };
  const first = await connect();
  const threadId = await startThread(first, { workspacePath: workspace });
  const turn = await startTurn(first, threadId, 'go');
  return { first, turn, connect, say: (index: number) => gates[index]?.resolve() };
}

const textOf = (events: readonly TurnEvent[]) => events.map((event) => ('text' in event ? event.text : '')).join('');

t.test('a message that is cut by a lost connection is continued without gap or repetition', async (t) => {
  const { first, turn, connect, say } = await talking(t, ['one ', 'two ', 'three']);
  const events: TurnEvent[] = [];
  let connections = 0;
  const lasting = lastingTurn(turn, async () => {
    connections += 1;
    // Said while there is no connection.
    say(1);
    const next = await connect();
    setImmediate(() => say(2));
    return next;
  });
  say(0);
  for await (const event of lasting) {
    events.push(event);
    if (textOf(events) === 'one ') first.close();
  }
  t.equal(connections, 1);
  t.equal(textOf(events), 'one two three');
  t.equal(events.at(-1)?.type, 'completed');
});

t.test('a turn that ended without a connection is reported with its whole text', async (t) => {
  const { first, turn, connect, say } = await talking(t, ['one ', 'two']);
  const observer = await connect();
  await observer.request('thread/subscribe', { threadId: turn.threadId });
  const ended = new EventTarget();
  observer.onNotification(({ method }) => method === 'turn/completed' && ended.dispatchEvent(new Event('completed')));
  const events: TurnEvent[] = [];
  say(0);
  for await (const event of lastingTurn(turn, async () => {
    const isOver = once(ended, 'completed');
    say(1);
    await isOver;
    return connect();
  })) {
    events.push(event);
    if (textOf(events) === 'one ') first.close();
  }
  t.equal(textOf(events), 'one two');
  t.equal(events.at(-1)?.type, 'completed');
});

t.test('an interruption that had no connection reaches the server over the next one', async (t) => {
  const { first, turn, connect, say } = await talking(t, ['one ', 'never']);
  const lasting = lastingTurn(turn, connect);
  const events: TurnEvent[] = [];
  say(0);
  for await (const event of lasting) {
    events.push(event);
    if (textOf(events) !== 'one ' || events.some(({ type }) => type === 'cancelled')) continue;
    first.close();
    await lasting.interrupt().catch(() => undefined);
  }
  t.equal(events.at(-1)?.type, 'cancelled');
});

t.test('a follower that does not reconnect gets the reason', async (t) => {
  const { first, turn, say } = await talking(t, ['one ', 'never']);
  const lasting = lastingTurn(turn, (reason) => Promise.reject(reason));
  say(0);
  await t.rejects(async () => {
    for await (const event of lasting) if (event.type === 'message') first.close();
  }, AppServerConnectionError);
});

t.test('a connection lost before the turn is joined is also replaced', async (t) => {
  const { first, turn, connect, say } = await talking(t, ['one ', 'two']);
  const events: TurnEvent[] = [];
  let connections = 0;
  say(0);
  for await (const event of lastingTurn(turn, async () => {
    connections += 1;
    const next = await connect();
    if (connections === 1) next.close();
    else setImmediate(() => say(1));
    return next;
  })) {
    events.push(event);
    if (textOf(events) === 'one ') first.close();
  }
  t.equal(connections, 2);
  t.equal(textOf(events), 'one two');
  t.equal(events.at(-1)?.type, 'completed');
});

t.test('a turn that the next server does not know is given up', async (t) => {
  const { first, turn, connect, say } = await talking(t, ['one ', 'never']);
  let connections = 0;
  const elsewhere = { ...turn, turnId: 'turn_999', [Symbol.asyncIterator]: () => turn[Symbol.asyncIterator]() };
  const lasting = lastingTurn(elsewhere, () => {
    connections += 1;
    return connect();
  });
  say(0);
  await t.rejects(async () => {
    for await (const event of lasting) if (event.type === 'message') first.close();
  }, /no longer knows the turn/);
  t.equal(connections, 1);
});
