import { setTimeout as wait } from 'node:timers/promises';
import * as v from 'valibot';
import type { AnyActorRef } from 'xstate';
import type { RestartPolicy } from '../../machines/index.ts';
import { AgentError, type Tool } from '../agent/index.ts';
import type { Logger } from '../log/index.ts';
import {
  type InputPart,
  type McpServerConfig,
  McpServerSettings,
  type McpServerStatus,
  type McpTestResult,
  type PromptCommandInfo,
} from '../protocol/index.ts';
import { type OfferedToolsOptions, offeredTools, stateText } from './offered-tools.ts';
import type { Environment } from './open-link.ts';
import { expandPrompt, hasReferences, promptCommands, type ReferredServer, resolveReferences } from './references.ts';
import { maskSettings } from './secrets.ts';
import { type Clock, McpServer } from './server.ts';
import { mcpServerPolicyOf } from './server-policy.ts';
import { checkSettings, SettingsFiles } from './settings-files.ts';
import { StatusReports } from './status-reports.ts';
import { UserLogins } from './user-logins.ts';

export interface McpServersOptions extends OfferedToolsOptions {
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
  /** Called with the root actor of every server before it starts. */
  readonly observe?: ((actor: AnyActorRef, name: string) => void) | undefined;
}

/** How many servers there are in which state. */
export interface McpSummary {
  readonly total: number;
  readonly byState: Readonly<Partial<Record<McpServerStatus['startupState'], number>>>;
}

/** The MCP servers of one workspace: started, revived and stopped; their tools; their settings. */
export class McpServers {
  readonly #options: McpServersOptions;
  readonly #files: SettingsFiles;
  readonly #servers = new Map<string, McpServer>();
  readonly #reports: StatusReports;
  readonly #tests = new Set<McpServer>();
  readonly #logins: UserLogins;
  #tools: readonly Tool[] | undefined;
  #changes: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  /** Nothing runs before `start`. */
  constructor(options: McpServersOptions) {
    this.#options = options;
    this.#files = new SettingsFiles(options);
    this.#reports = new StatusReports(options.logger);
    this.#logins = new UserLogins(options);
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
    this.#tools ??= offeredTools(this.#servers, this.#options);
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
    return this.#reports.listen(listener);
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
    return redirect === undefined ? this.#logins.begin(name, settings) : this.#logins.complete(name, redirect);
  }

  /** Ends the log-in at a server. @throws AgentError `mcpServerNotFound` */
  async logout(name: string): Promise<void> {
    await this.#logins.logout(name, this.#find(name).settings);
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
    this.#logins.close();
    await this.#changes;
    await Promise.all([...this.#servers.values(), ...this.#tests].map((server) => server.stop()));
    this.#reports.close();
  }

  #create(name: string, settings: McpServerSettings, observe: McpServersOptions['observe'], isTest = false): McpServer {
    const { workspacePath, home, env, logger, clock, restartPolicy } = this.#options;
    return new McpServer({
      name,
      settings,
      workspacePath,
      home,
      env,
      logger,
      policy: mcpServerPolicyOf(restartPolicy, isTest),
      clock,
      observe: observe && ((actor) => observe(actor, name)),
      onChange: () => {
        if (!isTest) this.#onChange(name);
      },
    });
  }

  #onChange(name: string): void {
    this.#tools = undefined;
    const server = this.#servers.get(name);
    if (server) this.#reports.report(server.status());
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
    this.#reports.forget(name);
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
