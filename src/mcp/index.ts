/**
 * Servers of the Model Context Protocol: connected to, revived, stopped, and their tools made tools of the agent. The agent
 * server has one `McpServers`; the faces bind its methods. Never here: who may ask, approvals (the runtime asks for those that a
 * tool needs), an MCP server of our own.
 */
export { McpFailure } from './failure.ts';
export { McpServers, type McpServersOptions, type McpSummary } from './mcp-servers.ts';
export {
  beginLogin,
  endLogin,
  type Login,
  LoginFile,
  type StoredLogin,
  serverAddress,
  usesLogin,
} from './oauth/index.ts';
