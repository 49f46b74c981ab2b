/** Turns of agent servers that kill themselves at chosen moments: each must end like a turn without a kill. */
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ModelMessage } from '../../src/agent/model.ts';
import { startTestHub } from '../hub/harness.ts';
import { program } from '../programs.ts';
import {
  Client,
  eventually,
  type Message,
  makeWorkspace,
  type ServerProcess,
  serving,
  spawnServer,
  stateOf,
  words,
} from './harness.ts';
import { longText, type Moment, type RequestLine, type ScriptName } from './turn-scripts.ts';

interface Teardown {
  teardown(work: () => unknown): void;
}

/** Settings with which each script of `turn-scripts.ts` can come into its states. */
const settings = {
  UpstreamRetries: 2,
  FallbackModels: ['scripted/second'],
  MaxToolCallRounds: 6,
  Compaction: { ContextWindow: 20_000, ReserveTokens: 100, KeepRecentTurns: 1 },
  Budget: { TurnUsd: 0.5 },
  Hooks: { TurnEnd: [{ Command: 'true' }] },
  Supervision: { BackoffBaseMs: 20, StartDeadlineMs: 80_000 },
  DashBoard: { Enabled: false },
};

const isEnd = ({ method = '' }: Message) => /^turn\/(completed|failed|cancelled)$/.test(method);

/** A thread whose next turn follows a script. */
export interface Prepared {
  readonly script: ScriptName;
  /** Name of its files and effects. */
  readonly name: string;
  readonly threadId: string;
  /** Turns of its thread before. */
  readonly before: number;
}

/** Process to kill and start again: an agent server, or a Hub. */
export interface Victim extends Pick<ServerProcess, 'ended' | 'output'> {
  /** Resolves with the address of the agent server. */
  readonly address: () => Promise<string>;
  /** Process of the Hub; undefined: an agent server alone. */
  readonly hubPid?: number | undefined;
}

interface Place {
  readonly path: string;
  readonly home: string;
  /** Whether a Hub that starts must start the agent server without a request. */
  readonly isUnfinished: boolean;
}

const victimProgram = program('test/appserver/turn-victim.ts');

/** @param victim program of the agent server, with its first arguments */
export function spawnAgentServer(t: Teardown, { path, home }: Place, victim = [victimProgram]): Victim {
  const server = spawnServer(t, { path, home, program: [...victim, '--workspace', path] });
  const address = async () => (await serving(server, path)).endpoints.appServerWebSocket;
  return { ...server, address };
}

/**
 * Starts a Hub, which starts the agent server. After a kill of both, an unfinished turn makes the Hub start it without a request.
 * @param preloaded path of a module that both load first
 */
export async function spawnHubAndServer(
  t: Teardown,
  { path, home, isUnfinished }: Place,
  preloaded?: string,
): Promise<Victim> {
  const preload = preloaded === undefined ? [] : ['--import', preloaded];
  const agentServer = {
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', ...preload, victimProgram],
  };
  const env = { NODE_OPTIONS: preload.join(' ') };
  const hub = await startTestHub(t, { home, agentServer, env });
  const { child, output } = hub;
  const address = async () => {
    const found = isUnfinished
      ? await eventually(async () => {
          const record = await hub.record(path);
          return record.state === 'running' ? record : undefined;
        }, `the Hub starts the agent server: ${output()}`)
      : await hub.ensure(path);
    return found.endpoints['appServerWebSocket'] ?? '';
  };
  return { ended: once(child, 'exit').then(([code, signal]) => signal ?? code), output, hubPid: child.pid, address };
}

/** A workspace whose agent server, or Hub, is killed and started again. */
export class KilledWorkspace {
  readonly path: string;
  readonly home: string;
  readonly #start: (isUnfinished: boolean) => Victim | Promise<Victim>;
  readonly #t: Teardown;
  #victim: Victim | undefined;
  #address = '';
  #client: Client | undefined;
  #names = 0;
  /** Clients that have sent the prompt of a turn, by its name. */
  readonly #begun = new Map<string, Client>();
  readonly #controls = new Map<ScriptName, Message>();
  readonly #outputs: string[] = [];

  constructor(
    t: Teardown,
    start: (t: Teardown, place: Place) => Victim | Promise<Victim> = (...args) => spawnAgentServer(...args),
    userSettings?: Readonly<Record<string, unknown>>,
  ) {
    this.#t = t;
    const { path, home } = makeWorkspace(t, settings);
    [this.path, this.home] = [path, home];
    if (userSettings) writeFileSync(join(home, 'config.json'), JSON.stringify(userSettings));
    this.#start = (isUnfinished) => start(t, { path, home, isUnfinished });
    writeFileSync(join(path, 'notes.txt'), 'notes\n');
  }

  get #running(): Victim {
    if (!this.#victim) throw new Error('connect first');
    return this.#victim;
  }

  get client(): Client {
    if (!this.#client) throw new Error('no client is connected');
    return this.#client;
  }

  /** Chooses the moment at which the server kills its Hub, then itself. `isHubAlone`: only the Hub. */
  arm(moment: Moment, { isHubAlone = false } = {}): void {
    const pid = this.#victim?.hubPid;
    const hub = pid === undefined ? undefined : { pid, isAlone: isHubAlone };
    writeFileSync(this.#killFile, JSON.stringify({ ...moment, hub }));
  }

  disarm(): void {
    rmSync(this.#killFile, { force: true });
  }

  /** Resolves when the present server has ended. */
  get hasEnded(): Promise<unknown> {
    return this.#running.ended;
  }

  get #killFile(): string {
    return join(this.home, 'kill.json');
  }

  /** Whether the server has not come to its moment. */
  get isArmed(): boolean {
    return existsSync(this.#killFile);
  }

  /** Connects to the server. A surviving server retains its client. */
  async connect(): Promise<Client> {
    this.#victim ??= await this.#start(false);
    const address = await this.#victim.address();
    if (this.#client && address === this.#address) return this.#client;
    this.#address = address;
    this.#client = await Client.ready(this.#t, address);
    return this.#client;
  }

  /** Waits for the end of the server or the Hub, and starts the next one. */
  async restart(): Promise<void> {
    const { ended, output } = this.#running;
    const how = await ended;
    if (how !== 'SIGKILL') throw new Error(`the server ended by ${how}: ${output()}`);
    this.#outputs.push(output());
    this.#victim = await this.#start(this.rows.actors !== 0);
  }

  /** Starts the thread of a turn, and its earlier turns. */
  async prepare(script: ScriptName): Promise<Prepared> {
    const { client } = this;
    this.#names += 1;
    const name = `t${this.#names}`;
    const asks = script === 'ask' || script === 'spend' || script === 'quota' || script === 'refused';
    const { thread } = await client.call('thread/start', asks ? {} : { config: { approvalPolicy: 'autoApprove' } });
    const threadId: string = thread.id;
    await client.call('thread/subscribe', { threadId });
    const before = script === 'compact' ? 2 : 0;
    for (let number = 0; number < before; number += 1) {
      const { turn } = await client.call('turn/start', { threadId, input: words(`script compact x ${longText}`) });
      await this.#untilEnd(threadId, turn.id);
    }
    return { script, name, threadId, before };
  }

  /** Sends the prompt of a turn. Its server may die before it answers. */
  begin({ script, name, threadId }: Prepared): void {
    this.#begun.set(name, this.client);
    const text = `script ${script} ${name}${script === 'compact' ? ` ${longText}` : ''}`;
    this.client.send({
      jsonrpc: '2.0',
      id: `start-${name}`,
      method: 'turn/start',
      params: { threadId, input: words(text) },
    });
  }

  /** Interrupts the turn of a thread when its command runs. */
  async interrupt({ threadId }: Prepared): Promise<void> {
    const { params } = await this.client.until(
      ({ method, params }) => method === 'item/commandExecution/outputDelta' && params.threadId === threadId,
      'output of the command',
    );
    this.client.send({
      jsonrpc: '2.0',
      id: 'stop',
      method: 'turn/interrupt',
      params: { threadId, turnId: params.turnId },
    });
  }

  async #untilEnd(threadId: string, turnId: string): Promise<void> {
    await this.client.until(
      (message) => isEnd(message) && message.params.turn.id === turnId && message.params.threadId === threadId,
      `the end of ${threadId}/${turnId}`,
    );
  }

  /** Turns of a thread, subscribed to for the events that follow. */
  async turnsOf(threadId: string): Promise<Message[]> {
    const { client } = this;
    await client.call('thread/subscribe', { threadId, replayRecent: true });
    return (await client.call('thread/read', { threadId, includeTurns: true })).thread.turns;
  }

  /** Waits for the answer to the prompt, if this connection has sent it. */
  async #answered({ name }: Prepared): Promise<void> {
    const { client } = this;
    if (this.#begun.get(name) === client)
      await client.until(({ id }) => id === `start-${name}`, `an answer to ${name}`);
  }

  /** Waits for the end of the last turn of a thread. @returns the turns */
  async ended(prepared: Prepared): Promise<Message[]> {
    const { threadId, before } = prepared;
    await this.#answered(prepared);
    let turns = await this.turnsOf(threadId);
    if (turns.length === before) {
      // The server died before it read the prompt.
      this.begin(prepared);
      await this.#answered(prepared);
      turns = await this.turnsOf(threadId);
    }
    const turn = turns[before];
    if (turn?.completedAt !== undefined) return turns;
    await this.#untilEnd(threadId, turn.id);
    return (await this.client.call('thread/read', { threadId, includeTurns: true })).thread.turns;
  }

  /** Answers the question of a turn, which may not be there yet. */
  async accept(turn: Prepared): Promise<void> {
    const requestId = await this.#questionOf(turn);
    await this.client.call('approval/respond', { requestId, decision: 'accept' });
  }

  /** Has a turn wait for its quota. The server may die before it answers. */
  async wait(turn: Prepared): Promise<void> {
    const params = { requestId: await this.#questionOf(turn), decision: 'accept' };
    this.client.send({ jsonrpc: '2.0', id: 'wait', method: 'approval/respond', params });
  }

  /** Ends the wait of a turn for its quota. */
  async hurry(turn: Prepared): Promise<void> {
    const requestId = await this.#questionOf(turn);
    writeFileSync(join(this.home, `free-${turn.name}`), '');
    await this.client.call('approval/respond', { requestId, decision: 'now' });
  }

  /** Id of the open question of a turn. */
  async #questionOf({ threadId }: Prepared): Promise<string> {
    const { client } = this;
    await client.call('thread/subscribe', { threadId, replayRecent: true });
    const { data } = await client.call('approval/list', {});
    let request = data.find((each: Message) => each.threadId === threadId);
    request ??= (
      await client.until(
        ({ method, params }) => method === 'item/approval/request' && params.threadId === threadId,
        'a question',
      )
    ).params;
    return request.requestId;
  }

  /** Lines that the commands of a turn have written, by their number. */
  effectsOf({ name }: Prepared): string[] {
    const file = join(this.path, 'effects');
    if (!existsSync(file)) return [];
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith(`${name}.`));
  }

  /** A turn of this script without a kill. */
  control(script: ScriptName): Message {
    const found = this.#controls.get(script);
    if (!found) throw new Error(`no control of ${script}`);
    return found;
  }

  setControl(script: ScriptName, turn: Message): void {
    this.#controls.set(script, turn);
  }

  /** Requests of the model, of all servers. */
  get requests(): readonly RequestLine[] {
    const text = readFileSync(join(this.home, 'requests.jsonl'), 'utf8');
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  /** Runs SQL in the database, while no server lives. */
  sql(text: string, ...values: readonly string[]): void {
    const database = new DatabaseSync(join(stateOf(this.path), 'state.db'));
    database.prepare(text).run(...values);
    database.close();
  }

  /** Rows of unfinished turns in the database. */
  get rows(): { readonly actors: unknown; readonly calls: unknown } {
    const database = new DatabaseSync(join(stateOf(this.path), 'state.db'), { readOnly: true });
    const count = (table: string) => database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'];
    const rows = { actors: count('turnActors'), calls: count('turnCalls') };
    database.close();
    return rows;
  }

  /** Lines of the logs that report a bug. */
  get bugs(): string[] {
    return [...this.#outputs, this.#running.output()].flatMap((text) =>
      text.split('\n').filter((line) => /errorId|"level":(?:50|"error")/.test(line)),
    );
  }
}

const without = (name: string, value: unknown): unknown => JSON.parse(JSON.stringify(value).replaceAll(name, 'ID'));
const itemsOf = (turn: Message, type: string): Message[] => turn.items.filter((item: Message) => item.type === type);
const nameOf = (turn: Message): string =>
  /script \w+ (\w+)/.exec(JSON.stringify(itemsOf(turn, 'userMessage')))?.[1] ?? '';

/** Facts of an end that a kill must not change. */
const endOf = (turn: Message) =>
  without(nameOf(turn), {
    status: turn.status,
    finishReason: turn.finishReason,
    error: turn.error?.code,
    interruptedBy: turn.interruptedBy,
    tokens: turn.tokenUsage?.inputTokens,
    costUsd: turn.tokenUsage?.costUsd,
    prompts: itemsOf(turn, 'userMessage').length,
    // A turn that is killed while it waits for a quota may have offered once more to continue at once.
    questions: itemsOf(turn, 'approvalRequest').filter(
      ({ callId, operation }) => callId !== 'quota' || operation !== 'continue',
    ).length,
    answers: itemsOf(turn, 'agentMessage')
      .filter(({ discarded }) => discarded !== true)
      .map(({ text }) => text),
    calls: itemsOf(turn, 'toolCall').map(({ callId }) => callId),
    results: itemsOf(turn, 'toolResult').map(({ callId }) => callId),
  });

/** Differences of a killed turn from its control, in words. Empty: it ended as it would have. */
export function faultsOf(workspace: KilledWorkspace, started: Prepared, turns: readonly Message[]): string[] {
  const turn = turns[started.before];
  const faults: string[] = [];
  if (turns.length !== started.before + 1) faults.push(`${turns.length} turns in its thread`);
  const [end, expected] = [JSON.stringify(endOf(turn)), JSON.stringify(endOf(workspace.control(started.script)))];
  if (end !== expected) faults.push(`ended as ${end} instead of ${expected}`);
  const effects = workspace.effectsOf(started);
  for (const { callId, outcome } of itemsOf(turn, 'toolResult')) {
    const number = /-e(\d+)$/.exec(callId)?.[1];
    if (number === undefined) continue;
    const times = effects.filter((line) => line === `${started.name}.${number}`).length;
    if (times > 1) faults.push(`${callId} had its effect ${times} times`);
    if (outcome === 'completed' && times !== 1) faults.push(`${callId} is completed without its effect`);
    if (outcome !== 'completed' && outcome !== 'unknown') faults.push(`${callId} is ${outcome}`);
  }
  const file = join(workspace.path, `${started.name}.txt`);
  if (started.script === 'work' && readFileSync(file, 'utf8') !== 'one two\n')
    faults.push(`${file} has another content`);
  return faults;
}

/** Calls without exactly one result, in any request. */
export function unsoundCalls(requests: readonly RequestLine[]): string[] {
  return requests.flatMap(({ id, messages }) =>
    messages.flatMap((message: ModelMessage) =>
      message.role !== 'assistant'
        ? []
        : message.toolCalls.flatMap(({ callId }) => {
            const results = messages.filter((each) => each.role === 'tool' && each.callId === callId).length;
            return results === 1 ? [] : [`${id}: ${callId} has ${results} results`];
          }),
    ),
  );
}
