/**
 * The face for editors: the Agent Client Protocol on standard input and output, onto the agent servers of workspaces. The
 * command `oratorio acp` starts it. It is a client like any other: it finds the Hub, has it start the agent server, and
 * speaks JSON-RPC to that. Never here: threads, turns and tools themselves, anything on standard output but the protocol.
 */
export { hasModel } from './authentication.ts';
export { type HubConnectOptions, throughHub } from './connect.ts';
export { type AcpOptions, runAcp } from './run.ts';
export type { Connect, ConnectRequest, Link } from './servers.ts';
