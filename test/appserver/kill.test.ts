/**
 * kill -9 in every state of a turn. The server is a process of its own; a client writes down all that it hears. The server
 * that comes next must know all of it, must say how the turn ended, and must not leave a process of the dead one alive.
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

const rounds = 20;

/** A state of a turn, how to get there, and how a client sees that it is there. */
interface State {
  readonly name: string;
  readonly prompt: string;
  readonly config?: Readonly<Record<string, unknown>>;
  /** What is said before, turn by turn. */
  readonly before?: readonly string[];
  readonly isThere: (message: Message) => boolean;
  /** Processes that are there then, at least: none of them may outlive the server that follows. */
  readonly processes?: number;
  /** Called when it is there, before the kill. */
  readonly push?: (client: Client, threadId: string, turnId: string) => unknown;
}

const isItem = (method: string, type: Item['type']) => (message: Message) =>
  message.method === method && message.params.item.type === type;
const isOutput = ({ method, params }: Message) =>
  method === 'item/commandExecution/outputDelta' && /started/.test(params.delta);
const free = { approvalPolicy: 'autoApprove' };
/** One child in its group, one that left it, one that clings to life. */
const forks = "sleep 3001 & setsid sleep 3002 & (trap '' TERM; sleep 3003) & echo started; wait";

const states: readonly State[] = [
  { name: 'preparing', prompt: 'echo x', isThere: ({ result }) => result?.turn !== undefined },
  {
    name: 'inferring (thinking)',
    prompt: 'think about life\nread x',
    isThere: ({ method }) => method === 'item/reasoning/delta',
  },
  { name: 'inferring (text)', prompt: 'count to 1000', isThere: ({ method }) => method === 'item/agentMessage/delta' },
  { name: 'reviewing', prompt: 'run: echo x', isThere: isItem('item/completed', 'toolCall') },
  { name: 'awaitingApproval', prompt: 'run: echo x', isThere: ({ method }) => method === 'item/approval/request' },
  { name: 'runningTools (a command)', prompt: `run: ${forks}`, config: free, isThere: isOutput, processes: 4 },
  {
    name: 'runningTools (much output)',
    prompt: 'run: echo started; yes',
    config: free,
    isThere: isOutput,
  },
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
    name: 'cancelling',
    prompt: "run: trap '' TERM; echo started; sleep 3004; sleep 3005",
    config: free,
    isThere: isOutput,
    push: (client, threadId, turnId) => client.call('turn/interrupt', { threadId, turnId }),
  },
  {
    name: 'compacting',
    prompt: `echo ${'x'.repeat(1_000)}`,
    before: [1, 2, 3, 4].map((number) => `echo ${String(number).repeat(1_000)}`),
    isThere: ({ method, params }) => method === 'system/event' && params.kind === 'compacting',
  },
];

/** What a client was told of items: those that it knows whole, and the text so far of those that grew. */
function heardOf(messages: readonly Message[]) {
  const begun = new Map<string, Item>();
  const whole = new Map<string, Item>();
  const grown = new Map<string, string>();
  const turns = new Set<string>();
  for (const { method = '', params } of messages) {
    if (method === 'turn/started') {
      turns.add(params.turn.id);
      // Who comes in the middle of a turn is told how its texts stand, and then what is added to them.
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

/** Everything that was announced is there. */
function nothingLost(t: Test, messages: readonly Message[], turns: readonly Turn[]): void {
  const items = new Map(turns.flatMap((turn) => turn.items).map((item) => [item.id, item]));
  const heard = heardOf(messages);
  const lost = [
    ...[...heard.turns].filter((id) => !turns.some((turn) => turn.id === id)),
    ...[...heard.begun].flatMap(([id, { type }]) => (items.get(id)?.type === type ? [] : [`${id} ${type}`])),
    ...[...heard.grown].flatMap(([id, text]) => (textOf(items.get(id)).startsWith(text) ? [] : [`text of ${id}`])),
  ];
  t.same(lost, [], 'no turn, item or delta is lost');
  for (const [id, item] of heard.whole) t.same(items.get(id), item, 'an item that was whole is what it was');
  t.same(
    [...items.values()].filter(({ status }) => status !== 'completed'),
    [],
    'nothing is left open',
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

/** Brings a new thread into a state. @returns what is to be looked at after the kill */
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

t.test(`${rounds} rounds`, async (all) => {
  const Compaction = { ContextWindow: 2_000, ReserveTokens: 500, KeepRecentTurns: 2 };
  const { path, home } = makeWorkspace(all, { Compaction });
  let server = spawnServer(all, { path, home });
  let lock = await serving(server, path);
  for (let round = 0; round < rounds; round += 1) {
    const state = states[round % states.length];
    if (!state) break;
    await all.test(`round ${round + 1}: ${state.name}`, async (t) => {
      const client = await Client.ready(t, lock.endpoints.appServerWebSocket);
      const { threadId, turnId } = await reach(state, client);
      // The second time round the moment is anywhere near the state.
      if (round >= states.length) await sleep(randomInt(60));
      // A process that is just becoming another program shows no environment for a moment.
      const alive = await eventually(async () => {
        const carriers = await carriersOf(lock.incarnation ?? '');
        return carriers.length >= (state.processes ?? 0) ? carriers : undefined;
      }, `${state.processes} processes`);
      t.ok(alive.length >= (state.processes ?? 0), `${alive.length} processes at this moment`);
      server.child.kill('SIGKILL');
      await Promise.all([server.ended, client.closed]);
      const killedAt = Date.now();
      const dead = readLock(path)?.incarnation ?? '';
      t.equal(dead, lock.incarnation, 'the dead server’s address is still there');

      server = spawnServer(all, { path, home });
      lock = await serving(server, path);
      t.same(await carriersOf(dead), [], 'no process of the dead server is left');
      const next = await Client.ready(t, lock.endpoints.appServerWebSocket);
      const { thread } = await next.call('thread/resume', { threadId });
      nothingLost(t, aboutThread(client.messages, threadId), thread.turns);
      const turn = thread.turns.at(-1);
      t.equal(turn.id, turnId);
      const end = client.messages.find(({ method, params }) => /^turn\/c/.test(method) && params.turn.id === turnId);
      // An end is written, then told: killed between the two, the server has ended the turn and nobody has heard of it.
      const hasEnded = turn.interruptedBy !== 'crash' && Date.parse(turn.completedAt) <= killedAt;
      const ending =
        state.name === 'cancelling' ? { status: 'cancelled', interruptedBy: 'user' } : { status: 'completed' };
      if (end) t.same(turn, end.params.turn, 'it had ended before');
      else if (hasEnded) t.match(turn, ending, 'it had ended before, unheard');
      else t.match(turn, { status: 'cancelled', interruptedBy: 'crash', completedAt: String });
      t.same((await next.call('approval/list', {})).data, [], 'nobody waits for an answer');
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
      await next.close();
    });
  }
  server.child.kill('SIGTERM');
  all.equal(await server.ended, 0);
  const database = new DatabaseSync(`${stateOf(path)}/state.db`);
  all.teardown(() => database.close());
  all.match(database.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
});
