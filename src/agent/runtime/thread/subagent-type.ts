import type { ThreadConfig } from '../../../protocol/index.ts';
import { type AgentType, builtinAgentTypes, type Library } from '../../library/index.ts';
import { askUserTool } from '../../question.ts';
import type { Tool } from '../../tool.ts';

/** Settings of a sub-agent that its type decides; absent: the parent's settings. */
export interface ChildSettings {
  readonly config: Pick<ThreadConfig, 'agentInstructions' | 'enabledTools'>;
  readonly model?: string | undefined;
  /** Absent: as its parent asks. */
  readonly worktree?: boolean | undefined;
}

export interface TypeScene {
  /** Configuration of the parent. */
  readonly config: ThreadConfig;
  readonly tools: readonly Tool[];
  readonly library: Pick<Library, 'agentTypes'> | undefined;
  readonly workspacePath: string;
  /** Model of sub-agents that explore; empty: the model of all sub-agents. */
  readonly exploreModel: string;
}

const exploring = 'You explore: find the answer to the task and report it, with paths and lines. You change nothing.';

/**
 * Finds the settings that the type of a sub-agent decides.
 *
 * @param type name that the model wrote; undefined: `work`
 * @returns the settings, or the problem as a text for the model
 */
export function childSettings(type: string | undefined, scene: TypeScene): ChildSettings | string {
  const { config, tools, library, workspacePath, exploreModel } = scene;
  const own = config.agentInstructions;
  const withInstructions = (text: string) => ({ agentInstructions: own === undefined ? text : `${own}\n\n${text}` });
  if (type === undefined || type === 'work') return { config: {} };
  if (type === 'explore') {
    const enabledTools = tools.filter(isForExploring).map(({ name }) => name);
    return {
      config: { ...withInstructions(exploring), enabledTools },
      model: exploreModel || undefined,
      worktree: false,
    };
  }
  const types = library?.agentTypes(workspacePath).data ?? [];
  const found = types.find(({ name }) => name === type);
  if (!found)
    return `there is no type ${type}. Types: ${[...builtinAgentTypes, ...types.map(({ name }) => name)].join(', ')}.`;
  const enabledTools = toolsOf(found, tools);
  if (enabledTools?.length === 0) return `the type ${type} names no tool that is here: ${found.tools?.join(', ')}.`;
  return {
    config: { ...withInstructions(found.instructions), ...(enabledTools && { enabledTools }) },
    model: found.model,
    worktree: found.worktree,
  };
}

/** Whether an explorer gets a tool: only reading ones. A plan is for people who watch, and an explorer starts no sub-agents. */
const isForExploring = ({ name, isReadOnly }: Tool): boolean =>
  isReadOnly && name !== 'UpdatePlan' && name !== askUserTool;

function toolsOf({ tools: wanted }: AgentType, tools: readonly Tool[]): string[] | undefined {
  if (!wanted) return undefined;
  const names = new Set(wanted.map((name) => name.toLowerCase()));
  return tools.map(({ name }) => name).filter((name) => names.has(name.toLowerCase()));
}
