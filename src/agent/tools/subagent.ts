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
    }),
    aliases: {
      task: ['prompt', 'agentPrompt', 'instructions'],
      label: ['description', 'name', 'agentNickname', 'title'],
    },
    run: ({ task, label }, context) => context.spawnSubagent(task, label?.trim() || undefined),
  });
}
