import * as v from 'valibot';
import type { Tool } from '../tool.ts';
import { defineTool } from './define.ts';

const taskWords = 'a text that says what to do';

/** `SpawnSubagent`: hands a task to an agent of its own; limits, policy and tools are the runtime's business. */
export function createSpawnSubagent(): Tool {
  return defineTool({
    name: 'SpawnSubagent',
    description:
      'Gives a task to a sub-agent with the same tools and returns its report. It knows nothing of this conversation: say all it needs.',
    isReadOnly: false,
    parameters: v.object({
      task: v.pipe(v.string(taskWords), v.trim(), v.nonEmpty(taskWords), v.description('What to do and to report.')),
      label: v.optional(v.string('a short name')),
      type: v.pipe(v.optional(v.string('the name of a type')), v.description('"explore" only reads; default "work".')),
      worktree: v.pipe(v.optional(v.boolean('true or false'), false), v.description('For parallel writers.')),
    }),
    aliases: {
      task: ['prompt', 'agentPrompt', 'instructions'],
      type: ['subagent_type', 'agentType', 'agentRole'],
      worktree: ['isolation', 'own_worktree'],
      label: ['description', 'name', 'agentNickname', 'title'],
    },
    run: ({ task, label, type, worktree }, context) =>
      context.spawnSubagent({ task, label: label?.trim() || undefined, type: type?.trim() || undefined, worktree }),
  });
}
