import { setMember, writeFileAtomic } from '../lib/index.ts';
import { workspaceSource } from './change.ts';
import { isJsonObject } from './parse.ts';
import { readWorkspaceSettings } from './read-layer.ts';
import type { Config } from './schema.ts';
import { requestedSettings, type TrustPlace, trustWorkspace, workspaceTrust } from './trust.ts';

/** Whether an external agent runs the turns of a workspace. */
export const isDelegated = ({ Kind, Name, Command }: Config['Agent']): boolean =>
  Kind === 'acp' || (Kind === '' && (Name !== '' || Command.length > 0));

export interface ChosenAgent {
  readonly name: string;
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Members of `Agent` to write. Removes command and variables of the previous agent, but keeps the user's own for this agent. */
function changesOf(present: unknown, agent: ChosenAgent | undefined): readonly (readonly [string, unknown])[] {
  const known = isJsonObject(present) ? present : {};
  const at = (name: string) => Object.keys(known).find((each) => each.toLowerCase() === name.toLowerCase()) ?? name;
  const isSame = agent !== undefined && known[at('Name')] === agent.name;
  const name = [at('Name'), agent?.name] as const;
  if (isSame && agent.command === undefined) return [name];
  const env = isSame ? known[at('Env')] : agent?.env;
  const others = { Command: agent?.command, Env: env };
  const changed = Object.entries(others).filter(([member, value]) => value !== undefined || at(member) in known);
  return [name, ...changed.map(([member, value]) => [at(member), value] as const)];
}

/**
 * Sets the agent of a workspace: writes its name into the workspace's own file. The workspace stays trusted if it was trusted or has no
 * other sensitive setting, because the user requested this change. The caller must check the name.
 *
 * @param agent undefined: our own agent. An agent without a command is a preset
 * @returns `restricted`: the choice takes effect once the user trusts the workspace
 * @throws ConfigError, TrustError
 */
export function chooseAgent(
  { home, workspace }: TrustPlace,
  agent: ChosenAgent | undefined,
): 'unchanged' | 'chosen' | 'restricted' {
  const wasTrusted = workspaceTrust({ home, workspace }).trust === 'trusted' || requestedSettings(workspace).size === 0;
  const source = workspaceSource(workspace);
  const before = source.text?.trim() ? source.text : '{}\n';
  // Names of settings are case-insensitive.
  const settings = readWorkspaceSettings(workspace) ?? {};
  const key = Object.keys(settings).find((each) => /^agent$/i.test(each)) ?? 'Agent';
  const members = changesOf(settings[key], agent);
  const text = members.reduce((made, [member, value]) => setMember(made, [key, member], value), before);
  if (text === source.text) return 'unchanged';
  writeFileAtomic(source.file, text);
  if (!wasTrusted) return 'restricted';
  trustWorkspace({ home, workspace }, requestedSettings(workspace));
  return 'chosen';
}
