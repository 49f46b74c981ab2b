import { approvalsOfAgent, ownAgent } from '../../../../protocol/browser.ts';
import type { AgentInUse, ThreadConfig } from '../../../../protocol/index.ts';

/** External agent that does the turns of a thread; null: our own agent, or not known yet. */
export type OtherAgent = Pick<AgentInUse, 'kind' | 'name' | 'version' | 'approvals'> | null;

/**
 * The agent of a thread: the named one, or the agent of the workspace.
 *
 * @returns `isOfWorkspace` is true if the models and modes of the workspace apply to the thread
 */
export function agentOfThread(
  ofWorkspace: AgentInUse | null,
  { agent: named }: Pick<ThreadConfig, 'agent'>,
): { readonly agent: OtherAgent; readonly isOfWorkspace: boolean } {
  const isOther = ofWorkspace !== null && ofWorkspace.kind !== 'oratorio';
  if (named === undefined || named === ofWorkspace?.name) {
    return { agent: isOther ? ofWorkspace : null, isOfWorkspace: true };
  }
  if (named === ownAgent) return { agent: null, isOfWorkspace: false };
  const approvals = approvalsOfAgent(named);
  return { agent: { kind: 'acp', name: named, version: null, approvals }, isOfWorkspace: false };
}
