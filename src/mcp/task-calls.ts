import {
  type ConnectedMcpSessionPort,
  createSessionPortFromClient,
  resultFromTaskOutcome,
  type TaskEnabledSession,
  TaskFailedError,
  taskViewFromExecutionEvent,
  toolDeclarationFromMcpTool,
  withTasks,
} from '@modelcontextprotocol/ext-tasks/client';
import { plainText } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import { longestMs } from './elicitations.ts';
import { McpFailure } from './failure.ts';
import type { CallToolResult, Client, Tool } from './library.ts';

export interface TaskCallOptions {
  readonly signal: AbortSignal;
  /** Fields for `_meta` of the request. */
  readonly meta?: Readonly<Record<string, string>> | undefined;
  readonly onProgress: (progress: { readonly progress: number; readonly message: string }) => void;
}

/** Calls of tools that run as tasks of their server: started, polled at the pace that it suggests, cancelled with the call. */
export class TaskCalls {
  readonly #port: ConnectedMcpSessionPort;
  readonly #session: TaskEnabledSession;

  constructor(client: Client, serverName: string) {
    this.#port = createSessionPortFromClient(client, serverName);
    this.#session = withTasks(this.#port);
  }

  /** @throws McpFailure, errors of the library, the reason of the signal */
  async call(
    tool: Tool,
    args: Readonly<Record<string, unknown>>,
    { signal, onProgress, meta }: TaskCallOptions,
  ): Promise<CallToolResult> {
    const execution = await this.#session.callTool<CallToolResult>(tool.name, JSON.parse(JSON.stringify(args)), {
      declaration: toolDeclarationFromMcpTool(tool),
      task: { preference: 'require' },
      requestTimeoutMs: defaults.mcp.taskRequestMs,
      signal,
      ...(meta && { metadata: meta }),
    });
    // A server that does not answer to this ends the task by its own limit.
    const cancel = () => void execution.cancel().catch(() => {});
    signal.addEventListener('abort', cancel, { once: true });
    // A server sends the questions of a task to the requester of its result.
    const hearQuestions = (taskId: string) =>
      void this.#port
        .dispatch({ method: 'tasks/result', params: { taskId } }, { signal, context: { requestTimeoutMs: longestMs } })
        .catch(() => {});
    let steps = 0;
    let isAsking = false;
    try {
      const { outcome } = await execution.settle({
        signal,
        onEvent(event) {
          const view = taskViewFromExecutionEvent(event);
          if (view?.statusMessage !== undefined) {
            steps += 1;
            onProgress({ progress: steps, message: view.statusMessage });
          }
          if (view?.status !== 'input_required' || isAsking) return;
          isAsking = true;
          hearQuestions(view.taskId);
        },
      });
      return resultFromTaskOutcome(outcome);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof TaskFailedError)) throw error;
      throw new McpFailure('protocol', `its task failed: ${plainText(error.message)}`, { cause: error });
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}
