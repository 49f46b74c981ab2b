import * as v from 'valibot';
import type { ExternalAgentEvent } from '../../machines/index.ts';
import {
  agentLimit,
  type DelegateCommands,
  type DelegatedOrder,
  type DelegateFiles,
  type DelegateOffers,
  noOffers,
} from '../agent/index.ts';
import { plainText } from '../lib/index.ts';
import { defaults, readElicitation } from '../protocol/index.ts';
import { JsonRpcError, rpcCodes } from '../rpc/index.ts';
import { useChoices } from './choices.ts';
import type { Connection } from './connection.ts';
import { AgentFailure, PeerClosedError } from './failure.ts';
import { FileService } from './file-service.ts';
import type { KnownCall } from './known-call.ts';
import { loginWords } from './login-words.ts';
import {
  AboutSession,
  ElicitationScope,
  invalidParams,
  NewSessionResult,
  PermissionRequest,
  PromptResult,
  SessionState,
  SessionUpdate,
  shapedAs,
} from './messages.ts';
import { promptOf } from './prompt-content.ts';
import { PromptTurn } from './prompt-turn.ts';
import { Session } from './session.ts';
import type { ExportedRequest } from './telemetry/exported.ts';
import { TerminalService } from './terminal-service.ts';

export interface AgentSettings {
  readonly name: string;
  /** Program and arguments. */
  readonly command: readonly string[];
  /** MCP servers for sessions of a thread, in the form of the protocol. */
  readonly mcpServers: (threadId: string) => readonly unknown[];
  /** Completes "log in: …" for an agent that needs a log-in; undefined: the agent's own login methods apply. */
  readonly loginHint: string | undefined;
  /** Whether a session would use a model that the user has not chosen. */
  readonly isRefused: (session: SessionState) => boolean;
  /** Whether an agent that asks at all asks before it acts in this mode. */
  readonly mayUse: (mode: string) => boolean;
  /** Whether the agent still asks for approval when an option of this category is set. */
  readonly maySet: (category: string | undefined) => boolean;
  /** Sentence for an agent that is missing. */
  readonly installHint: string;
  /** Reads and writes files for the agent. */
  readonly files: DelegateFiles;
  /** Runs commands for the agent. */
  readonly commands: DelegateCommands;
}

/** Services that an agent may ask for, and the forms that it may use. */
export const clientCapabilities = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
  elicitation: { form: {}, url: {} },
  session: { configOptions: { boolean: {} } },
  auth: { terminal: true },
};

const authRequired = -32_000;
const notFound = -32_002;

const finishes = {
  end_turn: 'stop',
  max_tokens: 'length',
  max_turn_requests: 'length',
  refusal: 'contentFilter',
} as const;

/** The sessions of one agent: one for each thread, made with its first turn and resumed after a restart. */
export class Sessions {
  readonly #settings: AgentSettings;
  readonly #send: (event: ExternalAgentEvent) => void;
  readonly #byThread = new Map<string, Session>();
  readonly #byId = new Map<string, Session>();
  #latest: Session | undefined;

  constructor(settings: AgentSettings, send: (event: ExternalAgentEvent) => void) {
    this.#settings = settings;
    this.#send = send;
  }

  /** Runs one turn. @throws AgentFailure; the reason of `signal` when it has aborted */
  async run(connection: Connection, order: DelegatedOrder, signal: AbortSignal) {
    try {
      const session = await this.#open(connection, order, signal);
      try {
        return await this.#prompt(connection, session, order, signal);
      } catch (error) {
        if (!isLostSession(error)) throw error;
        signal.throwIfAborted();
        this.forget(order.threadId);
        const again = await this.#open(connection, order, signal, session.sessionId);
        return await this.#prompt(connection, again, order, signal);
      }
    } catch (error) {
      signal.throwIfAborted();
      throw this.#failureOf(error, connection);
    }
  }

  /** Whether no thread has a session, in this life of the process or an earlier one. */
  get isEmpty(): boolean {
    return this.#byThread.size === 0;
  }

  /** Offers of the session that was opened last, also after its end. */
  get offers(): DelegateOffers {
    const offers = this.#latest?.offers.all ?? noOffers;
    const { mayUse, maySet } = this.#settings;
    return {
      ...offers,
      modes: offers.modes.filter(({ id }) => mayUse(id)),
      options: offers.options.filter(({ category }) => maySet(category)),
    };
  }

  forget(threadId: string): void {
    const session = this.#byThread.get(threadId);
    this.#byThread.delete(threadId);
    session?.discardAccounts();
    if (session) this.#byId.delete(session.sessionId);
  }

  /**
   * Adds requests to a model, exported by the process of this life, to their turns: by the session that they name, or to the only
   * session with a turn.
   *
   * @returns how many belong to no turn
   */
  addRequests(incarnation: number, requests: readonly ExportedRequest[]): number {
    const living = [...this.#byId.values()].filter((session) => session.incarnation === incarnation);
    const running = living.filter(({ turn }) => turn);
    const only = running.length === 1 ? running[0] : undefined;
    const isTaken = ({ sessionId, request }: ExportedRequest) =>
      (living.find((session) => session.sessionId === sessionId) ?? only)?.addRequest(request) ?? false;
    return requests.filter((each) => !isTaken(each)).length;
  }

  /** The process of this life exports nothing any more. */
  closeAccounts(incarnation: number): void {
    for (const session of this.#byId.values()) if (session.incarnation === incarnation) session.closeAccounts();
  }

  /** Answers a request of the agent, until the agent withdraws it. @throws JsonRpcError */
  async request(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    if (/^(fs|terminal)\//.test(method)) return this.#serve(method, params, signal);
    if (method === 'elicitation/create') return this.#elicit(params, signal);
    if (method !== 'session/request_permission') throw unknownMethod(method);
    const question = shapedAs(PermissionRequest, params);
    const turn = this.#byId.get(question.sessionId)?.turn;
    // The turn of this question has ended.
    if (!turn) return { outcome: { outcome: 'cancelled' } };
    return { outcome: await turn.permit(question, signal) };
  }

  /** Asks the user for the agent. A request outside of a session, or after its turn, is closed. @throws JsonRpcError */
  async #elicit(params: unknown, signal: AbortSignal): Promise<unknown> {
    const { sessionId, toolCallId, elicitationId } = shapedAs(ElicitationScope, params);
    const read = readElicitation(params, 'externalAgent', this.#settings.name);
    if (!read.ok) throw invalidParams(read.problem);
    const turn = sessionId === undefined ? undefined : this.#byId.get(sessionId)?.turn;
    if (!turn) return { action: 'cancel' };
    return turn.elicit(read.form, toolCallId, elicitationId, signal);
  }

  /** Serves file and command requests, but only while a prompt of the session runs. */
  #serve(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    const { sessionId } = shapedAs(AboutSession, params);
    const { files, terminals } = this.#byId.get(sessionId) ?? {};
    if (!files || !terminals) throw invalidParams('No turn of this session runs.');
    const answer = files.request(method, params, signal) ?? terminals.request(method, params, signal);
    if (!answer) throw unknownMethod(method);
    return answer;
  }

  /** @param bytes length of the notification */
  notification(method: string, params: unknown, bytes: number): void {
    if (method === 'elicitation/complete') {
      const done = v.safeParse(ElicitationScope, params);
      const { elicitationId } = done.success ? done.output : {};
      if (elicitationId !== undefined) for (const { turn } of this.#byId.values()) turn?.completeLink(elicitationId);
    }
    if (method !== 'session/update') return;
    const parsed = v.safeParse(SessionUpdate, params);
    const session = parsed.success ? this.#byId.get(parsed.output.sessionId) : undefined;
    // Text outside of a turn belongs to none.
    if (!parsed.success || !session) return;
    session.turn?.received(bytes);
    const { update } = parsed.output;
    if (update.sessionUpdate === 'agent_message_chunk') session.noteUsage(update);
    if (update.sessionUpdate === 'usage_update') session.noteCost(update);
    else if (!session.offers.note(update)) session.turn?.update(update);
  }

  /** The thread's session in this life of the process: known, resumed, loaded, or a new one. */
  async #open(connection: Connection, order: DelegatedOrder, signal: AbortSignal, lost?: string): Promise<Session> {
    const { threadId } = order;
    const known = this.#byThread.get(threadId);
    if (known?.incarnation === connection.incarnation) return known;
    const kept = lost ?? order.session?.sessionId;
    const state = kept === undefined ? undefined : await this.#takeUp(connection, order, kept, signal);
    if (kept !== undefined && state) return this.#add(connection, threadId, kept, state);
    if (order.isContinued) {
      const message = `The agent ${this.#settings.name} ended with the agent server and cannot continue, because it has lost its memory of this conversation. Its work is unknown: check it, then send the prompt again.`;
      throw new AgentFailure('agentInterrupted', message);
    }
    if (kept !== undefined) {
      order.report.notice(
        'agentSessionLost',
        `${this.#settings.name} has lost its memory of this conversation and starts a new one.`,
      );
    }
    return this.#create(connection, order, signal);
  }

  async #create(connection: Connection, order: DelegatedOrder, signal: AbortSignal): Promise<Session> {
    const { workspacePath: cwd, threadId } = order;
    const mcpServers = this.#serversFor(connection, threadId);
    const params = { cwd, mcpServers, ...directoriesFor(connection, order) };
    const made = v.parse(NewSessionResult, await connection.peer.request('session/new', params, { signal }));
    this.#refuseHosted(made);
    const { sessionId } = made;
    const { name: agent } = this.#settings;
    order.keep({ agent, version: connection.info?.agentInfo?.version ?? null, sessionId });
    return this.#add(connection, threadId, sessionId, made);
  }

  /** @returns undefined: the agent does not know the session any more. Its replay of the conversation is dropped: no turn runs. */
  async #takeUp(
    connection: Connection,
    order: DelegatedOrder,
    sessionId: string,
    signal: AbortSignal,
  ): Promise<SessionState | undefined> {
    const { peer, info } = connection;
    const { sessionCapabilities, loadSession } = info?.agentCapabilities ?? {};
    const hasResume = sessionCapabilities?.resume !== undefined && sessionCapabilities.resume !== null;
    if (!hasResume && !loadSession) return undefined;
    const mcpServers = this.#serversFor(connection, order.threadId);
    try {
      const method = hasResume ? 'session/resume' : 'session/load';
      const place = { cwd: order.workspacePath, mcpServers, ...directoriesFor(connection, order) };
      const answer = await peer.request(method, { sessionId, ...place }, { signal });
      const state = v.parse(SessionState, answer ?? {});
      this.#refuseHosted(state);
      return state;
    } catch (error) {
      if (error instanceof JsonRpcError && error.code !== authRequired) return undefined;
      throw error;
    }
  }

  /** MCP servers of a thread. HTTP servers are included only for an agent that supports them. */
  #serversFor({ info }: Connection, threadId: string): readonly unknown[] {
    const takesHttp = info?.agentCapabilities.mcpCapabilities?.http === true;
    return this.#settings.mcpServers(threadId).filter((server) => takesHttp || !v.is(HttpServer, server));
  }

  /** Refuses a hosted model, also in a resumed session: the user may have logged out. @throws AgentFailure agentLoginRequired */
  #refuseHosted(state: SessionState): void {
    const { name, isRefused, loginHint } = this.#settings;
    if (!isRefused(state)) return;
    throw new AgentFailure(
      'agentLoginRequired',
      `${name} has no provider of yours and would send your files to a model that it chose itself. Log in: ${loginHint ?? 'see its documentation'}.`,
    );
  }

  #add({ incarnation }: Connection, threadId: string, sessionId: string, state: SessionState): Session {
    const session = new Session(sessionId, incarnation);
    this.#byThread.get(threadId)?.closeAccounts();
    session.offers.take(state);
    this.#latest = session;
    this.#byThread.set(threadId, session);
    this.#byId.set(sessionId, session);
    return session;
  }

  async #prompt(connection: Connection, session: Session, order: DelegatedOrder, signal: AbortSignal) {
    const { peer, incarnation } = connection;
    const { sessionId } = session;
    const { name: agent, files, commands } = this.#settings;
    const { workspacePath, threadId, report } = order;
    const service = new FileService({ agent, workspacePath, report, files, grants: session.grants });
    const terminals = new TerminalService({
      ...{ agent, workspacePath, threadId, report, commands, signal },
      grants: session.commandGrants,
    });
    const prepareGrant = async ({ kind, paths, command, callId }: KnownCall) => {
      const grants = [terminals.prepareGrant(command, callId), await service.prepareGrant(kind, paths)];
      return () => {
        for (const grant of grants) grant();
      };
    };
    const turn = new PromptTurn({ agent, workspacePath, report, prepareGrant });
    let wasCancelled = false;
    const cancel = () => {
      wasCancelled = true;
      peer.notify('session/cancel', { sessionId });
      this.#send({ type: 'CANCEL.SENT', incarnation });
    };
    await useChoices(this.#settings, peer, session, order, signal);
    signal.throwIfAborted();
    const account = session.begin(report);
    session.turn = turn;
    session.files = service;
    session.terminals = terminals;
    this.#send({ type: 'PROMPT.BEGUN', incarnation });
    // After the listeners of the turn, which answer the open questions first: some agents wait for the answers.
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const prompt = promptOf(order.input);
      await report.prompting();
      signal.throwIfAborted();
      const result = v.parse(PromptResult, await peer.request('session/prompt', { sessionId, prompt }));
      report.used(await account.settle(session.useOf(result), connection.isExporting, signal));
      signal.throwIfAborted();
      if (turn.hasSystemError)
        throw new AgentFailure('agentError', `${this.#settings.name} reports an error of its own.`);
      const isCancelled = result.stopReason === 'cancelled';
      const known = Object.entries(finishes).find(([reason]) => reason === result.stopReason);
      return { isCancelled, finish: known?.[1] ?? ('stop' as const) };
    } finally {
      signal.removeEventListener('abort', cancel);
      turn.finish();
      session.turn = undefined;
      session.files = undefined;
      session.terminals = undefined;
      await Promise.all([service.end(), terminals.end()]);
      this.#send({ type: 'PROMPT.ENDED', incarnation, wasCancelled });
    }
  }

  #failureOf(error: unknown, { stderr, exit, incarnation, info }: Connection): unknown {
    const { name, command, loginHint } = this.#settings;
    if (error instanceof PeerClosedError) {
      const words = stderr === '' ? '' : ` It wrote: ${stderr}`;
      return new AgentFailure(
        'agentExited',
        `The agent ${name} has ended in this turn.${exit === undefined ? '' : ` ${exit}`}${words}`,
      );
    }
    if (v.isValiError(error)) {
      return new AgentFailure('agentError', `${name} did not keep to the protocol: ${error.message}`);
    }
    if (!(error instanceof JsonRpcError)) return error;
    if (error.code === authRequired || error.code === 401) {
      this.#send({ type: 'AUTH.REQUIRED', incarnation });
      const hint = loginHint ?? loginWords(name, command, info?.authMethods ?? []);
      return new AgentFailure('agentLoginRequired', `${name} wants you to log in: ${hint}.`);
    }
    const words = plainText(error.message).slice(0, defaults.externalAgent.errorChars);
    const limit = agentLimit(words, error.data, Date.now());
    if (limit?.code === 'upstreamRateLimited' || limit?.code === 'upstreamQuotaExceeded')
      return new AgentFailure(limit.code, `${name} reports: ${words}`, limit.resetMs);
    return new AgentFailure('agentError', `${name} reports: ${words}`);
  }
}

/** Additional directories of a thread, for an agent that supports them. */
function directoriesFor({ info }: Connection, { directories }: DelegatedOrder) {
  const taken = info?.agentCapabilities.sessionCapabilities?.additionalDirectories;
  return directories.length > 0 && taken !== undefined && taken !== null && { additionalDirectories: directories };
}

const HttpServer = v.looseObject({ type: v.literal('http') });

export const unknownMethod = (method: string): JsonRpcError =>
  new JsonRpcError({ code: rpcCodes.methodNotFound, message: `There is no method ${method}.` });

/** Whether the agent no longer knows the session of a prompt. */
const isLostSession = (error: unknown): boolean =>
  error instanceof JsonRpcError && (error.code === notFound || /session not found/i.test(error.message));
