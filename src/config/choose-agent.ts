import { setMember, writeFileAtomic } from '../lib/index.ts';
import { workspaceSource } from './change.ts';
import { readWorkspaceSettings } from './read-layer.ts';
import { requestedSettings, type TrustPlace, trustWorkspace, workspaceTrust } from './trust.ts';

/**
 * Makes an agent do the turns of a workspace: writes its name into the workspace's own file. A workspace that is trusted, or that
 * asks for nothing else, stays trusted, because the user requested this change. The caller has checked the name.
 *
 * @param name undefined: the product's own agent
 * @returns `restricted`: the choice holds once the user trusts the workspace
 * @throws ConfigError, TrustError
 */
export function chooseAgent(
  { home, workspace }: TrustPlace,
  name: string | undefined,
): 'unchanged' | 'chosen' | 'restricted' {
  const wasTrusted = workspaceTrust({ home, workspace }).trust === 'trusted' || requestedSettings(workspace).size === 0;
  const source = workspaceSource(workspace);
  const before = source.text?.trim() ? source.text : '{}\n';
  // Settings are found in any case.
  const key = Object.keys(readWorkspaceSettings(workspace) ?? {}).find((each) => /^agent$/i.test(each)) ?? 'Agent';
  const text = setMember(before, [key, 'Name'], name);
  if (text === source.text) return 'unchanged';
  writeFileAtomic(source.file, text);
  if (!wasTrusted) return 'restricted';
  trustWorkspace({ home, workspace }, requestedSettings(workspace));
  return 'chosen';
}
