export * from './browser.ts';
export {
  McpServer,
  type McpServerOptions,
  type McpTask,
  type McpTasks,
  type McpTool,
  mcpErrorCodes,
  namedProtocol,
  newerProtocols,
  olderProtocols,
} from './mcp-server.ts';
