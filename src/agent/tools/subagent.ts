import * as v from 'valibot';
import type { ApprovalNeed, SubagentOrder, Tool, ToolContext } from '../tool.ts';
import { defineTool } from './define.ts';

const taskWords = 'a text that says what to do';

const entries = {
  task: v.pipe(v.string(taskWords), v.trim(), v.nonEmpty(taskWords), v.description('What to do and to report.')),
  label: v.optional(v.string('a short name')),
  type: v.pipe(v.optional(v.string('the name of a type')), v.description('"explore" only reads; default "work".')),
  worktree: v.pipe(v.optional(v.boolean('true or false'), false), v.description('For parallel writers.')),
};

const rest = {
  name: 'SpawnSubagent',
  description:
    'Gives a task to a sub-agent with the same tools and returns its report. It knows nothing of this conversation: say all it needs.',
  isReadOnly: false,
} as const;

const aliases = {
  task: ['prompt', 'agentPrompt', 'instructions'],
  type: ['subagent_type', 'agentType', 'agentRole'],
  worktree: ['isolation', 'own_worktree'],
  label: ['description', 'name', 'agentNickname', 'title'],
};

interface Given {
  readonly task: string;
  readonly label?: string | undefined;
  readonly type?: string | undefined;
  readonly worktree: boolean;
}

const orderOf = ({ task, label, type, worktree }: Given): SubagentOrder => ({
  ...{ task, worktree },
  label: label?.trim() || undefined,
  type: type?.trim() || undefined,
});

/**
 * `SpawnSubagent`: hands a task to an agent of its own; limits, policy and tools are the runtime's business.
 *
 * @param agents external agents that can do the task. The parameter exists only where there are some: each request shows it
 */
export function createSpawnSubagent(agents: readonly string[] = []): Tool {
  const spawn = (order: SubagentOrder, context: ToolContext) => context.spawnSubagent(order);
  if (agents.length === 0) {
    return defineTool({
      ...rest,
      ...{ aliases, parameters: v.object(entries) },
      run: (given, context) => spawn(orderOf(given), context),
    });
  }
  const agent = v.pipe(
    v.optional(v.picklist(agents, `one of ${agents.join(', ')}`)),
    v.description('Another program that does it, if the user wants that.'),
  );
  return defineTool({
    ...rest,
    ...{ aliases, parameters: v.object({ ...entries, agent }) },
    approvalFor: async (given) => (given.agent === undefined ? undefined : needOf(given.agent)),
    run: (given, context) => spawn({ ...orderOf(given), agent: given.agent }, context),
  });
}

/** Approval for an agent that gets the task and the files and spends from its own account: for one conversation, or for good. */
const needOf = (agent: string): ApprovalNeed => ({
  ...({ kind: 'remoteResource', operation: 'delegate' } as const),
  target: agent,
  scopeKey: `subagent:${agent}`,
  covers: `tasks for ${agent} in this workspace`,
  reason: `${agent} would work here as a sub-agent.`,
});
