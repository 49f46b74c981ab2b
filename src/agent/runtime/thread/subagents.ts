import { randomUUID } from 'node:crypto';
import { defaults, type InputPart, type ThreadConfig, type Turn } from '../../../protocol/index.ts';
import type { Delegate } from '../../delegate.ts';
import type { StoredThread } from '../../thread-store.ts';
import type { SubagentOrder, ToolResult } from '../../tool.ts';
import type { StartedSubagent } from '../../turn-actor-store.ts';
import type { OpenedWorktree, OpenWorktree } from '../../worktrees/index.ts';
import { timestamp } from '../clock.ts';
import type { RuntimeServices } from '../services.ts';
import type { SpawningCall, TurnRun } from '../turn/index.ts';
import type { TurnOptions } from '../types.ts';
import { nameOf } from './fork.ts';
import type { ThreadRegistry } from './registry.ts';
import type { ActiveTurn } from './running-turns.ts';
import { childSettings } from './subagent-type.ts';
import type { ThreadTools } from './tools.ts';

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
  /** Running turn of a thread. */
  readonly runOf: (threadId: string) => TurnRun | undefined;
}

/** A sub-agent whose turn runs, or has ended in an earlier process. */
interface BegunSubagent {
  readonly threadId: string;
  readonly ended: Promise<Turn>;
  readonly interrupt: () => void;
  /** A text: the reason that its changes stay where they are. */
  readonly worktree: OpenedWorktree | string | undefined;
}

/** Runs sub-agents: each is a turn in a thread of its own, in the files of its parent or in a worktree. */
export class Subagents {
  readonly #options: SubagentsOptions;

  constructor(options: SubagentsOptions) {
    this.#options = options;
  }

  /**
   * Runs a sub-agent to its end, or waits for the one that an earlier process started for the call.
   *
   * @param parent turn that asked; undefined: it has ended
   * @returns the last message of the sub-agent, or why it is missing
   */
  async spawn(
    parent: ActiveTurn | undefined,
    order: SubagentOrder,
    call: SpawningCall,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    if (!parent) return { text: 'Error: the turn that asked has ended.', isError: true };
    return parent.subagents.run('', async () => {
      signal.throwIfAborted();
      const { services, delegateOf } = this.#options;
      const begun = await (call.started ? this.#resume(parent, call.started) : this.#begin(parent, order, call));
      if ('text' in begun) return begun;
      const { threadId, ended, worktree } = begun;
      const stop = () => begun.interrupt();
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop, { once: true });
      const turn = await ended.finally(() => signal.removeEventListener('abort', stop));
      if (order.agent !== undefined) delegateOf(order.agent)?.endThread(threadId);
      await services.processes?.endThread(threadId);
      const changes = typeof worktree === 'string' ? worktree : await worktree?.close(turn.status === 'completed');
      signal.throwIfAborted();
      const result = resultOf(turn);
      return changes ? { ...result, text: `${result.text}\n\n${changes}` } : result;
    });
  }

  /** Starts the turn of a sub-agent. @returns why it cannot start, as a result */
  async #begin(parent: ActiveTurn, order: SubagentOrder, call: SpawningCall): Promise<BegunSubagent | ToolResult> {
    const { task, label, type } = order;
    const { services, tools: threadTools, startTurn } = this.#options;
    const { settings, library, workspacePath } = services;
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
    const name = `agent-${randomUUID().slice(0, 8)}`;
    const worktree = wantsWorktree ? await this.#openWorktree(config, name) : undefined;
    if (typeof worktree === 'string') return { text: `Error: there is no worktree: ${worktree}.`, isError: true };
    const place = worktree && { workspaceOverride: worktree.path };
    const agent = order.agent ?? config.agent;
    const child = this.#startChild(thread, label, { ...own.config, ...place, ...(agent !== undefined && { agent }) });
    const { approvalPolicy, approvalTimeoutMs, isUnattended, waitsForQuota, tools } = parent.options;
    const options: TurnOptions = {
      // An external agent has its own models.
      model: order.agent === undefined ? own.model || settings.subAgent.model || parent.options.model : undefined,
      ...{ approvalPolicy, approvalTimeoutMs, isUnattended, waitsForQuota, tools, mode, parentCallId: call.callId },
      alsoStore: (turnId) => call.saveStart({ threadId: child.id, turnId, worktree: worktree?.origin }),
    };
    let run: TurnRun;
    try {
      run = startTurn(child, [{ type: 'text', text: task }], options, parent.depth + 1);
    } catch (error) {
      await worktree?.close(false);
      throw error;
    }
    run.onCost = (costUsd) => parent.run.addSubagentCost(costUsd);
    run.begin();
    return { threadId: child.id, ended: run.ended, interrupt: () => run.interrupt('user'), worktree };
  }

  /** Finds the turn of a sub-agent that an earlier process started: it continues, or has ended. */
  async #resume(parent: ActiveTurn, started: StartedSubagent): Promise<BegunSubagent | ToolResult> {
    const { registry, runOf } = this.#options;
    const { threadId, turnId } = started;
    const opened = started.worktree && (await this.#openWorktree(parent.thread.config ?? {}, started.worktree));
    const worktree =
      typeof opened === 'string'
        ? `The changes of the sub-agent are only in its worktree ${started.worktree?.name}: ${opened}.`
        : opened;
    const run = runOf(threadId);
    if (run?.turnId === turnId) {
      return { threadId, ended: run.ended, interrupt: () => run.interrupt('user'), worktree };
    }
    const turn = registry
      .storeOf(threadId)
      .turns(threadId, { limit: defaults.agent.turnPage })
      .find(({ id }) => id === turnId);
    if (!turn) return { text: 'Error: the conversation of the sub-agent was deleted.', isError: true };
    return { threadId, ended: Promise.resolve(turn), interrupt: () => undefined, worktree };
  }

  /** Creates the thread of a sub-agent, stored where its parent is. @param config replaces settings of the parent */
  #startChild(parent: StoredThread, label: string | undefined, config: ThreadConfig): StoredThread {
    const { services, registry } = this.#options;
    const now = timestamp();
    const isEphemeral = registry.isEphemeral(parent.id);
    const child: StoredThread = {
      ...parent,
      ...(Object.keys(config).length > 0 && { config: { ...parent.config, ...config } }),
      id: registry.newId(now, registry.isUnlisted(parent.id)),
      displayName: label ?? `sub-agent of ${nameOf(registry.storeOf(parent.id), parent)}`,
      parentThreadId: parent.id,
      createdAt: now,
      lastActiveAt: now,
    };
    registry.add(child, isEphemeral);
    services.tracer?.sessionStarted(child);
    return child;
  }

  /** @returns why it is missing, as a text */
  async #openWorktree(
    { workspaceOverride }: ThreadConfig,
    worktree: Parameters<OpenWorktree>[1],
  ): Promise<OpenedWorktree | string> {
    const { openWorktree, workspacePath } = this.#options.services;
    if (!openWorktree) return 'the user does not trust this workspace';
    return openWorktree(workspaceOverride ?? workspacePath, worktree);
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
