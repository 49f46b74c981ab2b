import { messageOf } from '../lib/browser.ts';
import { JsonRpcError, rpcCodes } from './message.ts';

/** Result for the model of the client. */
export interface McpOutput {
  readonly value: unknown;
  readonly isError?: boolean;
}

/** Call that outlives its request. */
export interface McpTask {
  readonly taskId: string;
  readonly status: 'working' | 'completed' | 'failed' | 'cancelled';
  readonly statusMessage?: string | undefined;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  /** Output so far, or result. */
  readonly output: McpOutput;
}

export interface McpTool {
  readonly name: string;
  readonly description: string;
  readonly isReadOnly: boolean;
  /** JSON Schema of the arguments, an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Runs the call and returns the value of the result. An error becomes a result with `isError`. */
  readonly run: (args: unknown, signal: AbortSignal) => Promise<unknown>;
  /** Starts the call as a task. Absent: the tool does not support tasks. */
  readonly start?: (args: unknown, signal: AbortSignal) => Promise<McpTask>;
}

/** Tasks of the tools. An id is a secret: it gives access to its task. */
export interface McpTasks {
  /** Returns a task; undefined if none has this id. */
  get(taskId: string, signal: AbortSignal): McpTask | undefined | Promise<McpTask | undefined>;
  /** Resolves when the task has ended or `signal` aborts. */
  ended(taskId: string, signal: AbortSignal): Promise<void>;
  /** Resolves when the task has ended. */
  cancel(taskId: string, signal: AbortSignal): Promise<void>;
}

export interface McpServerOptions {
  readonly tools: readonly McpTool[];
  readonly tasks?: McpTasks;
  readonly version: string;
}

/** Versions with `initialize`, newest first. A client that requests any other version receives the first. */
export const olderProtocols: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
/** Versions without `initialize`, in which each request names its version. */
export const newerProtocols: readonly string[] = ['2026-07-28'];
export const mcpErrorCodes = { headerMismatch: -32_020, unsupportedVersion: -32_022 } as const;

const metaKey = (name: string) => `io.modelcontextprotocol/${name}`;
const tasksExtension = metaKey('tasks');
const pollMs = 1_000;
/** Cache hint: clients must not store a list. */
const uncached = { ttlMs: 0, cacheScope: 'private' };

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

/** Version in a request of the newer protocol; undefined for a request of an older protocol. */
export function namedProtocol(params: unknown): string | undefined {
  const version = fieldsOf(fieldsOf(params)['_meta'])[metaKey('protocolVersion')];
  return typeof version === 'string' ? version : undefined;
}

/** Methods of an MCP server, for any transport and both generations of the protocol. */
export class McpServer {
  readonly #options: McpServerOptions;
  readonly #info: Fields;

  constructor(options: McpServerOptions) {
    this.#options = options;
    this.#info = { name: 'oratorio', title: 'Oratorio', version: options.version };
  }

  /** Answers one request. @throws JsonRpcError */
  async answer(method: string, given: unknown, signal: AbortSignal): Promise<unknown> {
    if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given))) {
      throw new JsonRpcError({ code: rpcCodes.invalidParams, message: 'params must be an object.' });
    }
    const params = fieldsOf(given);
    const requested = namedProtocol(params);
    if (requested === undefined) return this.#answerOlder(method, params, signal);
    if (!newerProtocols.includes(requested)) {
      throw new JsonRpcError({
        code: mcpErrorCodes.unsupportedVersion,
        message: 'Unsupported protocol version',
        data: { supported: newerProtocols, requested },
      });
    }
    const { resultType = 'complete', ...result } = fieldsOf(await this.#answerNewer(method, params, signal));
    return { ...result, resultType, _meta: { ...fieldsOf(result['_meta']), [metaKey('serverInfo')]: this.#info } };
  }

  async #answerOlder(method: string, params: Fields, signal: AbortSignal): Promise<unknown> {
    const { tasks } = this.#options;
    switch (method) {
      case 'initialize': {
        const asked = olderProtocols.find((each) => each === params['protocolVersion']);
        const forTasks = tasks && { tasks: { cancel: {}, requests: { tools: { call: {} } } } };
        return {
          protocolVersion: asked ?? olderProtocols[0],
          capabilities: { tools: {}, ...forTasks },
          serverInfo: this.#info,
        };
      }
      case 'ping':
        return {};
      case 'tools/list':
        return { tools: this.#list() };
      case 'tools/call': {
        if (params['task'] === undefined) return this.#call(params, signal);
        return { task: olderTask(await this.#start(params, signal)) };
      }
    }
    if (!tasks || !method.startsWith('tasks/')) throw unknownMethod();
    const task = await this.#task(params, signal);
    switch (method) {
      case 'tasks/get':
        return olderTask(task);
      case 'tasks/result': {
        await tasks.ended(task.taskId, signal);
        signal.throwIfAborted();
        const _meta = { [metaKey('related-task')]: { taskId: task.taskId } };
        return { ...resultOf((await this.#task(params, signal)).output), _meta };
      }
      case 'tasks/cancel': {
        if (task.status !== 'working') {
          throw new JsonRpcError({ code: rpcCodes.invalidParams, message: `The task is already ${task.status}.` });
        }
        await tasks.cancel(task.taskId, signal);
        // A task that never began is deleted with its cancellation.
        return olderTask((await tasks.get(task.taskId, signal)) ?? { ...task, status: 'cancelled' });
      }
      default:
        throw unknownMethod();
    }
  }

  async #answerNewer(method: string, params: Fields, signal: AbortSignal): Promise<unknown> {
    const { tasks } = this.#options;
    switch (method) {
      case 'server/discover': {
        const capabilities = { tools: {}, ...(tasks && { extensions: { [tasksExtension]: {} } }) };
        return { ...uncached, supportedVersions: newerProtocols, capabilities };
      }
      case 'tools/list':
        return { ...uncached, tools: this.#list() };
      case 'tools/call': {
        const isWanted = tasks !== undefined && takesTasks(params) && this.#tool(params).start !== undefined;
        if (!isWanted) return this.#call(params, signal);
        try {
          return { resultType: 'task', ...newerTask(await this.#start(params, signal)) };
        } catch (error) {
          if (error instanceof JsonRpcError) throw error;
          return failed(error);
        }
      }
    }
    if (!tasks || !method.startsWith('tasks/')) throw unknownMethod();
    const task = await this.#task(params, signal);
    switch (method) {
      case 'tasks/get':
        return { ...newerTask(task), ...endOf(task) };
      case 'tasks/cancel':
        if (task.status === 'working') await tasks.cancel(task.taskId, signal);
        return {};
      case 'tasks/update':
        // Tasks of this server never request input, so the update changes nothing.
        return {};
      default:
        throw unknownMethod();
    }
  }

  #list(): unknown {
    return this.#options.tools.map(({ name, description, inputSchema, isReadOnly, start }) => ({
      ...{ name, description, inputSchema },
      annotations: { readOnlyHint: isReadOnly, openWorldHint: false },
      ...(start && { execution: { taskSupport: 'optional' } }),
    }));
  }

  #tool({ name }: Fields): McpTool {
    const tool = this.#options.tools.find((each) => each.name === name);
    if (!tool)
      throw new JsonRpcError({
        code: rpcCodes.invalidParams,
        message: 'Unknown tool: list the tools with tools/list.',
      });
    return tool;
  }

  async #call(params: Fields, signal: AbortSignal): Promise<unknown> {
    const tool = this.#tool(params);
    try {
      return resultOf({ value: await tool.run(params['arguments'] ?? {}, signal) });
    } catch (error) {
      return failed(error);
    }
  }

  async #start(params: Fields, signal: AbortSignal): Promise<McpTask> {
    const { start } = this.#tool(params);
    if (!start)
      throw new JsonRpcError({
        code: rpcCodes.methodNotFound,
        message: 'The tool does not support tasks: call it without a task.',
      });
    return start(params['arguments'] ?? {}, signal).catch((error: unknown) => {
      throw new JsonRpcError({ code: rpcCodes.invalidParams, message: messageOf(error) });
    });
  }

  async #task({ taskId }: Fields, signal: AbortSignal): Promise<McpTask> {
    const task = typeof taskId === 'string' ? await this.#options.tasks?.get(taskId, signal) : undefined;
    if (!task)
      throw new JsonRpcError({
        code: rpcCodes.invalidParams,
        message: 'Unknown task: it does not exist, or was deleted.',
      });
    return task;
  }
}

const unknownMethod = () => new JsonRpcError({ code: rpcCodes.methodNotFound, message: 'Method not found' });

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

const resultOf = ({ value, isError = false }: McpOutput): Fields => ({
  content: [{ type: 'text', text: textOf(value) }],
  ...(isError && { isError }),
});

const failed = (error: unknown): Fields => resultOf({ value: messageOf(error), isError: true });

/** Whether a client of the newer protocol accepts a task in place of a result. */
function takesTasks(params: Fields): boolean {
  const capabilities = fieldsOf(fieldsOf(params['_meta'])[metaKey('clientCapabilities')]);
  return fieldsOf(capabilities['extensions'])[tasksExtension] !== undefined;
}

const olderTask = ({ output: _, ...task }: McpTask): Fields => ({ ...task, ttl: null, pollInterval: pollMs });

const newerTask = ({ output: _, ...task }: McpTask): Fields => ({ ...task, ttlMs: null, pollIntervalMs: pollMs });

function endOf({ status, output }: McpTask): Fields {
  if (status === 'completed') return { result: { ...resultOf(output), resultType: 'complete' } };
  if (status === 'failed') return { error: { code: rpcCodes.internalError, message: textOf(output.value) } };
  return {};
}
