/** Names of MCP servers in commands and messages. */

/** Command that logs in to a server. */
export const mcpLoginCommand = (server: string): string => `oratorio mcp login ${server}`;

/** Matches `@server:uri` at the beginning of a word, without punctuation at its end. */
const mention = /(?<=^|[\s(])@([\w-]{1,64}):([a-z][a-z\d+.-]*:[^\s"]{0,2000}[^\s".,;:!?)])/gi;

/** MCP resources that a text mentions, without duplicates. */
export function mcpMentionsIn(text: string): readonly { readonly server: string; readonly uri: string }[] {
  const found = [...text.matchAll(mention)].map(([whole, server = '', uri = '']) => [whole, { server, uri }] as const);
  return [...new Map(found).values()];
}
