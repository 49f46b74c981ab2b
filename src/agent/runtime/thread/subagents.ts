import { randomUUID } from 'node:crypto';
import type { Limit } from '../../../lib/index.ts';
import type { InputPart, ThreadConfig, Turn } from '../../../protocol/index.ts';
import type { Delegate } from '../../delegate.ts';
import type { StoredThread } from '../../thread-store.ts';
import type { SubagentOrder, ToolResult } from '../../tool.ts';
import type { OpenedWorktree } from '../../worktrees/index.ts';
import { timestamp } from '../clock.ts';
import type { RuntimeServices } from '../services.ts';
import type { TurnRun } from '../turn/index.ts';
import type { TurnOptions } from '../types.ts';
import type { ThreadRegistry } from './registry.ts';
import { childSettings } from './subagent-type.ts';
import type { ThreadTools } from './tools.ts';

/** Running turn, which may ask for sub-agents. */
export interface RunningParent {
  readonly run: TurnRun;
  readonly thread: StoredThread;
  readonly options: TurnOptions;
  /** 0: the turn of a user. */
  readonly depth: number;
  readonly subagents: Limit;
}

export interface SubagentsOptions {
  readonly services: RuntimeServices;
  readonly registry: ThreadRegistry;
  readonly tools: ThreadTools;
  /** @throws AgentError turnInProgress, storageFailed */
  readonly startTurn: (
    thread: StoredThread,
    input: readonly InputPart[],
    options: TurnOptions,
    depth: number,
  ) => TurnRun;
  readonly delegateOf: (agent: string | undefined) => Delegate | undefined;
}

/** Runs sub-agents: each is a turn in a thread of its own, in the files of its parent or in a worktree. */
export class Subagents {
  readonly #options: SubagentsOptions;

  constructor(options: SubagentsOptions) {
    this.#options = options;
  }

  /**
   * Runs a sub-agent to its end.
   *
   * @param parent turn that asked; undefined: it has ended
   * @returns the last message of the sub-agent, or why it is missing
   */
  async spawn(parent: RunningParent | undefined, order: SubagentOrder, signal: AbortSignal): Promise<ToolResult> {
    const { task, label, type } = order;
    if (!parent) return { text: 'Error: the turn that asked has ended.', isError: true };
    return parent.subagents.run('', async () => {
      signal.throwIfAborted();
      const { services, tools: threadTools, startTurn, delegateOf } = this.#options;
      const { settings, processes, library, workspacePath } = services;
      const { thread } = parent;
      const { config = {} } = thread;
      if (order.agent !== undefined && type !== undefined && type !== 'work') {
        return { text: `Error: ${order.agent} knows no type ${type}: leave the type out.`, isError: true };
      }
      const own = childSettings(type, {
        ...{
          config,
          library,
          tools: threadTools.of(thread, parent.depth),
          exploreModel: settings.subAgent.exploreModel,
        },
        workspacePath: config.workspaceOverride ?? workspacePath,
      });
      if (typeof own === 'string') return { text: `Error: ${own}`, isError: true };
      const mode = parent.options.mode ?? parent.thread.config?.mode;
      const wantsWorktree = (own.worktree ?? order.worktree) && mode !== 'plan' && config.readOnly !== true;
      const worktree = wantsWorktree ? await this.#openWorktree(config) : undefined;
      if (typeof worktree === 'string') return { text: `Error: there is no worktree: ${worktree}.`, isError: true };
      const place = worktree && { workspaceOverride: worktree.path };
      const agent = order.agent ?? config.agent;
      const child = this.#startChild(thread, label, {
        ...own.config,
        ...place,
        ...(agent !== undefined && { agent }),
      });
      const { approvalPolicy, approvalTimeoutMs, tools, beforeEffects } = parent.options;
      const options = {
        // An external agent has its own models.
        model: order.agent === undefined ? own.model || settings.subAgent.model || parent.options.model : undefined,
        approvalPolicy,
        approvalTimeoutMs,
        tools,
        mode,
        beforeEffects,
      };
      let run: TurnRun;
      try {
        run = startTurn(child, [{ type: 'text', text: task }], options, parent.depth + 1);
      } catch (error) {
        await worktree?.close(false);
        throw error;
      }
      const stop = () => run.interrupt('user');
      signal.addEventListener('abort', stop, { once: true });
      run.onCost = (costUsd) => parent.run.addSubagentCost(costUsd);
      run.begin();
      const turn = await run.ended.finally(() => signal.removeEventListener('abort', stop));
      if (order.agent !== undefined) delegateOf(order.agent)?.endThread(child.id);
      await processes?.endThread(child.id);
      const changes = await worktree?.close(turn.status === 'completed');
      signal.throwIfAborted();
      const result = resultOf(turn);
      return changes ? { ...result, text: `${result.text}\n\n${changes}` } : result;
    });
  }

  /** Creates the thread of a sub-agent, stored where its parent is. @param config replaces settings of the parent */
  #startChild(parent: StoredThread, label: string | undefined, config: ThreadConfig): StoredThread {
    const { services, registry } = this.#options;
    const now = timestamp();
    const isEphemeral = registry.isEphemeral(parent.id);
    const child: StoredThread = {
      ...parent,
      ...(Object.keys(config).length > 0 && { config: { ...parent.config, ...config } }),
      id: registry.newId(now, isEphemeral),
      displayName: label ?? `sub-agent of ${parent.displayName ?? parent.id}`,
      parentThreadId: parent.id,
      createdAt: now,
      lastActiveAt: now,
    };
    registry.add(child, isEphemeral);
    services.tracer?.sessionStarted(child);
    return child;
  }

  /** @returns why it is missing, as a text */
  async #openWorktree({ workspaceOverride }: ThreadConfig): Promise<OpenedWorktree | string> {
    const { openWorktree, workspacePath } = this.#options.services;
    if (!openWorktree) return 'the user does not trust this workspace';
    return openWorktree(workspaceOverride ?? workspacePath, `agent-${randomUUID().slice(0, 8)}`);
  }
}

function resultOf(turn: Turn): ToolResult {
  const said = turn.items.findLast((item) => item.type === 'agentMessage');
  const text = said?.type === 'agentMessage' ? said.text : '';
  if (turn.status === 'completed') return { text: text || '(the sub-agent said nothing)', isError: false };
  return {
    text: `Error: the sub-agent ended early: ${turn.error?.message ?? turn.status}.\n${text}`.trim(),
    isError: true,
  };
}
