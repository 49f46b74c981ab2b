import {
  type AgentContext,
  type AuthenticateRequest,
  type ClientCapabilities,
  type InitializeRequest,
  type InitializeResponse,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type NewSessionRequest,
  type NewSessionResponse,
  PROTOCOL_VERSION,
  type PromptRequest,
  type PromptResponse,
  RequestError,
  type SessionConfigOption,
  type SessionModeState,
  type SessionNotification,
  type SessionUpdate,
  type SetSessionConfigOptionRequest,
  type SetSessionConfigOptionResponse,
} from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import { visible } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, version } from '../protocol/index.ts';
import { Directories, directoriesOf, setDirectories } from './additional-directories.ts';
import { authenticate, authMethodsFor, loggedOut } from './authentication.ts';
import { type BroughtServers, broughtServers } from './editor-servers.ts';
import { inputOf } from './prompt.ts';
import { type Connect, type Link, Servers } from './servers.ts';
import { Session } from './session.ts';
import { SessionServers } from './session-servers.ts';
import { SeenThread, threadOf } from './thread-events.ts';
import { UserRequests } from './user-requests.ts';
import { workspaceOf } from './workspace.ts';

export interface AcpAgentOptions {
  readonly connect: Connect;
  /** User home, absolute. */
  readonly home: string;
  readonly log: Logger;
  /** Whether a model is connected. */
  readonly isLoggedIn: () => Promise<boolean>;
  /** The editor does not read its input. */
  readonly onUnread: () => void;
}

const ThreadResult = v.looseObject({ thread: SeenThread });
const ListResult = v.looseObject({ data: v.array(SeenThread) });
/** Capabilities of requests that are not stable yet. */
const drafts = { fork: {} };

/** Characters of an editor's name that are shown. */
const longestName = 100;

/** Place of a session, and the MCP servers that its editor has named. */
interface SessionPlace {
  readonly cwd: string;
  readonly workspacePath: string;
  readonly servers: BroughtServers;
}

/** A thread that is opened again. */
interface OpenRequest {
  readonly sessionId: string;
  readonly cwd: string;
  readonly mcpServers?: readonly unknown[] | null | undefined;
  readonly additionalDirectories?: readonly string[] | null | undefined;
}

/** Serves the requests of one editor with agent servers; `client` is the connection to the editor. */
export class AcpAgent {
  readonly #options: AcpAgentOptions;
  readonly #servers: Servers;
  readonly #sessions = new Map<string, Session>();
  readonly #requests: UserRequests;
  #client: AgentContext | undefined;
  #capabilities: ClientCapabilities = {};
  /** Name that the editor gives itself. */
  #editor = 'The editor';
  #unread = 0;
  #isLoggedOut = false;

  constructor(options: AcpAgentOptions) {
    this.#options = options;
    this.#servers = new Servers({
      connect: options.connect,
      onRequest: (method, params) => this.#requests.answer(method, params),
      onNotification: (method, params) => {
        this.#sessions.get(threadOf(params) ?? '')?.hear(method, params);
        this.#requests.hear(method, params);
      },
      onLost: (link) => {
        for (const session of this.#sessions.values()) session.lost(link);
      },
    });
    this.#requests = new UserRequests({
      log: options.log,
      editor: () => this.#client && { client: this.#client, capabilities: this.#capabilities },
      sessionOf: (threadId) => this.#sessionOf(threadId),
      serverOf: async (workspacePath) => (await this.#servers.of(workspacePath)).client,
    });
  }

  set client(client: AgentContext) {
    this.#client = client;
  }

  initialize({ clientCapabilities, clientInfo }: InitializeRequest): InitializeResponse {
    this.#capabilities = clientCapabilities ?? {};
    const name = clientInfo?.title ?? clientInfo?.name ?? '';
    this.#editor = visible(name, { multiline: false }).slice(0, longestName) || 'The editor';
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'oratorio', title: 'Oratorio', version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: false },
        auth: { logout: {} },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {}, ...drafts },
      },
      authMethods: authMethodsFor(this.#capabilities),
    };
  }

  async authenticate(request: AuthenticateRequest): Promise<Record<string, never>> {
    const authenticated = await authenticate(request, this.#options.isLoggedIn);
    this.#isLoggedOut = false;
    return authenticated;
  }

  /** Logs this editor out. Does not remove the user's key, because other programs use it. */
  logout(): Record<string, never> {
    this.#isLoggedOut = true;
    return {};
  }

  /** Requires that the editor is logged in. @throws RequestError -32000 after a log-out */
  #requireLogin(): void {
    if (this.#isLoggedOut) throw loggedOut();
  }

  async newSession({ cwd, mcpServers, additionalDirectories: named }: NewSessionRequest): Promise<NewSessionResponse> {
    this.#requireLogin();
    const workspacePath = workspaceOf(cwd, this.#options.home);
    const additionalDirectories = directoriesOf(named);
    const servers = broughtServers(mcpServers ?? []);
    const { client } = await this.#servers.of(workspacePath);
    const identity = { channelName: 'acp', userId: 'local', channelContext: `acp:${cwd}`, workspacePath };
    const settings = additionalDirectories.length > 0 && { config: { additionalDirectories } };
    const { thread } = parse(
      ThreadResult,
      await client.request('thread/start', { identity, ...settings }),
      'thread/start',
    );
    return this.#begin(thread, { cwd, workspacePath, servers });
  }

  /** Copies a thread of the workspace around `cwd`, open or not, into a session of its own. */
  async forkSession({
    sessionId,
    cwd,
    mcpServers,
    additionalDirectories: named,
  }: OpenRequest): Promise<NewSessionResponse> {
    this.#requireLogin();
    const workspacePath = workspaceOf(cwd, this.#options.home);
    const servers = broughtServers(mcpServers ?? []);
    const { client } = await this.#servers.of(workspacePath);
    const additionalDirectories = directoriesOf(named);
    const { thread } = parse(ThreadResult, await client.request('thread/fork', { threadId: sessionId }), 'thread/fork');
    await setDirectories(client, thread, additionalDirectories);
    return this.#begin(thread, { cwd, workspacePath, servers });
  }

  async #begin(thread: SeenThread, place: SessionPlace): Promise<NewSessionResponse> {
    const session = this.#add(thread, place);
    await session.open(false);
    const choices = await session.choices();
    // An editor knows the session once it has the answer.
    setImmediate(() => void session.offer());
    return { sessionId: session.id, ...choices };
  }

  /** @param hasHistory sends the editor the earlier messages first */
  async openSession(
    { sessionId, cwd, mcpServers, additionalDirectories: named }: OpenRequest,
    hasHistory: boolean,
  ): Promise<{ modes: SessionModeState; configOptions: SessionConfigOption[] }> {
    this.#requireLogin();
    const workspacePath = workspaceOf(cwd, this.#options.home);
    const servers = broughtServers(mcpServers ?? []);
    const additionalDirectories = directoriesOf(named);
    const { client } = await this.#servers.of(workspacePath);
    const answer = await client.request('thread/read', { threadId: sessionId });
    await this.#sessions.get(sessionId)?.close();
    const { thread } = parse(ThreadResult, answer, 'thread/read');
    await setDirectories(client, thread, additionalDirectories);
    const session = this.#add(thread, { cwd, workspacePath, servers });
    try {
      await session.open(hasHistory);
      const choices = await session.choices();
      setImmediate(() => void session.offer());
      return choices;
    } catch (error) {
      this.#sessions.delete(sessionId);
      throw error;
    }
  }

  /** Threads of the workspace around `cwd`; without it, of all that this editor has worked in. Newest first. */
  async listSessions({ cwd, cursor }: ListSessionsRequest): Promise<ListSessionsResponse> {
    const paths = cwd ? [workspaceOf(cwd, this.#options.home)] : this.#servers.workspacePaths;
    const pages = await Promise.all(paths.map((path) => this.#threadsOf(path)));
    const all = pages.flat().sort((one, other) => (other.lastActiveAt ?? '').localeCompare(one.lastActiveAt ?? ''));
    const from = cursor ? all.findIndex(({ id }) => id === cursor) + 1 : 0;
    if (cursor && from === 0) throw RequestError.invalidParams({ cursor }, 'the cursor is not known (any more)');
    const page = all.slice(from, from + defaults.acp.sessionsPerPage);
    const hasMore = from + page.length < all.length;
    return {
      sessions: page.map(({ id, workspacePath, displayName, firstInput, lastActiveAt, config }) => ({
        sessionId: id,
        cwd: this.#sessions.get(id)?.cwd ?? workspacePath,
        title: displayName ?? firstInput ?? null,
        updatedAt: lastActiveAt ?? null,
        ...(v.is(Directories, config['additionalDirectories']) && {
          additionalDirectories: config['additionalDirectories'],
        }),
      })),
      ...(hasMore && { nextCursor: page.at(-1)?.id ?? null }),
    };
  }

  prompt({ sessionId, prompt }: PromptRequest, signal: AbortSignal): Promise<PromptResponse> {
    const session = this.#session(sessionId);
    return session.prompt(inputOf(prompt), signal);
  }

  async cancel(sessionId: string): Promise<void> {
    await this.#sessions.get(sessionId)?.cancel();
  }

  async setMode(sessionId: string, modeId: string): Promise<void> {
    await this.#session(sessionId).setMode(modeId);
  }

  async setOption({
    sessionId,
    configId,
    value,
  }: SetSessionConfigOptionRequest): Promise<SetSessionConfigOptionResponse> {
    return { configOptions: await this.#session(sessionId).setOption(configId, value) };
  }

  async closeSession(sessionId: string): Promise<void> {
    const session = this.#session(sessionId);
    this.#sessions.delete(sessionId);
    await session.close();
  }

  /** For good. Only sessions that are open can be deleted: ids are a workspace's. */
  async deleteSession(sessionId: string): Promise<void> {
    const { workspacePath } = this.#session(sessionId);
    const { client } = await this.#servers.of(workspacePath);
    await client.request('thread/delete', { threadId: sessionId });
    this.#sessions.delete(sessionId);
  }

  /** Ends the pending requests of an editor that has gone, and closes the connections. */
  async close(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    const ended = Promise.allSettled(sessions.map((session) => session.close()));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, defaults.acp.leaveMs);
    });
    await Promise.race([ended, late]);
    clearTimeout(timer);
    await this.#servers.close();
  }

  #add(thread: SeenThread, { cwd, workspacePath, servers }: SessionPlace): Session {
    const { home, log } = this.#options;
    const emit = (update: SessionUpdate) => this.#notify({ sessionId: thread.id, update });
    const shared = { workspacePath, emit };
    const session = new Session({
      ...{ ...shared, thread, cwd },
      link: (): Promise<Link> => this.#servers.of(workspacePath),
      hasSwitches: this.#capabilities.session?.configOptions?.boolean != null,
      servers:
        servers.size > 0 && this.#client
          ? new SessionServers({
              ...{ ...shared, servers, home, log },
              sessionId: thread.id,
              editor: this.#editor,
              client: this.#client,
            })
          : undefined,
      notice: (title) => {
        if (!this.#capabilities.session?.notices) return;
        this.#notify({ sessionId: thread.id, update: { sessionUpdate: 'notice', severity: 'info', title } });
      },
      onResolved: (requestId) => this.#requests.forgetApproval(requestId),
    });
    this.#sessions.set(thread.id, session);
    return session;
  }

  #session(sessionId: string): Session {
    const session = this.#sessions.get(sessionId);
    if (session) return session;
    throw RequestError.sessionNotFound(sessionId);
  }

  async #threadsOf(workspacePath: string): Promise<SeenThread[]> {
    const { client } = await this.#servers.of(workspacePath);
    const { data } = parse(ListResult, await client.request('thread/list', {}), 'thread/list');
    return data.filter(({ parentThreadId }) => parentThreadId === undefined);
  }

  /** In order, and never waited for: an editor that does not read is left. */
  #notify(notification: SessionNotification): void {
    if (!this.#client) return;
    this.#unread += 1;
    if (this.#unread > defaults.acp.unreadMessages) this.#options.onUnread();
    const sent = () => {
      this.#unread -= 1;
    };
    // When the message cannot be sent the connection is over, which is noticed by itself.
    this.#client.notify('session/update', notification).then(sent, sent);
  }

  /** The session of a thread; for a sub-agent's thread, that of its parent. */
  async #sessionOf(threadId: string): Promise<Session | undefined> {
    const session = this.#sessions.get(threadId);
    if (session) return session;
    for (const path of this.#servers.workspacePaths) {
      const { client } = await this.#servers.of(path);
      const answer = v.safeParse(
        ThreadResult,
        await client.request('thread/read', { threadId }).catch(() => undefined),
      );
      const parentId = answer.success ? answer.output.thread.parentThreadId : undefined;
      if (parentId !== undefined) return this.#sessionOf(parentId);
    }
    return undefined;
  }
}

function parse<S extends v.GenericSchema>(schema: S, value: unknown, method: string): v.InferOutput<S> {
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return parsed.output;
  throw RequestError.internalError(undefined, `the answer to ${method} has an unexpected form`);
}
