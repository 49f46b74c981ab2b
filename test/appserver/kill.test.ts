/**
 * kill -9 in every state of a turn. The server is its own process, and clients record all notifications. The next server must
 * have all of them, must report how each turn ended, and must not leave a process of the dead one alive.
 */
import { randomInt } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Item, Turn } from '../../src/protocol/index.ts';
import { carries, scanProcesses } from '../../src/supervise/scan.ts';
import {
  Client,
  eventually,
  type Message,
  makeWorkspace,
  readLock,
  serving,
  spawnServer,
  stateOf,
  words,
} from './harness.ts';

/** State of a turn, the prompt that leads there, and the message that shows it. */
interface State {
  readonly name: string;
  readonly prompt: string;
  readonly config?: Readonly<Record<string, unknown>>;
  /** Inputs of the turns before. */
  readonly before?: readonly string[];
  readonly isThere: (message: Message) => boolean;
  /** Smallest number of processes in this state. None may be alive once the next server serves. */
  readonly processes?: number;
  /** Called in the state, before the kill. */
  readonly push?: (client: Client, threadId: string, turnId: string) => unknown;
}

const isItem = (method: string, type: Item['type']) => (message: Message) =>
  message.method === method && message.params.item.type === type;
const isOutput = ({ method, params }: Message) =>
  method === 'item/commandExecution/outputDelta' && /started/.test(params.delta);
const free = { approvalPolicy: 'autoApprove' };
/** A child in the process group, one that left it, one that ignores SIGTERM. */
const forks = "sleep 3001 & setsid sleep 3002 & (trap '' TERM; sleep 3003) & echo started; wait";

/** States that end by themselves: a server is killed while a turn is in one of them. */
const passing: readonly State[] = [
  { name: 'preparing', prompt: 'echo x', isThere: ({ result }) => result?.turn !== undefined },
  {
    name: 'inferring (thinking)',
    prompt: 'think about life\nread x',
    isThere: ({ method }) => method === 'item/reasoning/delta',
  },
  { name: 'inferring (text)', prompt: 'count to 1000', isThere: ({ method }) => method === 'item/agentMessage/delta' },
  { name: 'reviewing', prompt: 'run: touch x', isThere: isItem('item/completed', 'toolCall') },
  {
    name: 'compacting',
    prompt: `echo ${'x'.repeat(1_000)}`,
    before: [1, 2, 3, 4].map((number) => `echo ${String(number).repeat(1_000)}`),
    isThere: ({ method, params }) => method === 'system/event' && params.kind === 'compacting',
  },
  {
    name: 'cancelling',
    prompt: "run: trap '' TERM; echo started; sleep 3004; sleep 3005",
    config: free,
    isThere: isOutput,
    push: (client, threadId, turnId) => client.call('turn/interrupt', { threadId, turnId }),
  },
];

/** States in which a turn stays, each in a thread of its own while another turn comes into a passing one. */
const lasting: readonly State[] = [
  {
    name: 'runningTools (much output)',
    prompt: 'run: echo started; yes',
    config: free,
    isThere: isOutput,
  },
  { name: 'runningTools (a command)', prompt: `run: ${forks}`, config: free, isThere: isOutput, processes: 4 },
  {
    name: 'runningTools (a sub-agent)',
    prompt: `delegate: "run: ${forks}"`,
    config: free,
    isThere: isItem('item/completed', 'toolCall'),
    processes: 4,
    push: async (client, parentId) => {
      const { params } = await client.until(
        ({ method, params }) =>
          method === 'thread/runtimeChanged' && params.threadId !== parentId && params.runtime.running,
        'the sub-agent runs',
      );
      await client.call('thread/subscribe', { threadId: params.threadId, replayRecent: true });
      await client.until(
        (message) =>
          isOutput(message) || (message.method === 'turn/started' && /"output":"started/.test(JSON.stringify(message))),
        'its command runs',
      );
    },
  },
  {
    name: 'a background process',
    prompt: `call Exec ${JSON.stringify({ command: forks, background: true })}`,
    config: free,
    isThere: isItem('item/completed', 'toolResult'),
    processes: 4,
  },
  { name: 'awaitingApproval', prompt: 'run: touch x', isThere: ({ method }) => method === 'item/approval/request' },
];

/** Items that a client has received: complete ones, and the text so far of streamed ones. */
function heardOf(messages: readonly Message[]) {
  const begun = new Map<string, Item>();
  const whole = new Map<string, Item>();
  const grown = new Map<string, string>();
  const turns = new Set<string>();
  for (const { method = '', params } of messages) {
    if (method === 'turn/started') {
      turns.add(params.turn.id);
      // A client that subscribes during a turn receives the texts so far, then deltas.
      for (const item of params.turn.items) grown.set(item.id, textOf(item));
    }
    if (method === 'item/started') begun.set(params.item.id, params.item);
    if (method === 'item/completed') whole.set(params.item.id, params.item);
    if (/^item\/(agentMessage|reasoning|commandExecution)\/\w*delta$/i.test(method)) {
      grown.set(params.itemId, (grown.get(params.itemId) ?? '') + params.delta);
    }
  }
  return { begun, whole, grown, turns };
}

const textOf = (item: Item | undefined): string =>
  item?.type === 'commandExecution' ? item.output : item && 'text' in item ? item.text : '';

/** Checks that the stored turns contain everything that was sent to the client. */
function nothingLost(t: Test, messages: readonly Message[], turns: readonly Turn[]): void {
  const items = new Map(turns.flatMap((turn) => turn.items).map((item) => [item.id, item]));
  const heard = heardOf(messages);
  const lost = [
    ...[...heard.turns].filter((id) => !turns.some((turn) => turn.id === id)),
    ...[...heard.begun].flatMap(([id, { type }]) => (items.get(id)?.type === type ? [] : [`${id} ${type}`])),
    ...[...heard.grown].flatMap(([id, text]) => (textOf(items.get(id)).startsWith(text) ? [] : [`text of ${id}`])),
  ];
  t.same(lost, [], 'no turn, item or delta is lost');
  for (const [id, item] of heard.whole) t.same(items.get(id), item, 'a completed item is unchanged');
  t.same(
    [...items.values()].filter(({ status }) => status !== 'completed'),
    [],
    'every item is complete',
  );
}

const aboutThread = (messages: readonly Message[], threadId: string) =>
  messages.filter(({ params }) => params?.threadId === threadId);

/** Threads of sub-agents: this client has subscribed to no other. */
const childrenOf = (messages: readonly Message[], threadId: string) =>
  new Set<string>(
    messages.flatMap(({ method, params }) =>
      method === 'turn/started' && params.threadId !== threadId ? [params.threadId] : [],
    ),
  );

const carriersOf = async (incarnation: string) =>
  (await scanProcesses()).filter((entry) => !entry.zombie && carries(entry, incarnation)).map(({ pid }) => pid);

/** Brings a new thread into a state. @returns ids of the thread and of its turn */
async function reach({ prompt, config, before = [], isThere, push }: State, client: Client) {
  const { thread } = await client.call('thread/start', { ...(config && { config }) });
  const threadId: string = thread.id;
  await client.call('thread/subscribe', { threadId });
  for (const [index, said] of before.entries()) {
    await client.call('turn/start', { threadId, input: words(said) });
    const id = `turn_${String(index + 1).padStart(3, '0')}`;
    await client.until(({ method, params }) => method === 'turn/completed' && params.turn.id === id, id);
  }
  const from = client.messages.length;
  const { turn } = await client.call('turn/start', { threadId, input: words(prompt) });
  await client.until((message) => client.messages.indexOf(message) >= from && isThere(message), `${prompt} is there`);
  await push?.(client, threadId, turn.id);
  return { threadId, turnId: turn.id as string };
}

/** A turn in its state, and the client that follows it. */
interface Reached {
  readonly state: State;
  readonly client: Client;
  readonly threadId: string;
  readonly turnId: string;
}

/** Checks the turn that the server returns after the kill, and that its thread continues. */
async function recovered(t: Test, next: Client, { state, client, threadId, turnId }: Reached, killedAt: number) {
  const { thread } = await next.call('thread/resume', { threadId });
  nothingLost(t, aboutThread(client.messages, threadId), thread.turns);
  const turn = thread.turns.at(-1);
  t.equal(turn.id, turnId);
  const end = client.messages.find(
    ({ method, params }) => /^turn\/c/.test(method) && params.threadId === threadId && params.turn.id === turnId,
  );
  // An end is stored before it is sent: after a kill between the two the turn has ended without a notification.
  const hasEnded = turn.interruptedBy !== 'crash' && Date.parse(turn.completedAt) <= killedAt;
  const ending = state.name === 'cancelling' ? { status: 'cancelled', interruptedBy: 'user' } : { status: 'completed' };
  if (end) t.same(turn, end.params.turn, 'it had ended before');
  else if (hasEnded) t.match(turn, ending, 'it had ended before, without a notification');
  else t.match(turn, { status: 'cancelled', interruptedBy: 'crash', completedAt: String });
  t.same((await next.call('approval/list', {})).data, [], 'no approval is pending');
  const { data } = await next.call('thread/list', {});
  t.notOk(data.some(({ runtime }: Message) => runtime.running || runtime.waitingOnApproval));
  for (const child of childrenOf(client.messages, threadId)) {
    const { thread } = await next.call('thread/read', { threadId: child, includeTurns: true });
    t.match(thread, { parentThreadId: threadId, turns: [{ status: 'cancelled', interruptedBy: 'crash' }] });
    nothingLost(t, aboutThread(client.messages, child), thread.turns);
  }

  await next.call('turn/start', { threadId, input: words('echo still here') });
  const { params } = await next.notification('turn/completed');
  t.match(params.turn.items.at(-1), { type: 'agentMessage', text: /still here/ });
  t.not(params.turn.id, turnId);
}

/** Turns of one kill, and when it comes. */
interface Kill {
  readonly lasting: readonly State[];
  readonly passing: readonly State[];
  /** Longest time after the states, of which a random part passes. */
  readonly maxDelayMs: number;
}

/** Every state twice: at once with a passing state of its own, and two of a kind together at a random moment after both. */
const kills: readonly Kill[] = [
  ...passing.map((state, n): Kill => ({ lasting: lasting.slice(n, n + 1), passing: [state], maxDelayMs: 0 })),
  ...[0, 2, 4].map(
    (n): Kill => ({ lasting: lasting.slice(n, n + 2), passing: passing.slice(n, n + 2), maxDelayMs: 60 }),
  ),
];

t.test('after kill -9 in any state of a turn the next server has every message', async (all) => {
  const Compaction = { ContextWindow: 2_000, ReserveTokens: 500, KeepRecentTurns: 2 };
  const { path, home } = makeWorkspace(all, { Compaction, Turns: { Resume: 'never' } });
  let server = spawnServer(all, { path, home });
  let lock = await serving(server, path);
  for (const [number, { lasting, passing, maxDelayMs }] of kills.entries()) {
    const names = [...lasting, ...passing].map(({ name }) => name);
    await all.test(`kill ${number + 1}: ${names.join(', ')}`, async (t) => {
      const begin = async (state: State): Promise<Reached> => {
        const client = await Client.ready(t, lock.endpoints.appServerWebSocket);
        return { state, client, ...(await reach(state, client)) };
      };
      const reached: Reached[] = [];
      let processes = 0;
      for (const state of lasting) {
        reached.push(await begin(state));
        processes += state.processes ?? 0;
        // During `exec` a process shows no environment for a moment.
        const alive = await eventually(async () => {
          const carriers = await carriersOf(lock.incarnation ?? '');
          return carriers.length >= processes ? carriers : undefined;
        }, `${processes} processes`);
        t.ok(alive.length >= processes, `${alive.length} processes at this moment`);
      }
      reached.push(...(await Promise.all(passing.map(begin))));
      if (maxDelayMs > 0) await sleep(randomInt(maxDelayMs));
      server.child.kill('SIGKILL');
      await Promise.all([server.ended, ...reached.map(({ client }) => client.closed)]);
      const killedAt = Date.now();
      const dead = readLock(path)?.incarnation ?? '';
      t.equal(dead, lock.incarnation, 'the address file of the dead server exists');

      server = spawnServer(all, { path, home });
      lock = await serving(server, path);
      t.same(await carriersOf(dead), [], 'no process of the dead server runs');
      for (const each of reached) {
        const next = await Client.ready(t, lock.endpoints.appServerWebSocket);
        await recovered(t, next, each, killedAt);
        await next.close();
      }
    });
  }
  server.child.kill('SIGTERM');
  all.equal(await server.ended, 0);
  const database = new DatabaseSync(`${stateOf(path)}/state.db`);
  all.teardown(() => database.close());
  all.match(database.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
});

t.test('after kill -9 in a turn the thread and the day have the same cost', async (t) => {
  const { path, home } = makeWorkspace(t, {
    Turns: { Resume: 'never' },
    Models: { demo: { Price: { input: 1_000, output: 1_000 } } },
  });
  const killed = spawnServer(t, { path, home });
  const url = (await serving(killed, path)).endpoints.appServerWebSocket;
  const command = { prompt: 'run: echo started; sleep 3006', config: free, isThere: isOutput };
  const own = await reach({ name: 'a command', ...command }, await Client.ready(t, url));
  const subAgent = lasting.find(({ name }) => name.includes('sub-agent'));
  if (!subAgent) throw new Error('the state of a sub-agent is missing');
  const parent = await reach(subAgent, await Client.ready(t, url));
  killed.child.kill('SIGKILL');
  await killed.ended;

  const server = spawnServer(t, { path, home });
  const next = await Client.ready(t, (await serving(server, path)).endpoints.appServerWebSocket);
  const costs: number[] = [];
  for (const { threadId } of [own, parent]) {
    const { thread } = await next.call('thread/resume', { threadId });
    t.match(thread.turns, [{ status: 'cancelled', interruptedBy: 'crash', tokenUsage: { costUsd: Number } }]);
    costs.push(thread.turns[0].tokenUsage.costUsd);
  }
  const ledger = new DatabaseSync(`${home}/spending.db`, { readOnly: true });
  t.teardown(() => ledger.close());
  const today = Number(ledger.prepare('SELECT total(usd) AS usd FROM spending').get()?.['usd']);
  t.ok(today > 0, 'something was spent');
  const sum = costs.reduce((all, cost) => all + cost, 0);
  t.ok(Math.abs(sum - today) < 1e-9, `the threads have ${sum}, the day ${today}`);
});
