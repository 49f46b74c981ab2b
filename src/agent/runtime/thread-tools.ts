import type { StoredThread } from '../thread-store.ts';
import type { Tool } from '../tool.ts';
import { toolsOf } from './dynamic-tools.ts';
import type { DynamicTools } from './types.ts';

export interface ThreadToolsOptions {
  /** Everything that can be called, by the time of the call. */
  readonly tools: () => readonly Tool[];
  /** Names of built-in tools that the configuration enables; undefined: all. */
  readonly enabled: readonly string[] | undefined;
  /** Greatest depth at which sub-agents may start sub-agents. */
  readonly maxDepth: number;
}

/** Which tools a thread may use: those of the server that it enables, and those that its client brought. */
export class ThreadTools {
  readonly #options: ThreadToolsOptions;
  readonly #brought = new Map<string, DynamicTools>();

  constructor(options: ThreadToolsOptions) {
    this.#options = options;
  }

  /** Of the server. */
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
    const brought = this.#brought.get(id);
    return brought ? [...server, ...toolsOf(brought, new Set(server.map(({ name }) => name)))] : server;
  }

  /** From now on the thread has these, in place of what was brought before. @throws AgentError toolConflict */
  bring(threadId: string, dynamicTools: DynamicTools): void {
    toolsOf(dynamicTools, new Set(this.all().map(({ name }) => name)));
    this.#brought.set(threadId, dynamicTools);
  }

  forget(threadId: string): void {
    this.#brought.delete(threadId);
  }
}
