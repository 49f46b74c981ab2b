/**
 * Three approvers of the same requests over the product's own code, without sockets: a terminal and an editor on JSON-RPC
 * connections of the agent server, a page through the Hub's inbox. A seeded scheduler delivers, loses and orders their frames,
 * cuts connections and the Hub's feed, and restarts the Hub. `ORATORIO_TEST_INBOX_INTERLEAVINGS=100000` runs as many requests.
 */
import t from 'tap';
import * as v from 'valibot';
import { nextRandom } from '../../machines/index.ts';
import { decisionOf } from '../../src/acp/permission.ts';
import type { Runtime } from '../../src/agent/index.ts';
import { Connection } from '../../src/appserver/connection.ts';
import { Inbox as AgentInbox } from '../../src/appserver/inbox.ts';
import { methodsOf } from '../../src/appserver/methods.ts';
import { SseParser } from '../../src/client/index.ts';
import { HttpError } from '../../src/http/index.ts';
import type { AnswerOutcome } from '../../src/hub/inbox/index.ts';
import { Inbox as HubInbox, type InboxWorkspace } from '../../src/hub/inbox/index.ts';
import { InboxDecision, type InboxHistoryEntry, inboxFeed } from '../../src/protocol/index.ts';
import { answers, call, listening, say, service, text, tool } from '../agent/helpers.ts';

const total = Number(process.env['ORATORIO_TEST_INBOX_INTERLEAVINGS'] ?? 1_500);
const perTurn = 20;
const words = ['accept', 'accept', 'decline', 'acceptForSession'] as const;
type Word = (typeof words)[number];
/** `lost`: it never arrives. `unheard`: it arrives, and its reply does not. */
type Cut = 'none' | 'lost' | 'unheard';

/** Outcome of an answer as its approver knows it; `said` is absent where the connection was cut or no reply exists. */
interface Resolution {
  readonly word: Word;
  readonly said?: 'won' | 'lost';
  readonly made?: string;
}

class Chance {
  #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  below(limit: number): number {
    const { random, seed } = nextRandom(this.#seed);
    this.#seed = seed;
    return Math.floor(random * limit);
  }

  of<T>(list: readonly T[]): T {
    const found = list[this.below(list.length)];
    if (found === undefined) throw new Error('nothing to choose from');
    return found;
  }
}

/** One client on a connection of the agent server: its messages arrive when the test says so. */
class Client {
  readonly #runtime: Runtime;
  readonly #name: string;
  readonly #threadId: string;
  readonly replies = new Map<string, { readonly result?: unknown; readonly error?: { readonly message: string } }>();
  /** JSON-RPC ids of the questions of the server, by request. */
  readonly questions = new Map<string, string>();
  #connection: Connection | undefined;
  #number = 0;

  constructor(runtime: Runtime, name: string, threadId: string) {
    this.#runtime = runtime;
    this.#name = name;
    this.#threadId = threadId;
  }

  connect(): void {
    this.close();
    this.questions.clear();
    const connection = new Connection({
      wire: { send: (frame) => this.#hear(frame) },
      methods: methodsOf(this.#runtime, {} as never, {} as never, {} as never, {} as never, {} as never),
      feed: this.#runtime.feed,
      respond: (...answer) => this.#runtime.turns.respond(...answer),
      onBug: (error) => {
        throw error;
      },
    });
    this.#connection = connection;
    this.send('initialize', {
      clientInfo: { name: this.#name, version: '1' },
      capabilities: { approvalSupport: true },
    });
    connection.receive(JSON.stringify({ jsonrpc: '2.0', method: 'initialized', params: {} }));
    this.send('thread/subscribe', { threadId: this.#threadId, replayRecent: true });
  }

  send(method: string, params: unknown): string {
    this.#number += 1;
    const id = `${this.#name}-${this.#number}`;
    this.#connection?.receive(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return id;
  }

  /** Answers the question of the server, as the link of an editor does. False: it was withdrawn, or never heard. */
  reply(requestId: string, decision: string): boolean {
    const id = this.questions.get(requestId);
    if (id === undefined) return false;
    this.#connection?.receive(JSON.stringify({ jsonrpc: '2.0', id, result: { decision } }));
    return true;
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  #hear(frame: string): void {
    const message = JSON.parse(frame);
    if (message.method === 'item/approval/request') this.questions.set(message.params.requestId, message.id);
    else if (message.method === 'item/approval/resolved') this.questions.delete(message.params.requestId);
    else if (message.id !== undefined) this.replies.set(message.id, message);
  }
}

/** The Hub: its inbox, and the feed that it reads from the agent server. */
class Hub {
  readonly workspace: InboxWorkspace = { id: 'aaaabbbbccccdddd', path: '/work', secrets: new Set() };
  readonly history: InboxHistoryEntry[] = [];
  readonly #agent: AgentInbox;
  #leave: () => void = () => {};
  inbox: HubInbox;

  constructor(agent: AgentInbox) {
    this.#agent = agent;
    this.inbox = this.#make();
    this.follow();
  }

  #make(): HubInbox {
    return new HubInbox({
      publish: () => {},
      record: (entry) => this.history.push(entry),
      observe: () => {},
      onFault: (error) => {
        throw error;
      },
    });
  }

  restart(): void {
    this.unfollow();
    this.inbox = this.#make();
    this.follow();
  }

  follow(): void {
    this.unfollow();
    const parser = new SseParser({ onMessage: ({ event, data }) => this.#take(event, data) });
    const push = (batch: Uint8Array) => parser.push(Buffer.from(batch).toString());
    for (const batch of this.#agent.replay()) push(batch);
    this.#leave = this.#agent.subscribe(push, () => {});
  }

  unfollow(): void {
    this.#leave();
    this.#leave = () => {};
  }

  #take(event: string, data: string): void {
    const json: unknown = JSON.parse(data);
    if (event === 'added') this.inbox.add(this.workspace, v.parse(inboxFeed.added, json));
    else if (event === 'resolved') this.inbox.resolve(this.workspace, v.parse(inboxFeed.resolved, json));
    else {
      const { open, resolved } = v.parse(inboxFeed.state, json);
      this.inbox.replace(this.workspace, open, resolved);
    }
  }
}

type Step = () => void;

/** Runs one turn with many requests, and checks the result of each. Returns their number. */
async function round(chance: Chance): Promise<number> {
  const executed = new Map<string, number>();
  const decisions = new Map<string, { readonly decision: string; readonly by: string }>();
  const callOf = new Map<string, string>();
  const act = tool({
    name: 'Act',
    needsApproval: true,
    run(_, { callId }) {
      const asked = [...callOf].find(([, id]) => id === callId)?.[0] ?? '';
      // The decision counts before it is announced: the journal is written first.
      if (!runtime.turns.decisionOf(asked)?.decision.startsWith('accept')) throw new Error(`${callId} ran undecided`);
      executed.set(callId, (executed.get(callId) ?? 0) + 1);
      return { text: 'done', isError: false };
    },
  });
  const calls = Array.from({ length: perTurn }, (_, index) => call(`c${index}`, 'Act', {}));
  const { runtime, bugs } = service(answers(calls, [say('done')]), { tools: () => [act] });
  runtime.feed.watchApprovals((event) => {
    if (event.method === 'item/approval/request') callOf.set(event.params.requestId, event.params.callId);
    if (event.method !== 'item/approval/resolved') return;
    const { requestId, decision, decidedBy, client } = event.params;
    if (decisions.has(requestId)) throw new Error(`${requestId} was decided twice`);
    decisions.set(requestId, { decision, by: client ?? decidedBy });
  });
  const agent = new AgentInbox(runtime);
  const hub = new Hub(agent);
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { begin, turn, ended } = runtime.turns.start(thread.id, text('go'), ear.listener);
  begin();
  await ear.until('item/approval/request', perTurn);
  const terminal = new Client(runtime, 'oratorio-cli', thread.id);
  const editor = new Client(runtime, 'oratorio-acp', thread.id);
  for (const client of [terminal, editor]) client.connect();

  const resolutions: Resolution[][] = [];
  const requestIds = runtime.turns.approvals().map(({ requestId }) => requestId);
  const queues: Step[][] = requestIds.flatMap((requestId, index) => {
    const mine: Resolution[] = [];
    resolutions[index] = mine;
    return [byTerminal(requestId, mine), byEditor(requestId, mine), byPage(requestId, mine)];
  });
  queues.push(disturbances());
  const pages: Promise<void>[] = [];

  function cutOf(): Cut {
    return chance.of(['none', 'none', 'none', 'lost', 'unheard'] as const);
  }

  function byTerminal(requestId: string, mine: Resolution[]): Step[] {
    const [word, cut] = [chance.of(words), cutOf()];
    return [
      () => {
        if (cut === 'lost') return terminal.connect();
        const id = terminal.send('approval/respond', { requestId, decision: word });
        const reply = terminal.replies.get(id);
        if (cut === 'unheard') return terminal.connect();
        if (!reply) throw new Error('no reply');
        mine.push({ word, said: reply.error ? 'lost' : 'won' });
      },
    ];
  }

  function byEditor(requestId: string, mine: Resolution[]): Step[] {
    const [word, cut] = [chance.of(words), cutOf()];
    const decision = decisionOf({ outcome: { outcome: 'selected', optionId: word } });
    return [
      () => {
        if (cut === 'lost') return editor.connect();
        // An answer to a question has no reply: the resolution says who won.
        if (editor.reply(requestId, decision)) mine.push({ word });
        if (cut === 'unheard') editor.connect();
      },
    ];
  }

  function byPage(requestId: string, mine: Resolution[]): Step[] {
    const [word, cut] = [chance.of(words), cutOf()];
    let arrive: (outcome: AnswerOutcome | Error) => void = () => {};
    let outcome: AnswerOutcome | Error = new Error('cut');
    let hasBegun = false;
    return [
      () => {
        if (!hub.inbox.has(hub.workspace, requestId)) return;
        hasBegun = true;
        const delivered = new Promise<AnswerOutcome>((resolve, reject) => {
          arrive = (settled) => (settled instanceof Error ? reject(settled) : resolve(settled));
        });
        const sender = { client: 'oratorio-page', token: 'page', remoteAddress: null };
        const answered = hub.inbox
          .carry(hub.workspace, requestId, sender, () => delivered)
          .then(
            (settled) => {
              // The turn has ended, and the report of that is under way.
              if (!('made' in settled)) return void mine.push({ word, said: 'lost' });
              mine.push({ word, said: settled.kind === 'decided' ? 'won' : 'lost', made: settled.made.decision });
            },
            () => {},
          );
        pages.push(answered);
      },
      () => {
        if (hasBegun && cut !== 'lost') outcome = decide(requestId, word);
      },
      () => arrive(cut === 'none' ? outcome : new Error('cut')),
    ];
  }

  /** Decides like the routes of both servers. */
  function decide(requestId: string, word: Word): AnswerOutcome {
    try {
      return { kind: 'decided', made: agent.decide(requestId, { decision: word, client: 'oratorio-page' }) };
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      if (error.code === 'alreadyDecided')
        return { kind: 'alreadyDecided', made: v.parse(InboxDecision, error.details) };
      return { kind: 'unknown' };
    }
  }

  function disturbances(): Step[] {
    const kinds = [() => hub.unfollow(), () => hub.follow(), () => hub.restart(), () => terminal.connect()];
    const some = Array.from({ length: 6 }, () => chance.of(kinds));
    // Now and then the turn ends while requests wait.
    return chance.below(5) === 0 ? [...some, () => runtime.turns.interrupt(thread.id, turn.id)()] : some;
  }

  let left = queues.filter((queue) => queue.length > 0);
  while (left.length > 0) {
    chance.of(left).shift()?.();
    // Promises settle between some steps and not between others.
    if (chance.below(4) === 0) await Promise.resolve();
    left = left.filter((queue) => queue.length > 0);
  }
  hub.follow();
  for (const { requestId } of runtime.turns.approvals()) runtime.turns.respond(requestId, 'decline', 'user', 'last');
  await Promise.all([ended, ...pages]);

  for (const [index, requestId] of requestIds.entries()) check(requestId, resolutions[index] ?? []);
  if (bugs.length > 0) throw bugs[0];
  if (hub.inbox.size > 0) throw new Error(`${hub.inbox.size} requests still wait at the Hub`);
  for (const client of [terminal, editor]) client.close();
  agent.close();
  hub.unfollow();
  return requestIds.length;

  function check(requestId: string, mine: readonly Resolution[]): void {
    const made = decisions.get(requestId);
    if (!made) throw new Error(`${requestId} was never decided`);
    const winners = mine.filter(({ said }) => said === 'won');
    if (winners.length > 1) throw new Error(`${winners.length} approvers won`);
    if (winners[0] && winners[0].word !== made.decision) throw new Error(`${winners[0].word} became ${made.decision}`);
    if (mine.some((each) => each.made !== undefined && each.made !== made.decision)) throw new Error('told otherwise');
    const runs = executed.get(callOf.get(requestId) ?? '') ?? 0;
    const mayRun = made.decision.startsWith('accept');
    if (runs > (mayRun ? 1 : 0)) throw new Error(`${made.decision}, and ran ${runs} times`);
    const entries = hub.history.filter((entry) => entry.requestId === requestId);
    if (entries.some(({ decision }) => decision !== made.decision))
      throw new Error(`recorded otherwise: ${JSON.stringify(entries)} for ${JSON.stringify(made)}`);
  }
}

t.test(`regression: H9 ${total} random interleavings of three approvers decide each request once`, async (t) => {
  const seed = Number(process.env['ORATORIO_TEST_SEED'] ?? 20_261_125);
  const chance = new Chance(seed);
  let requests = 0;
  let allowed = 0;
  while (requests < total) {
    requests += await round(chance);
    allowed += 1;
  }
  t.ok(requests >= total, `${requests} requests in ${allowed} turns, seed ${seed}`);
});
