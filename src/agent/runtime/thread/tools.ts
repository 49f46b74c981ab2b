import type { StoredThread } from '../../thread-store.ts';
import type { Tool } from '../../tool.ts';
import type { DynamicTools } from '../types.ts';
import { toolsOf } from './dynamic-tools.ts';

export interface ThreadToolsOptions {
  /** All tools at the time of the call. */
  readonly tools: () => readonly Tool[];
  /** Names of built-in tools that the configuration enables; undefined: all. */
  readonly enabled: readonly string[] | undefined;
  /** Greatest depth at which sub-agents may start sub-agents. */
  readonly maxDepth: number;
}

/** Tools of a thread: its enabled server tools, and the tools that its client registered. */
export class ThreadTools {
  readonly #options: ThreadToolsOptions;
  readonly #registered = new Map<string, DynamicTools>();

  constructor(options: ThreadToolsOptions) {
    this.#options = options;
  }

  /** Enabled tools of the server. */
  all(): readonly Tool[] {
    const { tools, enabled } = this.#options;
    const names = enabled && new Set(enabled);
    return tools().filter(({ name, source }) => source !== 'builtin' || !names || names.has(name));
  }

  of({ id, config }: StoredThread, depth: number): readonly Tool[] {
    const wanted = config?.enabledTools && new Set(config.enabledTools.map((name) => name.toLowerCase()));
    const server = this.all()
      .filter(({ isReadOnly, source }) => !config?.readOnly || (isReadOnly && source === 'builtin'))
      .filter(({ name }) => !wanted || wanted.has(name.toLowerCase()))
      .filter(({ name, source }) => name !== 'SpawnSubagent' || source !== 'builtin' || depth < this.#options.maxDepth);
    const registered = this.#registered.get(id);
    return registered ? [...server, ...toolsOf(registered, new Set(server.map(({ name }) => name)))] : server;
  }

  /** Replaces the client tools of the thread. @throws AgentError toolConflict */
  register(threadId: string, dynamicTools: DynamicTools): void {
    toolsOf(dynamicTools, new Set(this.all().map(({ name }) => name)));
    this.#registered.set(threadId, dynamicTools);
  }

  forget(threadId: string): void {
    this.#registered.delete(threadId);
  }
}
