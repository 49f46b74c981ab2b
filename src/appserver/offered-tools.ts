import { selectToolNames } from '../agent/index.ts';
import type { Config } from '../config/index.ts';

/** Tools of a face that are known when the server begins to serve. */
export interface OfferedTools {
  /** `api`: the chat API, which has a list of its own. `server`: every other face. */
  readonly face: 'api' | 'server';
  /** Built-in tools. */
  readonly names: readonly string[];
  /** No list leaves one out. */
  readonly isAll: boolean;
  /** A list of the settings names the tools; false: the face offers its default tools. */
  readonly isListed: boolean;
  /** MCP servers whose tools are added when they are ready. */
  readonly mcpServers: number;
}

export interface FaceTools {
  readonly offered: readonly OfferedTools[];
  /** Warnings for the user, e.g. that lists without overlap leave no tool. */
  readonly warnings: readonly string[];
}

/** Names of the chat API's tools, from its own list or the general one; empty: all but extra tools, which a list must name. */
export const apiToolsOf = ({ EnabledTools, Api }: Config): readonly string[] =>
  Api.EnabledTools.length > 0 ? Api.EnabledTools : EnabledTools;

/**
 * Works out which tools each face offers.
 *
 * @param builtin names of the built-in tools; the chat API offers extra ones only when it names them
 * @param isServed which faces this process serves
 */
export function faceToolsOf(
  config: Config,
  builtin: { readonly standard: readonly string[]; readonly extra: readonly string[] },
  isServed: Readonly<Record<OfferedTools['face'], boolean>>,
): FaceTools {
  const { EnabledTools, Api, McpServers } = config;
  const servers = Object.entries(McpServers).flatMap(([name, { enabled }]) => (enabled ? [name] : []));
  const offerOf = (face: OfferedTools['face'], lists: readonly (readonly string[])[]): OfferedTools => {
    const isListed = lists.some((list) => list.length > 0);
    const all = face === 'api' && !isListed ? builtin.standard : [...builtin.standard, ...builtin.extra];
    const names = lists.reduce<readonly string[]>(selectToolNames, all);
    const mcpServers = servers.filter((server) => lists.every((list) => admitsServer(list, server))).length;
    return { face, names, isAll: names.length === all.length, isListed, mcpServers };
  };
  const offered = [
    ...(isServed.api ? [offerOf('api', [EnabledTools, Api.EnabledTools])] : []),
    // One line is enough where the lists are the same.
    ...(isServed.server && (!isServed.api || Api.EnabledTools.length > 0) ? [offerOf('server', [EnabledTools])] : []),
  ];
  return { offered, warnings: [...unknownServers(config), ...offered.flatMap(emptyWarning)] };
}

const prefixOf = (server: string): string => `mcp__${server}__`.toLowerCase();

/** Whether a list lets tools of this MCP server through. */
function admitsServer(list: readonly string[], server: string): boolean {
  return list.length === 0 || list.some((name) => name.toLowerCase().startsWith(prefixOf(server)));
}

function unknownServers({ EnabledTools, Api, McpServers }: Config): string[] {
  const prefixes = Object.keys(McpServers).map(prefixOf);
  const isUnknown = (name: string) =>
    /^mcp__/i.test(name) && !prefixes.some((each) => name.toLowerCase().startsWith(each));
  const warn = (setting: string, names: readonly string[]) =>
    names.filter(isUnknown).map((name) => `${setting} names ${name}, but no such MCP server is configured.`);
  return [...warn('EnabledTools', EnabledTools), ...warn('Api.EnabledTools', Api.EnabledTools)];
}

function emptyWarning({ face, names, mcpServers }: OfferedTools): string[] {
  if (names.length > 0 || mcpServers > 0) return [];
  return [
    face === 'api'
      ? 'The chat API offers no tools: EnabledTools and Api.EnabledTools name none in common. Name a tool in both, or empty one of them.'
      : 'No tools are offered: EnabledTools names none that exists here.',
  ];
}
