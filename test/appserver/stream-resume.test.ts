/** Clients that add up the stream of a turn, whose agent servers are killed at random moments of it. */
import t, { type Test } from 'tap';
import type { Item } from '../../src/protocol/index.ts';
import { Client, type Message, makeWorkspace, serving, spawnServer, words } from './harness.ts';

/** Adds up the items of one turn, over several connections, and checks each step. */
class AddedItems {
  readonly items = new Map<string, Message>();
  readonly #t: Test;
  #isJoining = false;

  constructor(t: Test) {
    this.#t = t;
  }

  /** The next turn/started is a replay to a new connection. */
  rejoin(): void {
    this.#isJoining = true;
  }

  take({ method, params }: Message): void {
    if (method === 'turn/started') this.#restate(params.turn.items);
    else if (method === 'item/started') this.#add(params.item);
    else if (method === 'item/completed') this.#complete(params.item);
    else if (method === 'item/discarded') for (const id of params.itemIds) this.#of(id).discarded = true;
    else if (/^item\/(agentMessage|reasoning)\/delta$/.test(method)) this.#grow(params.itemId, params.delta);
  }

  #restate(items: readonly Message[]): void {
    this.#t.equal(this.#isJoining, this.items.size > 0, 'a turn starts once, and again only for a new connection');
    this.#isJoining = false;
    const stored = new Map(items.map((item) => [item.id, item]));
    for (const [id, { text, status, type }] of this.items) {
      const now = stored.get(id);
      if (status === 'completed') this.#t.equal(now?.text, text, `the closed ${type} ${id} stays`);
      else if (!now?.text?.startsWith(text)) this.#t.fail(`${id}: “${text}” was heard, and “${now?.text}” is stored`);
    }
    this.items.clear();
    for (const item of items) this.items.set(item.id, { ...item });
  }

  #add(item: Message): void {
    if (numberOf(item) !== this.items.size + 1) this.#t.fail(`${item.id} comes after ${this.items.size} items`);
    this.items.set(item.id, { ...item });
  }

  #grow(id: string, delta: string): void {
    const item = this.#of(id);
    if (item.status === 'completed') this.#t.fail(`the closed ${id} grows`);
    item.text += delta;
  }

  #complete(item: Message): void {
    const known = this.items.get(item.id);
    if (!known) this.#add(item);
    else {
      this.#t.equal(item.text, known.text, `the pieces of ${item.id} add up`);
      this.items.set(item.id, { ...item });
    }
  }

  #of(id: string): Message {
    const item = this.items.get(id);
    if (!item) throw new Error(`${id} is unknown`);
    return item;
  }
}

const numberOf = ({ id }: Pick<Item, 'id'>): number => Number(/\d+$/.exec(id)?.[0]);
const isDelta = ({ method }: Message) => /\/delta$/.test(method ?? '');
const isEnd = ({ method }: Message) => /^turn\/(completed|failed|cancelled)$/.test(method ?? '');

for (const kills of [1, 2, 3]) {
  t.test(`the stream of a turn adds up over ${kills} kills at random moments`, async (t) => {
    const { path, home } = makeWorkspace(t);
    const added = new AddedItems(t);
    let threadId = '';
    let turn: Message;
    for (let kill = 0; kill <= kills; kill += 1) {
      const server = spawnServer(t, { path, home });
      const client = await Client.ready(t, (await serving(server, path)).endpoints.appServerWebSocket);
      let taken = 0;
      const takeAll = () => {
        for (const message of client.messages.slice(taken)) added.take(message);
        taken = client.messages.length;
      };
      if (kill === 0) {
        threadId = (await client.call('thread/start', {})).thread.id;
        await client.call('thread/subscribe', { threadId });
        await client.call('turn/start', { threadId, input: words('count to 300') });
      } else {
        added.rejoin();
        await client.call('thread/subscribe', { threadId, replayRecent: true });
      }
      if (kill === kills) {
        turn = (await client.until(isEnd, 'the end of the turn')).params.turn;
        takeAll();
        break;
      }
      const moment = 1 + Math.floor(Math.random() * 20);
      t.comment(`kill ${kill + 1} after ${moment} deltas`);
      await client.until(() => client.messages.filter(isDelta).length >= moment, `${moment} deltas`);
      server.child.kill('SIGKILL');
      await Promise.all([server.ended, client.closed]);
      takeAll();
    }
    t.match(turn, { status: 'completed', resumes: kills });
    t.strictSame([...added.items.values()], turn.items);
    const answers = turn.items.filter(({ type, discarded }: Message) => type === 'agentMessage' && !discarded);
    t.equal(answers.length, 1, 'the answer is there once');
    t.match(answers[0].text, /\b299\b.*\b300\b/s);
  });
}
