import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import type { AnyActorRef } from 'xstate';
import type { McpServerPolicy, RestartPolicy } from '../../machines/index.ts';
import { AgentError, type Tool } from '../agent/index.ts';
import type { Logger } from '../log/index.ts';
import {
  defaults,
  type InputPart,
  type McpServerConfig,
  McpServerSettings,
  type McpServerStatus,
  type McpTestResult,
  mcpToolProblemWords,
  type PromptCommandInfo,
} from '../protocol/index.ts';
import type { Environment } from './connection.ts';
import { McpFailure } from './failure.ts';
import { beginLogin, endLogin, type Login, usesLogin } from './oauth/index.ts';
import { expandPrompt, hasReferences, promptCommands, type ReferredServer, resolveReferences } from './references.ts';
import { maskSettings } from './secrets.ts';
import { type Clock, McpServer } from './server.ts';
import { checkSettings, SettingsFiles } from './settings-files.ts';
import { createTool, type ToolHost } from './tool.ts';
import { ToolNames } from './tool-names.ts';

export interface McpServersOptions {
  /** `McpServers` of the configuration in force. */
  readonly servers: Readonly<Record<string, McpServerSettings>>;
  /** The user's home of Oratorio: servers of its configuration cannot be changed from here. */
  readonly home: string;
  /** Canonical, absolute. Servers run here, and changes are written to its configuration. */
  readonly workspacePath: string;
  readonly env: Environment;
  readonly logger: Logger;
  /** When a server that has ended by itself is started again; default: as for agent servers. */
  readonly restartPolicy?: RestartPolicy | undefined;
  readonly clock?: Clock | undefined;
  /** See `ToolHost`. */
  readonly traceparent?: ToolHost['traceparent'];
  /** Server in lasting approvals; default: its name. */
  readonly scopeOf?: ((name: string, settings: McpServerSettings) => string) | undefined;
  /** Called with the root actor of every server before it starts. */
  readonly observe?: ((actor: AnyActorRef, name: string) => void) | undefined;
}

/** How many servers there are in which state. */
export interface McpSummary {
  readonly total: number;
  readonly byState: Readonly<Partial<Record<McpServerStatus['startupState'], number>>>;
}

const { supervise } = defaults;
const usualPolicy: RestartPolicy = {
  restart: 'onFailure',
  maxRestarts: supervise.maxRestarts,
  withinMs: supervise.withinSeconds * 1000,
  backoffBaseMs: supervise.backoffBaseMs,
  backoffCapMs: supervise.backoffCapMs,
  stableAfterMs: supervise.stableAfterMs,
};

/** The MCP servers of one workspace: started, revived and stopped; their tools; their settings. */
export class McpServers {
  readonly #options: McpServersOptions;
  readonly #files: SettingsFiles;
  readonly #servers = new Map<string, McpServer>();
  readonly #listeners = new Set<(status: McpServerStatus) => void>();
  readonly #reported = new Map<string, McpServerStatus>();
  readonly #tests = new Set<McpServer>();
  /** Log-ins in progress, by server. */
  readonly #logins = new Map<string, UserLogin>();
  #tools: readonly Tool[] | undefined;
  #changes: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  /** Nothing runs before `start`. */
  constructor(options: McpServersOptions) {
    this.#options = options;
    this.#files = new SettingsFiles(options);
    for (const [name, settings] of Object.entries(options.servers)) {
      this.#servers.set(name, this.#create(name, settings, options.observe));
    }
  }

  /** Starts every enabled server and returns at once, without waiting for readiness. */
  start(): void {
    for (const server of this.#servers.values()) if (server.settings.enabled) server.start();
  }

  /** The tools of all servers that are ready. The same list until something changes. */
  tools(): readonly Tool[] {
    this.#tools ??= this.#collectTools();
    return this.#tools;
  }

  /** All servers by name, values that may be secret masked. */
  list(): McpServerConfig[] {
    return [...this.#servers.keys()].sort().map((name) => this.get(name));
  }

  /** @throws AgentError `mcpServerNotFound` */
  get(name: string): McpServerConfig {
    const { settings } = this.#find(name);
    // The stored form, `${VARIABLES}` unread, where that is valid.
    const stored = v.safeParse(McpServerSettings, this.#files.stored(name));
    const shown = stored.success ? stored.output : this.#find(name).secrets.cleanUrl(settings);
    return { name, settings: maskSettings(shown), readOnly: !this.#files.isOwned(name) };
  }

  /**
   * Writes a server to the workspace's configuration and applies it at once: one that runs is stopped first. Values that
   * are masked do not change.
   *
   * @throws AgentError `mcpServerInvalid`, `mcpServerReadOnly`; nothing has changed then
   */
  upsert(name: string, settings: McpServerSettings): Promise<McpServerConfig> {
    return this.#withLock(async () => {
      const checked = checkSettings(name, settings, this.#files.stored(name));
      if (this.#servers.has(name)) this.#requireOwned(name);
      await this.#apply(name, await this.#files.write(name, checked));
      return this.get(name);
    });
  }

  /**
   * Takes a server out of the workspace's configuration and stops it. One of the same name in the user's configuration is
   * then in force.
   *
   * @throws AgentError `mcpServerNotFound`, `mcpServerReadOnly`
   */
  remove(name: string): Promise<void> {
    return this.#withLock(async () => {
      this.#find(name);
      this.#requireOwned(name);
      await this.#apply(name, await this.#files.write(name, undefined));
    });
  }

  /** All servers by name. */
  status(): McpServerStatus[] {
    return [...this.#servers.values()].map((server) => server.status()).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Calls `listener` with every status that differs from the one before. @returns ends that */
  onStatus(listener: (status: McpServerStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Starts a server aside, asks for its tools, stops it again. Running servers are left alone.
   *
   * @param subject the name of a server, or settings to try
   * @param storedAs with settings: the server whose stored values stand for masked ones
   * @throws AgentError `mcpServerNotFound`, `mcpServerInvalid`
   */
  async test(subject: string | McpServerSettings, storedAs?: string): Promise<McpTestResult> {
    const name = typeof subject === 'string' ? subject : (storedAs ?? 'tested');
    const settings =
      typeof subject === 'string'
        ? this.#find(subject).settings
        : this.#files.expand(name, checkSettings(name, subject, this.#files.stored(name)));
    const server = this.#create(name, settings, undefined, true);
    this.#tests.add(server);
    try {
      server.start();
      await server.settled();
      if (server.state !== 'ready') {
        return {
          success: false,
          errorCode: server.endCode ?? 'exited',
          errorMessage: server.lastError ?? 'It was stopped.',
        };
      }
      const tools = server.tools.map((tool) => tool.name);
      return { success: true, toolCount: tools.length, tools };
    } finally {
      await server.stop();
      this.#tests.delete(server);
    }
  }

  /**
   * Begins a log-in of the user; an earlier one at this server ends. The server starts when the token is stored.
   *
   * @param redirect last address of a browser on another machine: completes the present log-in instead
   * @returns address for a browser on this machine
   * @throws AgentError `mcpServerNotFound`, `mcpLoginFailed`
   */
  async login(name: string, redirect?: string): Promise<string> {
    const { settings } = this.#find(name);
    const present = this.#logins.get(name);
    if (redirect !== undefined) return completed(name, present, redirect);
    present?.ending.abort();
    const ending = new AbortController();
    const begun: UserLogin = { ending };
    this.#logins.set(name, begun);
    try {
      const login = await beginLogin({ home: this.#options.home, settings, signal: ending.signal });
      begun.login = login;
      begun.problem = this.#finish(name, login, begun);
      return login.url;
    } catch (error) {
      if (!(error instanceof McpFailure)) throw error;
      throw loginFailed(name, error.message);
    }
  }

  /** Ends the log-in at a server. @throws AgentError `mcpServerNotFound` */
  async logout(name: string): Promise<void> {
    const { settings } = this.#find(name);
    this.#logins.get(name)?.ending.abort();
    await endLogin(this.#options.home, settings);
  }

  /** Prompts of the servers that are ready, as commands `server:prompt`. */
  prompts(): Promise<PromptCommandInfo[]> {
    const names = [...this.#servers.keys()].sort();
    return promptCommands(names.flatMap((name) => this.#referred(name) ?? []));
  }

  /** Text of a prompt command; undefined: no configured server has this name. @throws AgentError `mcpReferenceFailed` */
  async expand(command: string, argumentsText: string): Promise<string | undefined> {
    const [, serverName = '', name = ''] = /^([^:]+):(.+)$/s.exec(command) ?? [];
    const server = this.#referred(serverName);
    return server && expandPrompt(server, name, argumentsText);
  }

  /** An input with the texts of the prompts and resources that it names. @throws AgentError `mcpReferenceFailed` */
  resolve(input: readonly InputPart[]): readonly InputPart[] | Promise<readonly InputPart[]> {
    if (!hasReferences(input)) return input;
    return resolveReferences(input, (name) => this.#referred(name));
  }

  #referred(name: string): ReferredServer | undefined {
    const server = this.#servers.get(name);
    if (!server?.settings.enabled) return undefined;
    return {
      name,
      connection: () => server.connection,
      settled: () => server.settled(),
      stateText: () => stateText(server),
      cleanResult: server.secrets.cleanResult,
    };
  }

  /**
   * Resolves when every enabled server is ready, has failed or has exceeded its start timeout.
   *
   * @returns names of the servers that are not ready
   */
  async settled(): Promise<readonly string[]> {
    const enabled = [...this.#servers.values()].filter(({ settings }) => settings.enabled);
    await Promise.all(
      enabled.map((server) =>
        Promise.race([server.settled(), wait(server.settings.startupTimeoutSec * 1000, undefined, { ref: false })]),
      ),
    );
    return enabled.filter(({ state }) => state !== 'ready').map(({ name }) => name);
  }

  /** For health: how many servers are in which state. */
  describe(): McpSummary {
    const byState: Partial<Record<McpServerStatus['startupState'], number>> = {};
    for (const { state } of this.#servers.values()) byState[state] = (byState[state] ?? 0) + 1;
    return { total: this.#servers.size, byState };
  }

  /** Stops everything. Resolves when nothing is left; changes that were under way are finished first. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { ending } of this.#logins.values()) ending.abort();
    await this.#changes;
    await Promise.all([...this.#servers.values(), ...this.#tests].map((server) => server.stop()));
    this.#listeners.clear();
  }

  #create(name: string, settings: McpServerSettings, observe: McpServersOptions['observe'], isTest = false): McpServer {
    const { workspacePath, home, env, logger, clock, restartPolicy = usualPolicy } = this.#options;
    const { closeGraceMs, gracefulStopMs } = defaults.mcp;
    const policy: Omit<McpServerPolicy, 'startupTimeoutMs'> = {
      ...restartPolicy,
      ...(isTest && { restart: 'never' as const }),
      closeGraceMs,
      gracefulStopMs,
      killVerifyMs: defaults.supervise.killVerifyMs,
    };
    const server: McpServer = new McpServer({
      name,
      settings,
      workspacePath,
      home,
      env,
      logger,
      policy,
      clock,
      observe: observe && ((actor) => observe(actor, name)),
      onChange: () => {
        if (!isTest) this.#onChange(name);
      },
    });
    return server;
  }

  /** @returns the problem of a failed log-in */
  async #finish(name: string, login: Login, begun: UserLogin): Promise<string | undefined> {
    const { logger } = this.#options;
    try {
      await login.finished();
      logger.info('the user has logged in to an MCP server', { server: name });
      return undefined;
    } catch (error) {
      if (!begun.ending.signal.aborted) logger.warn('a log-in at an MCP server has failed', { server: name, error });
      return error instanceof McpFailure ? error.message : 'The log-in was ended.';
    } finally {
      if (this.#logins.get(name) === begun) this.#logins.delete(name);
    }
  }

  #onChange(name: string): void {
    this.#tools = undefined;
    const server = this.#servers.get(name);
    if (!server) return;
    const status = server.status();
    const before = this.#reported.get(name);
    if (isDeepStrictEqual(before, status)) return;
    this.#reported.set(name, status);
    const isNew =
      before?.startupState !== status.startupState ||
      before.lastError !== status.lastError ||
      !isDeepStrictEqual(before.toolProblems, status.toolProblems);
    if (isNew) this.#log(status);
    for (const listener of this.#listeners) listener(status);
  }

  #log({ name, startupState, toolCount, lastError, toolProblems = [] }: McpServerStatus): void {
    const { logger } = this.#options;
    for (const problem of toolProblems) {
      logger.warn('a tool of an MCP server is odd', { server: name, problem: mcpToolProblemWords(problem) });
    }
    if (startupState === 'ready') logger.info('an MCP server is ready', { server: name, toolCount });
    if (startupState === 'failed' || startupState === 'restarting' || startupState === 'needsLogin') {
      logger.warn('an MCP server is down', { server: name, startupState, problem: lastError });
    }
  }

  #collectTools(): Tool[] {
    const names = new ToolNames();
    const servers = [...this.#servers.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return servers.flatMap((server) =>
      server.tools.map((tool) =>
        createTool(names.nameOf(server.name, tool.name), tool, {
          serverName: server.name,
          scope: this.#options.scopeOf?.(server.name, server.settings),
          isTrusted: server.settings.trusted,
          toolTimeoutSec: server.settings.toolTimeoutSec,
          login: usesLogin(server.settings) ? server.name : undefined,
          traceparent: this.#options.traceparent,
          // By name: a tool that a turn still holds finds the server that has taken the place of the one it came from.
          connection: () => this.#servers.get(server.name)?.connection,
          settled: async () => this.#servers.get(server.name)?.settled(),
          stateText: () => stateText(this.#servers.get(server.name)),
          ...server.secrets,
        }),
      ),
    );
  }

  #find(name: string): McpServer {
    const server = this.#servers.get(name);
    if (!server) throw new AgentError('mcpServerNotFound', { name }, name);
    return server;
  }

  #requireOwned(name: string): void {
    if (this.#files.isOwned(name)) return;
    throw new AgentError('mcpServerReadOnly', { name }, `${name} is in the user's configuration`);
  }

  async #apply(name: string, settings: McpServerSettings | undefined): Promise<void> {
    await this.#servers.get(name)?.stop();
    this.#servers.delete(name);
    this.#reported.delete(name);
    this.#tools = undefined;
    if (!settings) return;
    const server = this.#create(name, settings, this.#options.observe);
    this.#servers.set(name, server);
    if (settings.enabled && !this.#isClosed) server.start();
    else this.#onChange(name);
  }

  /** One change after the other, each whole. */
  #withLock<T>(change: () => Promise<T>): Promise<T> {
    const mine = this.#changes.then(change);
    this.#changes = mine.catch(() => {});
    return mine;
  }
}

function stateText(server: McpServer | undefined): string {
  if (!server) return 'it has been removed.';
  const { state, lastError } = server;
  return lastError === null ? `it is ${state}.` : `it is ${state} (${lastError.split('\n')[0]})`;
}

/** Log-in of the user that has not ended. */
interface UserLogin {
  readonly ending: AbortController;
  /** Absent: the authorization server is being asked. */
  login?: Login;
  /** Resolves at the end, with the problem of a failed log-in. */
  problem?: Promise<string | undefined>;
}

const loginFailed = (name: string, problem: string): AgentError =>
  new AgentError('mcpLoginFailed', { name, problem }, problem);

/** Completes a log-in with the last address of its browser. A wrong address changes nothing. @throws AgentError */
async function completed(name: string, begun: UserLogin | undefined, redirect: string): Promise<string> {
  if (!begun?.login) throw loginFailed(name, 'No log-in is in progress: start it again.');
  const problem = begun.login.paste(redirect) ?? (await begun.problem);
  if (problem !== undefined) throw loginFailed(name, problem);
  return begun.login.url;
}
