import { AgentError, type Tool } from '../agent/index.ts';
import type { McpServers, McpServersOptions, McpSummary } from '../mcp/index.ts';
import type {
  InputPart,
  McpServerConfig,
  McpServerSettings,
  McpServerStatus,
  McpTestResult,
  PromptCommandInfo,
} from '../protocol/index.ts';

/**
 * The MCP servers of this process, loaded when there are any, or when a client makes one: most workspaces have none, and
 * the code for them would be a fifth of the code that a start loads.
 */
export class McpServices {
  readonly #options: McpServersOptions;
  readonly #onStatus: (status: McpServerStatus) => void;
  #loading: Promise<McpServers> | undefined;
  #loaded: McpServers | undefined;

  constructor(options: McpServersOptions, onStatus: (status: McpServerStatus) => void) {
    this.#options = options;
    this.#onStatus = onStatus;
  }

  /** Starts the configured servers in the background. Rejects when their module cannot be loaded. */
  async start(): Promise<void> {
    if (this.#isConfigured()) await this.#load();
  }

  tools(): readonly Tool[] {
    return this.#loaded?.tools() ?? [];
  }

  describe(): McpSummary {
    return this.#loaded?.describe() ?? { total: Object.keys(this.#options.servers).length, byState: {} };
  }

  async list(): Promise<readonly McpServerConfig[]> {
    return this.#isConfigured() ? (await this.#load()).list() : [];
  }

  /** @throws AgentError mcpServerNotFound */
  async get(name: string): Promise<McpServerConfig> {
    if (!this.#isConfigured()) throw new AgentError('mcpServerNotFound', { name });
    return (await this.#load()).get(name);
  }

  /** @throws AgentError mcpServerInvalid, mcpServerReadOnly */
  async upsert(name: string, settings: McpServerSettings): Promise<McpServerConfig> {
    return (await this.#load()).upsert(name, settings);
  }

  /** @throws AgentError mcpServerNotFound, mcpServerReadOnly */
  async remove(name: string): Promise<void> {
    await (await this.#load()).remove(name);
  }

  async status(): Promise<readonly McpServerStatus[]> {
    return this.#isConfigured() ? (await this.#load()).status() : [];
  }

  /** See `McpServers.settled`. */
  async settled(): Promise<readonly string[]> {
    return this.#isConfigured() ? (await this.#load()).settled() : [];
  }

  /** See `McpServers.login`. @throws AgentError mcpServerNotFound, mcpLoginFailed */
  async login(name: string, redirect?: string): Promise<string> {
    if (!this.#isConfigured()) throw new AgentError('mcpServerNotFound', { name });
    return (await this.#load()).login(name, redirect);
  }

  /** @throws AgentError mcpServerNotFound */
  async logout(name: string): Promise<void> {
    if (!this.#isConfigured()) throw new AgentError('mcpServerNotFound', { name });
    await (await this.#load()).logout(name);
  }

  /** See `McpServers.prompts`. */
  async prompts(): Promise<readonly PromptCommandInfo[]> {
    return (await this.#loaded?.prompts()) ?? [];
  }

  /** See `McpServers.expand`. @throws AgentError mcpReferenceFailed */
  async expand(command: string, argumentsText: string): Promise<string | undefined> {
    return this.#loaded?.expand(command, argumentsText);
  }

  /**
   * Returns the input unchanged if it names no prompt or resource of a server, or is not allowed to. @throws AgentError mcpReferenceFailed
   *
   * @param mayRefer whether references are allowed; called only if servers exist
   */
  resolve(input: readonly InputPart[], mayRefer: () => boolean): readonly InputPart[] | Promise<readonly InputPart[]> {
    return this.#loaded && mayRefer() ? this.#loaded.resolve(input) : input;
  }

  async test(what: string | McpServerSettings, name?: string): Promise<McpTestResult> {
    return (await this.#load()).test(what, name);
  }

  async close(): Promise<void> {
    await (await this.#loading?.catch(() => undefined))?.close();
  }

  #isConfigured(): boolean {
    return this.#loading !== undefined || Object.keys(this.#options.servers).length > 0;
  }

  #load(): Promise<McpServers> {
    this.#loading ??= import('../mcp/index.ts').then(({ McpServers }) => {
      const servers = new McpServers(this.#options);
      servers.onStatus(this.#onStatus);
      servers.start();
      this.#loaded = servers;
      return servers;
    });
    return this.#loading;
  }
}
