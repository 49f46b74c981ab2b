import {
  type PromptResponse,
  RequestError,
  type SessionConfigOption,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import { AppServerConnectionError, JsonRpcError } from '../client/index.ts';
import { type InputPart, isRunningStatus, rpcErrors } from '../protocol/index.ts';
import { fileCommandOf, runFileCommand } from './file-commands.ts';
import { reopen } from './reopen.ts';
import { ask, type Link } from './servers.ts';
import { type SessionChoices, SessionOffers } from './session-offers.ts';
import type { SessionServers } from './session-servers.ts';
import { stopReasonOf } from './stop-reason.ts';
import { eventOf, SeenThread, type SeenTurn, type SessionEvent } from './thread-events.ts';
import type { ShownCall } from './tool-calls.ts';
import { Updates } from './updates.ts';

export interface SessionOptions {
  readonly thread: SeenThread;
  readonly cwd: string;
  readonly workspacePath: string;
  /** The server, connected again when necessary. */
  readonly link: () => Promise<Link>;
  readonly emit: (update: SessionUpdate) => void;
  /** Notice to the user beside the conversation. */
  readonly notice: (message: string) => void;
  /** This approval has been decided. */
  readonly onResolved: (requestId: string) => void;
  /** MCP servers of the editor; undefined: none. */
  readonly servers: SessionServers | undefined;
  /** Whether the editor shows boolean options. */
  readonly hasSwitches: boolean;
}

/** A prompt on its way through the agent server. */
interface Prompt {
  readonly ended: PromiseWithResolvers<SeenTurn>;
  turnId: string | undefined;
  /** Newest turn before the pending request to start one; null: the thread had no turn. */
  after?: string | null | undefined;
  isCancelled: boolean;
  /** Resolves when it is cancelled. */
  readonly cancelled: PromiseWithResolvers<void>;
}

const ThreadResult = v.looseObject({ thread: SeenThread });
const TurnResult = v.looseObject({ turn: v.looseObject({ id: v.string() }) });

/** An editor's session: one thread of an agent server. */
export class Session {
  readonly id: string;
  readonly cwd: string;
  readonly workspacePath: string;
  readonly #options: SessionOptions;
  readonly #updates: Updates;
  readonly #unreported = new Set<string>();
  readonly #offers: SessionOffers;
  /** The connection that reports the thread. */
  #joined: Link | undefined;
  /** Notifications that arrive before an awaited answer that must come first. */
  #held: SessionEvent[] | undefined;
  #prompt: Prompt | undefined;
  #isReopening = false;
  /** A user has stopped the agent server: its turns wait for the next start. */
  #isStopped = false;
  /** The running turn, of any origin. */
  #running: string | undefined;
  /** Newest turn of the thread, of any origin; null: none. */
  #newest: string | null = null;

  constructor(options: SessionOptions) {
    const { thread, cwd, workspacePath, emit, hasSwitches } = options;
    this.id = thread.id;
    this.cwd = cwd;
    this.workspacePath = workspacePath;
    this.#options = options;
    this.#offers = new SessionOffers({ thread, emit, hasSwitches });
    this.#updates = new Updates({ workspacePath, emit });
  }

  /** Starts receiving notifications of the thread. `hasHistory`: all earlier messages are sent first. */
  async open(hasHistory: boolean): Promise<void> {
    await this.#ordered(async () => {
      const link = await this.#options.link();
      const { thread } = await ask(link, 'thread/resume', { threadId: this.id }, ThreadResult);
      this.#joined = link;
      this.#isStopped = false;
      this.#offers.config = thread.config;
      if (hasHistory) for (const turn of await this.#olderThan(link, thread)) this.#updates.sync(turn);
      this.#findStarted(thread.turns.at(-1)?.id);
      for (const turn of thread.turns) {
        this.#unreported.add(turn.id);
        if (isRunning(turn)) continue;
        if (hasHistory) this.#updates.sync(turn);
        // The turn ended while there was no connection.
        if (turn.id === this.#prompt?.turnId) this.#ended(turn);
      }
      // A running turn is sent again in its present state, in order with later notifications.
      await link.client.request('thread/subscribe', { threadId: this.id, replayRecent: true });
    });
  }

  /** Sends the editor further choices, after the answer that opened the session. */
  async offer(): Promise<void> {
    const link = this.#joined;
    if (!link) return;
    void this.#options.servers?.startAt(link);
    await this.#offers.sendCommands(link);
    await this.#sendOptions(link);
  }

  /** Modes and options that are known without a request to the built-in agent's provider. */
  async choices(): Promise<SessionChoices> {
    return this.#offers.choices(await this.#options.link());
  }

  async setMode(modeId: string): Promise<void> {
    await this.#offers.setMode(await this.#ready(), modeId);
  }

  /** @returns all options @throws RequestError -32602 */
  async setOption(id: string, value: unknown): Promise<SessionConfigOption[]> {
    return this.#offers.setOption(await this.#ready(), id, value);
  }

  #sendOptions(link: Link): Promise<void> {
    return this.#offers.sendOptions(link, () => this.#joined === link);
  }

  /** Runs a turn to its end, or a command about files. @throws RequestError, JsonRpcError, AppServerConnectionError */
  async prompt(input: readonly InputPart[], signal: AbortSignal): Promise<PromptResponse> {
    if (this.#prompt) throw RequestError.invalidRequest(undefined, 'a prompt of this session is being answered');
    const [ended, cancelled] = [Promise.withResolvers<SeenTurn>(), Promise.withResolvers<void>()];
    const prompt: Prompt = { ended, cancelled, turnId: undefined, isCancelled: false };
    // Nothing may be waiting yet when the connection breaks.
    prompt.ended.promise.catch(() => undefined);
    this.#prompt = prompt;
    const onAbort = () => void this.cancel();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      const command = fileCommandOf(input);
      if (command) {
        const { client } = await this.#ready();
        await runFileCommand(client, this.id, command, (text) => this.#say(text));
        return { stopReason: prompt.isCancelled ? 'cancelled' : 'end_turn' };
      }
      await Promise.race([this.#options.servers?.startAt(await this.#ready()), prompt.cancelled.promise]);
      if (prompt.isCancelled) return { stopReason: 'cancelled' };
      const link = await this.#start(prompt, input);
      const turn = await prompt.ended.promise;
      await this.#sendUsage(link);
      // An external agent names its commands and choices in its first turn.
      await this.#offers.sendCommands(link);
      if (this.#offers.isOfAgent) await this.#sendOptions(link);
      return { stopReason: stopReasonOf(turn) };
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#prompt = undefined;
    }
  }

  /** Ends the current prompt (it is answered `cancelled` then), or another turn of the thread. */
  async cancel(): Promise<void> {
    const prompt = this.#prompt;
    if (prompt) prompt.isCancelled = true;
    prompt?.cancelled.resolve();
    const turnId = prompt ? prompt.turnId : this.#running;
    if (turnId !== undefined) await this.#interrupt(turnId);
  }

  hear(method: string, params: unknown): void {
    const event = eventOf(method, params);
    if (!event) return;
    if (this.#held) this.#held.push(event);
    else this.#take(event);
  }

  /** The connection broke. A prompt is followed on a new one: its turn continues in the server, or ended with it. */
  lost(link: Link): void {
    if (this.#joined !== link) return;
    this.#joined = undefined;
    // Without a turn, a request of the prompt fails.
    if (this.#prompt?.turnId !== undefined && !this.#isReopening) void this.#reopen();
  }

  /** Follows the turn of the prompt on other connections. */
  async #reopen(): Promise<void> {
    this.#isReopening = true;
    const open = async () => {
      if (this.#isStopped) throw RequestError.internalError({ reason: 'stop' }, stoppedMessage);
      await this.open(false);
      if (this.#joined) void this.#options.servers?.startAt(this.#joined);
      // The editor may have cancelled while no server heard it.
      if (this.#prompt?.isCancelled) await this.cancel();
      // In the same step, so that no later loss is missed.
      this.#isReopening = this.#joined === undefined;
      return !this.#isReopening;
    };
    try {
      await reopen(open, () => this.#prompt !== undefined);
    } catch (error) {
      this.#isReopening = false;
      this.#prompt?.ended.reject(error);
    }
  }

  /** The thread is not heard of any more. */
  async close(): Promise<void> {
    this.#options.servers?.close();
    await this.cancel();
    this.#updates.close();
    const link = this.#joined;
    this.#joined = undefined;
    await link?.client.request('thread/unsubscribe', { threadId: this.id });
  }

  shownCall(callId: string): ShownCall | undefined {
    return this.#updates.shownCall(callId);
  }

  #say(text: string): void {
    this.#options.emit({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  }

  async #start(prompt: Prompt, input: readonly InputPart[]): Promise<Link> {
    for (let left = maxStarts; ; left -= 1) {
      const link = await this.#ready();
      try {
        await this.#ordered(async () => {
          prompt.after = this.#newest;
          const { turn } = await ask(link, 'turn/start', { threadId: this.id, input }, TurnResult);
          prompt.turnId = turn.id;
        });
      } catch (error) {
        if (!(error instanceof AppServerConnectionError) || left === 1) throw error;
        // The turn may have begun: the thread shows it on the next connection.
        await this.#reopen();
        if (!this.#joined) throw error;
      }
      if (prompt.turnId === undefined) continue;
      if (prompt.isCancelled) await this.#interrupt(prompt.turnId);
      return link;
    }
  }

  /** Treats the newest turn as the prompt's turn if the response to its start is missing. */
  #findStarted(newest: string | undefined): void {
    const prompt = this.#prompt;
    const isStarting = prompt?.after !== undefined && prompt.turnId === undefined;
    if (isStarting && newest !== undefined && newest !== prompt.after) prompt.turnId = newest;
    this.#newest = newest ?? null;
  }

  /** The server, with this session's thread joined. */
  async #ready(): Promise<Link> {
    const link = await this.#options.link();
    if (this.#joined !== link) await this.open(false);
    return link;
  }

  async #interrupt(turnId: string): Promise<void> {
    try {
      const link = this.#joined;
      await link?.client.request('turn/interrupt', { threadId: this.id, turnId });
    } catch (error) {
      // The turn ends anyway: on its own, or with the connection.
      const isOver = error instanceof JsonRpcError && overCodes.has(error.code);
      if (!isOver && !(error instanceof AppServerConnectionError)) throw error;
    }
  }

  /** Turns before the page of `thread`, oldest first. */
  async #olderThan(link: Link, thread: SeenThread): Promise<SeenTurn[]> {
    const older: SeenTurn[][] = [];
    let page = thread;
    while (page.hasOlderTurns && page.turns[0]) {
      const params = { threadId: this.id, includeTurns: true, beforeTurnId: page.turns[0].id };
      page = (await ask(link, 'thread/read', params, ThreadResult)).thread;
      older.unshift(page.turns);
    }
    return older.flat();
  }

  /** Notifications that arrive while `work` runs are handled afterwards. */
  async #ordered(work: () => Promise<void>): Promise<void> {
    const isOutermost = this.#held === undefined;
    this.#held ??= [];
    try {
      await work();
    } finally {
      const held = this.#held;
      if (isOutermost) {
        this.#held = undefined;
        for (const event of held ?? []) this.#take(event);
      }
    }
  }

  #take(event: SessionEvent): void {
    switch (event.kind) {
      case 'turnStarted':
        this.#running = event.turn.id;
        this.#findStarted(event.turn.id);
        this.#unreported.delete(event.turn.id);
        this.#updates.sync(event.turn, this.#prompt?.turnId);
        return;
      case 'turnEnded':
        this.#ended(event.turn);
        return;
      case 'resolved':
        this.#options.onResolved(event.requestId);
        return;
      case 'renamed':
        this.#options.emit({ sessionUpdate: 'session_info_update', title: event.name });
        return;
      case 'notice':
        this.#options.notice(event.message);
        return;
      case 'stopped':
        this.#isStopped = true;
        return;
      default:
        // A turn that began earlier is sent as a whole, by its start or its end.
        if (!this.#unreported.has(event.turnId)) this.#takeItem(event);
    }
  }

  #takeItem(event: Extract<SessionEvent, { readonly turnId: string }>): void {
    const { turnId } = event;
    switch (event.kind) {
      case 'itemStarted':
        this.#updates.begin(event.item);
        return;
      case 'itemCompleted':
        this.#updates.sync({ id: turnId, items: [event.item] }, this.#prompt?.turnId);
        return;
      case 'message':
        this.#updates.message(turnId, event.itemId, event.delta);
        return;
      case 'thought':
        this.#updates.thought(turnId, event.itemId, event.delta);
        return;
      case 'discarded':
        this.#updates.discard(turnId, event.itemIds);
        return;
      case 'output':
        this.#updates.output(turnId, event.itemId, event.delta);
        return;
      case 'writing':
        this.#updates.announce(turnId, event.callId, event.tool);
        return;
    }
  }

  #ended(turn: SeenTurn): void {
    if (this.#running === turn.id) this.#running = undefined;
    this.#unreported.delete(turn.id);
    this.#updates.sync(turn, this.#prompt?.turnId);
    this.#updates.flush();
    this.#updates.abandon(turn.id);
    if (turn.id === this.#prompt?.turnId) this.#prompt.ended.resolve(turn);
  }

  /** Use of the model's context. It is optional: without it the answer is still complete. */
  async #sendUsage(link: Link): Promise<void> {
    try {
      const { thread } = await ask(
        link,
        'thread/read',
        { threadId: this.id, includeTurns: true, turnLimit: 1 },
        ThreadResult,
      );
      if (!thread.contextUsage) return;
      const { tokens: used, window: size } = thread.contextUsage;
      this.#options.emit({ sessionUpdate: 'usage_update', used, size });
    } catch (error) {
      if (!(error instanceof JsonRpcError) && !(error instanceof AppServerConnectionError)) throw error;
    }
  }
}

const stoppedMessage =
  'The agent server was stopped. The turn resumes at its next start; open the session again to follow it.';

/** Requests to start the turn of one prompt, each over another connection. */
const maxStarts = 3;

const overCodes: ReadonlySet<number> = new Set([
  rpcErrors.turnNotRunning.code,
  rpcErrors.turnNotFound.code,
  rpcErrors.threadNotFound.code,
]);

const isRunning = ({ status }: SeenTurn): boolean => isRunningStatus(status);
