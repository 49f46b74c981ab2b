import { type RpcErrorName, rpcErrors } from '../protocol/index.ts';

/** Errors of the runtime, by their names in the table of the protocol. */
export type AgentErrorName = Extract<
  RpcErrorName,
  | 'threadNotFound'
  | 'threadNotActive'
  | 'turnInProgress'
  | 'turnNotFound'
  | 'turnNotRunning'
  | 'queuedInputNotFound'
  | 'toolConflict'
  | 'storageFailed'
  | 'workspaceOverrideRefused'
  | 'workspaceLost'
  | 'restoreConflict'
  | 'checkpointFailed'
  | 'moveRefused'
  | 'agentUnavailable'
  | 'approvalNotFound'
  | 'approvalTimeout'
  | 'questionNotFound'
  | 'questionInvalid'
  | 'overloaded'
  | 'mcpServerNotFound'
  | 'mcpServerInvalid'
  | 'mcpServerReadOnly'
  | 'mcpLoginFailed'
  | 'mcpReferenceFailed'
  | 'processNotFound'
  | 'skillNotFound'
  | 'commandNotFound'
  | 'workspaceRestricted'
  | 'automationNotFound'
  | 'automationInvalid'
  | 'automationConflict'
  | 'automationsDisabled'
>;

/** A request that cannot be met as things are. Nothing has changed. */
export class AgentError extends Error {
  override readonly name = 'AgentError';
  readonly reason: AgentErrorName;
  readonly data: Readonly<Record<string, unknown>>;
  /** Completes the message of the table. */
  readonly detail: string | undefined;

  constructor(reason: AgentErrorName, data: Readonly<Record<string, unknown>>, detail?: string) {
    super(rpcErrors[reason].message);
    this.reason = reason;
    this.data = data;
    this.detail = detail;
  }
}
