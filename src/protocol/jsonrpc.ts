/** Error codes of JSON-RPC 2.0 (https://www.jsonrpc.org/specification) as the agent server speaks it. */

/** Every error code of the agent server's protocol. The one table. */
export const rpcErrors = {
  parseError: { code: -32700, message: 'Parse error', when: 'The frame is not JSON; the id of the answer is null.' },
  invalidRequest: {
    code: -32600,
    message: 'Invalid request',
    when: 'The frame is JSON but no JSON-RPC 2.0 message; batches are not supported.',
  },
  methodNotFound: { code: -32601, message: 'Method not found', when: 'There is no such method.' },
  invalidParams: {
    code: -32602,
    message: 'Invalid params',
    when: 'A parameter is missing or wrong; `data.path` names it.',
  },
  internalError: {
    code: -32603,
    message: 'Internal error',
    when: 'A bug; the id in `data.errorId` is in the log of the agent server.',
  },
  overloaded: {
    code: -32001,
    message: 'Overloaded',
    when: 'Too many requests of this connection are in flight; try again after a pause with jitter.',
  },
  notInitialized: { code: -32002, message: 'Not initialized', when: 'The first request must be initialize.' },
  alreadyInitialized: { code: -32003, message: 'Already initialized', when: 'initialize was sent before.' },
  methodNotAllowed: {
    code: -32004,
    message: 'Method not allowed',
    when: 'The page of the dashboard has no use for it; clients of the agent server may call it.',
  },
  threadNotFound: { code: -32010, message: 'Thread not found', when: 'There is no thread with this id.' },
  threadNotActive: { code: -32011, message: 'Thread not active', when: 'The thread is paused or archived.' },
  turnInProgress: { code: -32012, message: 'Turn in progress', when: 'The thread already runs a turn.' },
  turnNotFound: { code: -32013, message: 'Turn not found', when: 'The thread has no turn with this id.' },
  turnNotRunning: { code: -32014, message: 'Turn not running', when: 'The turn has ended already.' },
  queuedInputNotFound: { code: -32015, message: 'Queued input not found', when: 'It has begun or was removed.' },
  toolConflict: { code: -32016, message: 'Tool conflict', when: 'Two tools have the same name; `data.tool` names it.' },
  storageFailed: {
    code: -32017,
    message: 'Storage failed',
    when: 'The disk is full or the database cannot be written.',
  },
  workspaceOverrideRefused: {
    code: -32018,
    message: 'Workspace override refused',
    when: 'It is not a directory below a worktree root of this server, or it is to be changed; `data.reason` says which.',
  },
  restoreConflict: {
    code: -32019,
    message: 'Restore conflict',
    when: 'Files were changed since by others; nothing was restored or merged. `data.conflicts` lists the first of them, `data.conflictsTotal` is their number; `force: true` overwrites.',
  },
  checkpointFailed: {
    code: -32084,
    message: 'Checkpoint failed',
    when: 'The files could not be saved or restored, or checkpoints are switched off; `data` says why.',
  },
  moveRefused: {
    code: -32094,
    message: 'Move refused',
    when: 'The conversation cannot move now, or has moved to another place; the message has the reason and the next step. Nothing was changed.',
  },
  agentUnavailable: {
    code: -32086,
    message: 'Agent unavailable',
    when: 'A fork names an agent that cannot do its turns; `data.reason` is `unknown`, `notInstalled` or, of a workspace that is not trusted, `restricted`. Nothing was copied.',
  },
  workspaceLost: {
    code: -32088,
    message: 'Workspace lost',
    when: 'The workspace was moved, deleted or replaced while its agent server runs; `data.kind` is `gone` or `replaced`, `data.path` names it. Nothing was done.',
  },
  approvalTimeout: { code: -32020, message: 'Approval timeout', when: 'No decision in time; it was declined.' },
  approvalNotFound: { code: -32021, message: 'Approval not found', when: 'It was decided already, or never asked.' },
  questionNotFound: {
    code: -32022,
    message: 'Question not found',
    when: 'The question was already answered, or was never asked.',
  },
  questionInvalid: {
    code: -32023,
    message: 'Answer invalid',
    when: 'The answer does not fit the question, which stays open; `data.field` names the first wrong field.',
  },
  automationNotFound: { code: -32031, message: 'Automation not found', when: 'There is no job or task with this id.' },
  automationInvalid: {
    code: -32052,
    message: 'Automation invalid',
    when: 'Its schedule can never come, or its state does not allow this; `data` says why.',
  },
  automationConflict: {
    code: -32054,
    message: 'Automation changed',
    when: 'Another client changed it meanwhile: read it again. `data.version` is the newest.',
  },
  automationsDisabled: {
    code: -32056,
    message: 'Automations are disabled',
    when: 'Automations.Enabled is false in the configuration.',
  },
  mcpServerNotFound: { code: -32070, message: 'MCP server not found', when: 'There is no server with this name.' },
  mcpServerInvalid: { code: -32072, message: 'MCP server invalid', when: 'Its settings cannot work; `data` says why.' },
  mcpLoginFailed: {
    code: -32090,
    message: 'Log-in failed',
    when: 'The log-in at an MCP server cannot start; `data.problem` has the reason.',
  },
  mcpReferenceFailed: {
    code: -32092,
    message: 'Reference to an MCP server failed',
    when: 'A prompt or resource that the input names cannot be read; `data.problem` has the reason. Nothing was sent to the model.',
  },
  mcpServerReadOnly: {
    code: -32074,
    message: 'MCP server read-only',
    when: 'It is configured for all workspaces of the user; change it there.',
  },
  processNotFound: {
    code: -32078,
    message: 'Process not found',
    when: 'The thread has no background process with this id.',
  },
  skillNotFound: { code: -32080, message: 'Skill not found', when: 'There is no skill with this name.' },
  commandNotFound: { code: -32082, message: 'Command not found', when: 'There is no prompt command with this name.' },
  workspaceRestricted: {
    code: -32076,
    message: 'Workspace restricted',
    when: 'Settings that start programs and forks with files need a workspace that the user trusts: oratorio trust, then oratorio restart.',
  },
} as const satisfies Record<string, { code: number; message: string; when: string }>;
export type RpcErrorName = keyof typeof rpcErrors;
