import { setTimeout as sleep } from 'node:timers/promises';
import type { McpServerFacts } from '../../machines/index.ts';
import { plainText } from '../lib/index.ts';
import { defaults, type QuestionAnswer, type QuestionForm, version } from '../protocol/index.ts';
import { type CallLimit, Elicitations, longestMs } from './elicitations.ts';
import { type FailureCode, failureOf, isBrokenPipe, McpFailure } from './failure.ts';
import {
  type CallToolResult,
  type Client,
  type GetPromptResult,
  type Library,
  loadLibrary,
  type Prompt,
  type ReadResourceResult,
  type Tool,
  tasksOf,
} from './library.ts';
import type { Link } from './link.ts';
import { type LinkOptions, openLink } from './open-link.ts';
import { ServerLists } from './server-lists.ts';
import type { TaskCallOptions, TaskCalls } from './task-calls.ts';

/** End of a connection. Its resources are released then. */
export interface ConnectionEnd {
  readonly code: FailureCode;
  readonly error: string;
  readonly output: string;
  readonly isRetryable: boolean;
}

export interface ConnectionOptions extends LinkOptions {
  /** Name of the server in the settings. */
  readonly serverName: string;
  /** The era is known: do not probe, for this server dies of it. */
  readonly isOlderEra: boolean;
  readonly onSpawned: (pid: number) => void;
  readonly onReady: (facts: McpServerFacts) => void;
  /** Tools or other facts have changed, after `onReady`. */
  readonly onChanged: (facts: McpServerFacts) => void;
  /** The conversation has broken off, after `onReady`; `onEnd` follows. */
  readonly onLost: () => void;
  /** A server was found to die of the probe. */
  readonly onOlderEra: () => void;
  /** Called exactly once. */
  readonly onEnd: (end: ConnectionEnd) => void;
  /** Something is wrong that does not end the connection. */
  readonly onTrouble: (what: string, error: unknown) => void;
}

export interface CallOptions extends TaskCallOptions {
  /** Asks the user for the server. */
  readonly elicit: (form: QuestionForm, withdrawn: AbortSignal) => Promise<QuestionAnswer>;
  /** Handle of the call's task, which an earlier connection started. */
  readonly task?: string | undefined;
  /** Time that earlier connections have left; default: the limit of the settings. */
  readonly limit?: CallLimit | undefined;
}

/** Capabilities of this client. */
const capabilities = { elicitation: { form: {}, url: {} } };

/** One conversation with a server, from the start of the process (or the first request) until nothing is left of it. */
export class Connection {
  readonly #options: ConnectionOptions;
  #link: Link | undefined;
  readonly #lists: ServerLists;
  #client: Client | undefined;
  readonly #elicitations: Elicitations;
  #isReady = false;
  #wasReady = false;
  /** Ends waiting requests. */
  readonly #over = new AbortController();
  /** Requested end before a link existed; the strongest request wins. */
  #endRequest: 'close' | 'terminate' | 'kill' | undefined;
  #tasks: TaskCalls | undefined;
  #tasksOf: ReturnType<typeof tasksOf>;

  /** Connects at once; the callbacks report everything that happens. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#lists = new ServerLists({
      startupTimeoutMs: options.settings.startupTimeoutSec * 1000,
      isReady: () => this.#isReady,
      onChange: () => this.#notifyChange(),
      onTrouble: options.onTrouble,
    });
    this.#elicitations = new Elicitations(options.serverName, options.settings.toolTimeoutSec * 1000);
    void this.#run().then(options.onEnd);
  }

  /** The tools that the server offers now. */
  get tools(): readonly Tool[] {
    return this.#lists.tools;
  }

  /** @throws errors of the library: `failureOf` puts them into words */
  call(tool: Tool, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<CallToolResult> {
    const client = this.#ready();
    if (options.task !== undefined || tool.execution?.taskSupport === 'required' || this.#tasksOf === 'decided') {
      return this.#elicitations.during(options, (signal) =>
        this.#callAsTask(client, tool, args, { ...options, signal }),
      );
    }
    return this.#elicitations.during(options, (signal) =>
      client.callTool(
        { name: tool.name, arguments: { ...args }, ...(options.meta && { _meta: { ...options.meta } }) },
        // The time limit is in `signal`: it does not run while the user is asked.
        { signal, timeout: longestMs, maxTotalTimeout: longestMs, onprogress: options.onProgress },
      ),
    );
  }

  /** The prompts that the server offers now. @throws errors of the library */
  prompts(): Promise<readonly Prompt[]> {
    return this.#lists.prompts(this.#ready());
  }

  /** @throws errors of the library */
  getPrompt(name: string, args: Record<string, string>): Promise<GetPromptResult> {
    return this.#ready().getPrompt({ name, arguments: args }, { timeout: defaults.mcp.referenceMs });
  }

  /** @throws errors of the library */
  readResource(uri: string): Promise<ReadResourceResult> {
    return this.#ready().readResource({ uri }, { timeout: defaults.mcp.referenceMs });
  }

  close(): void {
    this.#requestEnd('close');
  }

  terminate(): void {
    this.#requestEnd('terminate');
  }

  kill(): void {
    this.#requestEnd('kill');
  }

  async #callAsTask(
    client: Client,
    tool: Tool,
    args: Readonly<Record<string, unknown>>,
    options: CallOptions,
  ): Promise<CallToolResult> {
    const { TaskCalls } = await import('./task-calls.ts');
    const { serverName } = this.#options;
    const { transport } = this.#link ?? {};
    if (!transport) throw new McpFailure('unreachable', 'The server is not connected.');
    const answer = this.#elicitations.answer.bind(this.#elicitations);
    this.#tasks ??= new TaskCalls({ client, transport, serverName, capabilities, answer });
    return options.task === undefined
      ? this.#tasks.call(tool, args, options)
      : this.#tasks.resume(tool, options.task, options);
  }

  #ready(): Client {
    if (!this.#client || !this.#isReady) throw new McpFailure('unreachable', 'The server is not connected.');
    return this.#client;
  }

  #requestEnd(request: 'close' | 'terminate' | 'kill'): void {
    this.#endRequest = request;
    this.#over.abort();
    this.#fulfil(this.#link);
  }

  #fulfil(link: Link | undefined): void {
    if (this.#endRequest) link?.[this.#endRequest]();
  }

  async #run(): Promise<ConnectionEnd> {
    let failure: McpFailure | undefined;
    try {
      await this.#begin(await loadLibrary());
    } catch (error) {
      failure = failureOf(error, this.#options.session?.name);
      // The requester of the end has chosen its kind, too.
      // A broken pipe means that the process ends on its own: its exit explains the failure.
      if (!this.#endRequest && !(this.#link?.pid && isBrokenPipe(error))) this.#link?.kill();
    }
    const end = await this.#link?.gone;
    const asked = this.#endRequest && this.#endOfOurs();
    this.#noteLoss();
    await this.#client?.close().catch(() => {});
    // The end of the server is a better explanation than the broken connection that follows from it.
    const { code, message, isRetryable } = end ?? asked ?? failure ?? this.#endOfOurs();
    return { code, error: message, output: this.#link?.output() ?? '', isRetryable };
  }

  /** Before it was ready, only impatience kills. */
  #endOfOurs(): McpFailure {
    const isTimeout = this.#endRequest === 'kill' && !this.#wasReady;
    return new McpFailure(isTimeout ? 'startupTimeout' : 'exited', 'It was ended.');
  }

  async #begin(library: Library): Promise<void> {
    if (this.#options.isOlderEra || !(await this.#survivesProbe(library))) await this.#connect(library, 'legacy');
    if (!this.#client) return;
    await this.#lists.readTools(this.#client);
    this.#isReady = true;
    this.#wasReady = true;
    this.#options.onReady(this.#facts());
    void this.#lists.countResources(this.#client);
    this.#watchSubscription(this.#client);
  }

  /** Some servers of the older era end when they are asked anything before `initialize`: those get a second process. */
  async #survivesProbe(library: Library): Promise<boolean> {
    try {
      await this.#connect(library, 'auto');
      return true;
    } catch (error) {
      const isProbe = (error as { readonly code?: unknown }).code === 'ERA_NEGOTIATION_FAILED';
      if (!isProbe || this.#link?.pid == null || this.#endRequest) throw error;
      const end = await this.#link.gone;
      if (end?.code !== 'exited') throw error;
      this.#options.onOlderEra();
      return false;
    }
  }

  async #connect(library: Library, mode: 'auto' | 'legacy'): Promise<void> {
    if (this.#endRequest) throw this.#endOfOurs();
    const { settings } = this.#options;
    const timeout = settings.startupTimeoutSec * 1000;
    // Silence of a server on pipes means that it is of the older era; of one on the network, that it is not there.
    const probeMs = settings.transport === 'stdio' ? Math.min(defaults.mcp.probeMs, timeout / 2) : timeout;
    const link = await openLink(library, this.#lists.renew(), this.#options);
    this.#link = link;
    if (link.pid !== null) this.#options.onSpawned(link.pid);
    this.#fulfil(link);
    const client = new library.Client(
      { name: 'oratorio', version },
      {
        capabilities,
        versionNegotiation: { mode, probe: { timeoutMs: probeMs } },
        // The answer of a tool goes to a model, which can use even one that breaks the tool's own schema.
        jsonSchemaValidator: {
          getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
        },
        listChanged: { tools: { autoRefresh: false, onChanged: () => void this.#lists.readChangedTools(client) } },
      },
    );
    client.setRequestHandler('elicitation/create', ({ params }, { mcpReq }) =>
      this.#elicitations.answer(params, mcpReq.signal),
    );
    client.onclose = () => {
      if (client === this.#client) this.#noteLoss();
    };
    client.onerror = (error) => this.#options.onTrouble('a message could not be used', error);
    this.#client = client;
    await client.connect(link.transport, { timeout });
    this.#tasksOf = tasksOf(client);
    if (this.#tasksOf === 'asked') this.#lists.allowTasks();
  }

  /** However it came about: its tools cannot be called any more. */
  #noteLoss(): void {
    if (!this.#isReady) return;
    this.#isReady = false;
    this.#over.abort();
    if (!this.#endRequest) this.#options.onLost();
  }

  #notifyChange(): void {
    if (this.#isReady) this.#options.onChanged(this.#facts());
  }

  /** In the newer era changes are reported on a stream, which a server (or a proxy) may end whenever it likes. */
  #watchSubscription(client: Client): void {
    void client.autoOpenedSubscription?.closed.then((how) => this.#resubscribe(client, how));
  }

  async #resubscribe(client: Client, how: 'local' | 'graceful' | 'remote'): Promise<void> {
    if (how === 'local' || !this.#isReady || this.#endRequest) return;
    try {
      await sleep(defaults.mcp.resubscribeMs, undefined, { signal: this.#over.signal });
      const subscription = await client.listen({ toolsListChanged: true });
      void subscription.closed.then((next) => this.#resubscribe(client, next));
      await this.#lists.readTools(client);
      this.#notifyChange();
    } catch (error) {
      if (!this.#isReady || this.#endRequest) return;
      const { code, message, isRetryable } = failureOf(error, this.#options.session?.name);
      this.#link?.fail({ code, message, isRetryable });
    }
  }

  #facts(): McpServerFacts {
    const server = this.#client?.getServerVersion();
    return {
      ...this.#lists.facts,
      serverName: named(server?.name),
      serverVersion: named(server?.version),
      protocolVersion: this.#client?.getNegotiatedProtocolVersion() ?? null,
    };
  }
}

/** Name that a server gives itself, short enough to show. */
const named = (text: string | undefined): string | null => (text === undefined ? null : plainText(text).slice(0, 100));
