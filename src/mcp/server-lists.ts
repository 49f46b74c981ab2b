import type { McpServerFacts } from '../../machines/index.ts';
import { defaults } from '../protocol/index.ts';
import type { Client, Prompt, Tool } from './library.ts';
import { ListReview, type ToolProblem } from './list-review.ts';

export interface ServerListsOptions {
  readonly startupTimeoutMs: number;
  readonly isReady: () => boolean;
  /** Tools or counts have changed. */
  readonly onChange: () => void;
  /** A list cannot be read, which does not end the connection. */
  readonly onTrouble: (what: string, error: unknown) => void;
}

/** Tools, prompts and number of resources of a server. */
export class ServerLists {
  readonly #options: ServerListsOptions;
  #review: ListReview;
  #tools: readonly Tool[] = [];
  #toolProblems: readonly ToolProblem[] = [];
  #prompts: Promise<readonly Prompt[]> | undefined;
  #listing: Promise<void> = Promise.resolve();
  #isRelisting = false;
  #counts = { resourceCount: 0, resourceTemplateCount: 0 };

  constructor(options: ServerListsOptions) {
    this.#options = options;
    this.#review = this.renew();
  }

  /** Tools that the server offers now. */
  get tools(): readonly Tool[] {
    return this.#tools;
  }

  get facts(): Pick<McpServerFacts, 'toolCount' | 'toolProblems' | 'resourceCount' | 'resourceTemplateCount'> {
    return { toolCount: this.#tools.length, toolProblems: this.#toolProblems, ...this.#counts };
  }

  /** Begins the review of the messages of another link. */
  renew(): ListReview {
    this.#review = new ListReview(this.#options.startupTimeoutMs / 2);
    return this.#review;
  }

  /** Offers tools that need a task. */
  allowTasks(): void {
    this.#review.allowTasks();
  }

  /** Prompts that the server offers now. @throws errors of the library */
  prompts(client: Client): Promise<readonly Prompt[]> {
    if (!client.getServerCapabilities()?.prompts) return Promise.resolve([]);
    // One list at a time: their pages would mix.
    this.#prompts ??= client
      .listPrompts(undefined, { timeout: defaults.mcp.referenceMs })
      .then(({ prompts }) => prompts)
      .finally(() => {
        this.#prompts = undefined;
      });
    return this.#prompts;
  }

  /** Reads the tools. Lists are read one after the other: their pages would mix. @throws errors of the library */
  readTools(client: Client): Promise<void> {
    const listed = this.#listing.then(() => this.#readTools(client));
    this.#listing = listed.catch(() => {});
    return listed;
  }

  /** Reads the tools after a change. */
  async readChangedTools(client: Client): Promise<void> {
    if (this.#isRelisting) return;
    this.#isRelisting = true;
    // A change from here on is in no list that has begun.
    void this.#listing.then(() => {
      this.#isRelisting = false;
    });
    try {
      await this.readTools(client);
      this.#options.onChange();
    } catch (error) {
      this.#report('the changed tools could not be listed', error);
    }
  }

  /** For the status only, so nothing waits for it. */
  async countResources(client: Client): Promise<void> {
    if (!client.getServerCapabilities()?.resources) return;
    const unlisted = (error: unknown): number => {
      this.#report('the resources could not be counted', error);
      return 0;
    };
    const [resourceCount, resourceTemplateCount] = await Promise.all([
      client.listResources().then(({ resources }) => resources.length, unlisted),
      client.listResourceTemplates().then(({ resourceTemplates }) => resourceTemplates.length, unlisted),
    ]);
    this.#counts = { resourceCount, resourceTemplateCount };
    this.#options.onChange();
  }

  async #readTools(client: Client): Promise<void> {
    // Asked for a missing feature, the library would write to standard output.
    if (!client.getServerCapabilities()?.tools) return;
    const timeout = this.#options.startupTimeoutMs;
    const { tools } = await client.listTools(undefined, { timeout, cacheMode: 'refresh' });
    const { maxTools, maxToolProblems } = defaults.mcp;
    const offered = [...new Map(tools.map((tool) => [tool.name, tool])).values()];
    const more = offered.length - maxTools;
    this.#tools = offered.slice(0, maxTools);
    this.#toolProblems = [
      ...this.#review.toolProblems,
      ...(more > 0
        ? [{ tool: '', problem: `The list has ${more} tools beyond the first ${maxTools}.`, isOffered: true }]
        : []),
    ].slice(0, maxToolProblems);
  }

  #report(what: string, error: unknown): void {
    if (this.#options.isReady()) this.#options.onTrouble(what, error);
  }
}
