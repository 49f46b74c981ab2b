import { setMember, writeFileAtomic } from '../lib/index.ts';
import { workspaceSource } from './change.ts';
import { isJsonObject } from './parse.ts';
import { readWorkspaceSettings } from './read-layer.ts';
import { requestedSettings, type TrustPlace, trustWorkspace, workspaceTrust } from './trust.ts';

export interface ChosenAgent {
  readonly name: string;
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Members of `Agent` to write. Command and variables of another agent go; the user's own of this agent stay. */
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
 * Makes an agent do the turns of a workspace: writes its name into the workspace's own file. A workspace that is trusted, or that
 * asks for nothing else, stays trusted, because the user requested this change. The caller has checked the name.
 *
 * @param agent undefined: the product's own agent. Without a command it is a preset
 * @returns `restricted`: the choice holds once the user trusts the workspace
 * @throws ConfigError, TrustError
 */
export function chooseAgent(
  { home, workspace }: TrustPlace,
  agent: ChosenAgent | undefined,
): 'unchanged' | 'chosen' | 'restricted' {
  const wasTrusted = workspaceTrust({ home, workspace }).trust === 'trusted' || requestedSettings(workspace).size === 0;
  const source = workspaceSource(workspace);
  const before = source.text?.trim() ? source.text : '{}\n';
  // Settings are found in any case.
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
