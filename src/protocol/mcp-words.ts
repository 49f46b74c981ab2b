/** Names of MCP servers in commands and messages. */

/** Command that logs in to a server. */
export const mcpLoginCommand = (server: string): string => `oratorio mcp login ${server}`;

/** Matches `@server:uri` at the beginning of a word, without punctuation at its end. */
const mention = /(?<=^|[\s(])@([\w-]{1,64}):([a-z][a-z\d+.-]*:[^\s"]{0,2000}[^\s".,;:!?)])/gi;

/** MCP resources that a text mentions outside of fenced code, which quotes other texts, such as files of an editor. Without duplicates. */
export function mcpMentionsIn(text: string): readonly { readonly server: string; readonly uri: string }[] {
  if (!text.includes('@')) return [];
  const words = withoutFences(text);
  const found = [...words.matchAll(mention)].map(([whole, server = '', uri = '']) => [whole, { server, uri }] as const);
  return [...new Map(found).values()];
}

/** Lines outside of fenced code (CommonMark, section 4.5). */
function withoutFences(text: string): string {
  let fence = '';
  const isWritten = (line: string): boolean => {
    const [start = '', run = ''] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? [];
    const rest = line.slice(start.length);
    if (fence === '') {
      const isInline = run.startsWith('`') && rest.includes('`');
      fence = isInline ? '' : run;
      return fence === '';
    }
    if (run.startsWith(fence) && rest.trim() === '') fence = '';
    return false;
  };
  return text.split('\n').filter(isWritten).join('\n');
}
