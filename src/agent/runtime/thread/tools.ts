import { setTimeout as sleep } from 'node:timers/promises';
import { type DynamicTool, defaults } from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import type { StoredThread } from '../../thread-store.ts';
import type { ApprovalNeed, Tool, ToolContext, ToolResult } from '../../tool.ts';
import type { RuntimeServices } from '../services.ts';
import type { DynamicTools } from '../types.ts';

/** Tools of a thread: its enabled server tools, and the tools that its client registered or whose servers it started. */
export class ThreadTools {
  readonly #services: RuntimeServices;
  readonly #registered = new Map<string, DynamicTools>();
  /** Tools of MCP servers that a client has brought for the thread. */
  readonly #served = new Map<string, () => readonly Tool[]>();
  /** Turns of an earlier process that wait for the tools of their thread. */
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>();

  constructor(services: RuntimeServices) {
    this.#services = services;
  }

  /** Enabled tools of the server. */
  all(): readonly Tool[] {
    const { tools, enabledTools } = this.#services;
    const names = enabledTools && new Set(enabledTools);
    return tools().filter(({ name, source }) => source !== 'builtin' || !names || names.has(name));
  }

  of({ id, config }: StoredThread, depth: number): readonly Tool[] {
    const { maxDepth } = this.#services.settings.subAgent;
    const wanted = config?.enabledTools && new Set(config.enabledTools.map((name) => name.toLowerCase()));
    const all = this.all();
    const taken = new Set(all.map(({ name }) => name));
    const served = this.#served.get(id)?.() ?? [];
    const server = [...all, ...served.filter(({ name }) => !taken.has(name))]
      .filter(({ isReadOnly, source }) => !config?.readOnly || (isReadOnly && source === 'builtin'))
      .filter(({ name }) => !wanted || wanted.has(name.toLowerCase()))
      .filter(({ name, source }) => name !== 'SpawnSubagent' || source !== 'builtin' || depth < maxDepth);
    const registered = this.#registered.get(id);
    return registered ? [...server, ...toolsOf(registered, new Set(server.map(({ name }) => name)))] : server;
  }

  /** Replaces the client tools of the thread. @throws AgentError toolConflict */
  register(threadId: string, dynamicTools: DynamicTools): void {
    toolsOf(dynamicTools, new Set(this.all().map(({ name }) => name)));
    this.#registered.set(threadId, dynamicTools);
    this.#waiting.get(threadId)?.resolve();
  }

  /** Adds the tools of servers that the thread's client has brought; undefined: removes them. */
  serve(threadId: string, tools: (() => readonly Tool[]) | undefined): void {
    if (!tools) {
      this.#served.delete(threadId);
      return;
    }
    this.#served.set(threadId, tools);
    this.#waiting.get(threadId)?.resolve();
  }

  /** Whether the thread has tools of a client. */
  hasClientTools(threadId: string): boolean {
    return this.#registered.has(threadId) || this.#served.has(threadId);
  }

  /** Resolves when the thread has tools of a client, or after the time for a call. @throws the reason of `signal` */
  async whenRegistered(threadId: string, signal: AbortSignal): Promise<void> {
    if (this.hasClientTools(threadId)) return;
    const registered = Promise.withResolvers<void>();
    this.#waiting.set(threadId, registered);
    const over = new AbortController();
    const { clientToolMs = defaults.agent.dynamicToolCallMs } = this.#services.settings.turns;
    const isOver = sleep(clientToolMs, undefined, {
      signal: AbortSignal.any([signal, over.signal]),
    }).catch(() => undefined);
    await Promise.race([registered.promise, isOver]);
    over.abort();
    this.#waiting.delete(threadId);
    signal.throwIfAborted();
  }

  forget(threadId: string): void {
    this.#registered.delete(threadId);
    this.#served.delete(threadId);
  }
}

const nameOf = ({ namespace, name }: DynamicTool): string => (namespace === undefined ? name : `${namespace}__${name}`);

/** Tools of a connection for the model. @throws AgentError toolConflict */
function toolsOf({ tools, call }: DynamicTools, taken: ReadonlySet<string>): Tool[] {
  const names = new Set(taken);
  return tools.map((tool) => {
    const name = nameOf(tool);
    if (names.has(name)) throw new AgentError('toolConflict', { tool: name }, `the name ${name} is taken`);
    names.add(name);
    return dynamicTool(name, tool, call);
  });
}

function dynamicTool(name: string, tool: DynamicTool, call: DynamicTools['call']): Tool {
  return {
    name,
    source: 'dynamic',
    description: tool.description,
    inputSchema: tool.inputSchema,
    isReadOnly: false,
    parse: (args) =>
      typeof args === 'object' && args !== null && !Array.isArray(args)
        ? { ok: true, args }
        : { ok: false, error: `the arguments of ${name} must be a JSON object.` },
    approvalFor: async (args) => approvalOf(name, tool, args as Readonly<Record<string, unknown>>),
    run: (args, context) => runDynamic(tool, args as Record<string, unknown>, context, call),
  };
}

function approvalOf(
  name: string,
  { approval }: DynamicTool,
  args: Readonly<Record<string, unknown>>,
): ApprovalNeed | undefined {
  if (!approval) return undefined;
  const { kind, targetArgument, operation = 'call' } = approval;
  const target = targetArgument === undefined ? name : String(args[targetArgument] ?? name);
  const covers = targetArgument === undefined ? `every call of ${name}` : `${name} for this target`;
  return { kind, operation, target, scopeKey: `dynamic:${JSON.stringify([kind, name, target])}`, covers };
}

async function runDynamic(
  { namespace, name }: DynamicTool,
  args: Record<string, unknown>,
  { threadId, turnId, callId, signal }: ToolContext,
  call: DynamicTools['call'],
): Promise<ToolResult> {
  const deadline = AbortSignal.timeout(defaults.agent.dynamicToolCallMs);
  try {
    const about = {
      threadId,
      turnId,
      callId,
      ...(namespace !== undefined && { namespace }),
      tool: name,
      arguments: args,
    };
    const result = await call(about, AbortSignal.any([signal, deadline]));
    if (!result.success) return { text: `Error: ${result.errorCode}: ${result.errorMessage}`, isError: true };
    const text = result.contentItems.flatMap((item) => (item.type === 'text' ? [item.text] : [])).join('\n');
    const images = result.contentItems.flatMap((item) => (item.type === 'image' ? [item] : []));
    const structured = result.structuredResult === undefined ? '' : JSON.stringify(result.structuredResult);
    return { text: text || structured || '(no output)', images, isError: false };
  } catch (error) {
    signal.throwIfAborted();
    const reason = deadline.aborted ? 'the client did not answer in time' : (error as Error).message;
    return { text: `Error: ${name} cannot be run: ${reason}`, isError: true };
  }
}
