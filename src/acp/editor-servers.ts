/** Converts the MCP servers that an editor names for a session into settings. */
import { RequestError } from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import { isHttpUrl } from '../lib/index.ts';
import { defaults, McpServerSettings } from '../protocol/index.ts';

export type BroughtServers = ReadonlyMap<string, McpServerSettings>;

const text = v.pipe(
  v.string(),
  v.check((value) => !value.includes('\0')),
);
const variable = v.object({ name: v.pipe(v.string(), v.regex(/^[A-Za-z_]\w{0,200}$/)), value: text });
const header = v.object({ name: v.pipe(v.string(), v.regex(/^[\w!#$%&'*+.^`|~-]{1,200}$/)), value: text });
const many = defaults.acp.serverWords;

const Named = v.looseObject({ name: v.string(), type: v.optional(v.string()) });
const Stdio = v.object({
  command: v.pipe(text, v.nonEmpty(), v.maxLength(4_096)),
  args: v.pipe(v.array(text), v.maxLength(many)),
  env: v.pipe(v.array(variable), v.maxLength(many)),
});
const Http = v.object({
  url: v.pipe(v.string(), v.check(isHttpUrl), v.maxLength(8_192)),
  headers: v.pipe(v.array(header), v.maxLength(many)),
});

/**
 * Reads the MCP servers of a session, each under a name that is valid in tool names.
 *
 * @throws RequestError -32602, which names the server but none of its values
 */
export function broughtServers(list: readonly unknown[]): BroughtServers {
  const { threadServers } = defaults.mcp;
  if (list.length > threadServers) {
    throw RequestError.invalidParams({ mcpServers: list.length }, `at most ${threadServers} MCP servers in a session`);
  }
  if (Buffer.byteLength(JSON.stringify(list)) > defaults.acp.serverBytes) {
    throw RequestError.invalidParams(undefined, `the MCP servers need more than ${defaults.acp.serverBytes} bytes`);
  }
  const servers = new Map<string, McpServerSettings>();
  for (const server of list) {
    const named = v.safeParse(Named, server);
    if (!named.success) throw RequestError.invalidParams(undefined, 'an MCP server has no name');
    servers.set(freeName(named.output.name, servers), settingsOf(named.output));
  }
  return servers;
}

function settingsOf(server: v.InferOutput<typeof Named>): McpServerSettings {
  const refuse = (problem: string) => RequestError.invalidParams({ mcpServer: server.name.slice(0, 100) }, problem);
  if (server.type !== undefined && server.type !== 'http' && server.type !== 'stdio')
    throw refuse('MCP servers are supported over stdio and http');
  const checked = v.safeParse(server.type === 'http' ? Http : Stdio, server);
  if (!checked.success) {
    const field = v.getDotPath(checked.issues[0]) ?? 'server';
    throw refuse(`${field} of this MCP server is invalid`);
  }
  const given = checked.output;
  return v.parse(
    McpServerSettings,
    'url' in given
      ? { transport: 'streamableHttp', url: given.url, httpHeaders: recordOf(given.headers) }
      : { transport: 'stdio', command: given.command, args: given.args, env: recordOf(given.env) },
  );
}

const recordOf = (pairs: readonly { readonly name: string; readonly value: string }[]): Record<string, string> =>
  Object.fromEntries(pairs.map(({ name, value }) => [name, value]));

function freeName(given: string, taken: BroughtServers): string {
  const name = given.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, 48) || 'server';
  let free = name;
  for (let count = 2; taken.has(free); count += 1) free = `${name}_${count}`;
  return free;
}
