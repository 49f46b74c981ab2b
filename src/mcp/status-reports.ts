import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '../log/index.ts';
import { type McpServerStatus, mcpToolProblemWords } from '../protocol/index.ts';

/** Reports each status of a server that differs from the one before, to the log and to listeners. */
export class StatusReports {
  readonly #logger: Logger;
  readonly #listeners = new Set<(status: McpServerStatus) => void>();
  readonly #reported = new Map<string, McpServerStatus>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** @returns ends the reports to this listener */
  listen(listener: (status: McpServerStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  report(status: McpServerStatus): void {
    const before = this.#reported.get(status.name);
    if (isDeepStrictEqual(before, status)) return;
    this.#reported.set(status.name, status);
    const isNew =
      before?.startupState !== status.startupState ||
      before.lastError !== status.lastError ||
      !isDeepStrictEqual(before.toolProblems, status.toolProblems);
    if (isNew) this.#log(status);
    for (const listener of this.#listeners) listener(status);
  }

  /** The next status of the server is new. */
  forget(name: string): void {
    this.#reported.delete(name);
  }

  close(): void {
    this.#listeners.clear();
  }

  #log({ name, startupState, toolCount, lastError, toolProblems = [] }: McpServerStatus): void {
    for (const problem of toolProblems) {
      this.#logger.warn('a tool of an MCP server is odd', { server: name, problem: mcpToolProblemWords(problem) });
    }
    if (startupState === 'ready') this.#logger.info('an MCP server is ready', { server: name, toolCount });
    if (startupState === 'failed' || startupState === 'restarting' || startupState === 'needsLogin') {
      this.#logger.warn('an MCP server is down', { server: name, startupState, problem: lastError });
    }
  }
}
