import { defaults } from '../defaults.ts';
import { type StackUser, stackFiles } from '../stack/index.ts';
import type { Step } from '../stack-plan.ts';
import { writeTheirs } from './steps.ts';

/** Settings of the agent server that a stack of version 0.1 has in its workspace. */
export interface AgentMove {
  /** Text of `agent/config.json`. */
  readonly config: string;
  /** The old file is there: it is emptied, because settings of a workspace are restricted. */
  readonly hasOld: boolean;
  readonly user: StackUser;
}

const { agent, agentHome, workspace } = defaults.directoryModes;

/** Home and settings of the agent server, outside of the workspace. */
export function agentHomeSteps(config: string, user: StackUser): readonly Step[] {
  return [
    { do: 'makeDirectory', path: stackFiles.agent, mode: agent },
    { do: 'makeDirectory', path: stackFiles.agentHome, mode: agentHome },
    writeTheirs(stackFiles.agentConfig, config),
    // A .gitignore of its own: that of an upgraded stack does not name the home, which holds tokens.
    writeTheirs(`${stackFiles.agent}/.gitignore`, '/home/\n'),
    ...give(stackFiles.agent, user),
  ];
}

/** Moves the settings of the agent server out of the workspace. The old file is in the backup of the change. */
export function agentMoveSteps({ config, hasOld, user }: AgentMove): readonly Step[] {
  if (!hasOld) return agentHomeSteps(config, user);
  const directory = `${stackFiles.workspace}/.oratorio`;
  return [
    ...agentHomeSteps(config, user),
    { do: 'makeDirectory', path: directory, mode: workspace },
    writeTheirs(stackFiles.oldAgentConfig, '{}\n'),
    ...give(directory, user),
  ];
}

const give = (path: string, { uid, gid, isOther }: StackUser): readonly Step[] =>
  isOther ? [{ do: 'giveTo', path, uid, gid }] : [];
