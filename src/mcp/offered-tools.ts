import type { Tool } from '../agent/index.ts';
import { usesLogin } from './oauth/index.ts';
import type { McpServer } from './server.ts';
import { createTool, type ToolHost } from './tool.ts';
import { ToolNames } from './tool-names.ts';

export interface OfferedToolsOptions {
  /** See `ToolHost`. */
  readonly traceparent?: ToolHost['traceparent'];
  /** Server in lasting approvals; default: its name. */
  readonly scopeOf?: ((name: string, settings: McpServer['settings']) => string) | undefined;
}

/** Tools of all servers that are ready, by server. */
export function offeredTools(
  servers: ReadonlyMap<string, McpServer>,
  { traceparent, scopeOf }: OfferedToolsOptions,
): Tool[] {
  const names = new ToolNames();
  const sorted = [...servers.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return sorted.flatMap(({ name: serverName, settings, secrets, tools }) =>
    tools.map((tool) =>
      createTool(names.nameOf(serverName, tool.name), tool, {
        serverName,
        scope: scopeOf?.(serverName, settings),
        isTrusted: settings.trusted,
        toolTimeoutSec: settings.toolTimeoutSec,
        login: usesLogin(settings) ? serverName : undefined,
        traceparent,
        // By name: a tool that a turn still holds finds the server that has taken the place of the one it came from.
        connection: () => servers.get(serverName)?.connection,
        settled: async () => servers.get(serverName)?.settled(),
        stateText: () => stateText(servers.get(serverName)),
        ...secrets,
      }),
    ),
  );
}

/** State of a server as the end of a sentence. */
export function stateText(server: McpServer | undefined): string {
  if (!server) return 'it has been removed.';
  const { state, lastError } = server;
  return lastError === null ? `it is ${state}.` : `it is ${state} (${lastError.split('\n')[0]})`;
}
