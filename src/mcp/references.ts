import { setTimeout as wait } from 'node:timers/promises';
import { AgentError, splitWords } from '../agent/index.ts';
import { messageOf, plainText } from '../lib/index.ts';
import { defaults, type InputPart, mcpMentionsIn, type PromptCommandInfo } from '../protocol/index.ts';
import type { Connection } from './connection.ts';
import { failureOf } from './failure.ts';
import type { ContentBlock, Prompt } from './library.ts';
import { toToolResult } from './result.ts';

/** Server that a message refers to. */
export interface ReferredServer {
  readonly name: string;
  /** Connection of a ready server; undefined while it is not ready. */
  readonly connection: () => Connection | undefined;
  /** Resolves when the server is ready or has stopped trying to start. */
  readonly settled: () => Promise<void>;
  /** State as a sentence, such as `it is restarting.`, with the last error. */
  readonly stateText: () => string;
  /** Removes secrets from texts for the model. */
  readonly cleanResult: (text: string) => string;
}

type FindServer = (name: string) => ReferredServer | undefined;

const promptName = /^[\w.-]{1,128}$/;
const promptLine = /^\/([\w-]{1,64}):([\w.-]{1,128})(?:\s+([\s\S]*))?$/;

/** Prompts of ready servers as commands. A server that does not list its prompts in time is left out. */
export async function promptCommands(servers: readonly ReferredServer[]): Promise<PromptCommandInfo[]> {
  const lists = await Promise.all(servers.map(async (server) => ({ server, prompts: await listed(server) })));
  return lists.flatMap(({ server, prompts }) =>
    prompts.map((prompt) => ({
      name: `${server.name}:${prompt.name}`,
      description: short(prompt.description ?? prompt.title ?? `Prompt of the MCP server ${server.name}`),
      ...(prompt.arguments?.length && { argumentHint: short(prompt.arguments.map(hintOf).join(' ')) }),
      path: '',
    })),
  );
}

async function listed({ connection }: ReferredServer): Promise<readonly Prompt[]> {
  const prompts =
    (await connection()
      ?.prompts()
      .catch(() => [])) ?? [];
  return prompts.filter(({ name }) => promptName.test(name)).slice(0, defaults.mcp.maxPrompts);
}

const short = (text: string): string => plainText(text).trim().split('\n', 1).join('').slice(0, 200);
const hintOf = ({ name, required }: NonNullable<Prompt['arguments']>[number]): string =>
  required === true ? `<${name}>` : `[${name}]`;

/** Whether an input may name a prompt or resource of a server. */
export const hasReferences = (input: readonly InputPart[]): boolean =>
  input.some((part) => {
    if (part.type === 'commandRef') return part.name.includes(':');
    return part.type === 'text' && (promptLine.test(part.text.trim()) || mcpMentionsIn(part.text).length > 0);
  });

/**
 * Reads the prompts and resources that an input names, once. Names of servers that are not configured stay text.
 *
 * @throws AgentError `mcpReferenceFailed`
 */
export async function resolveReferences(input: readonly InputPart[], find: FindServer): Promise<readonly InputPart[]> {
  const resolved = await Promise.all(input.map((part) => promptOf(part, find)));
  const mentions = input.flatMap((part) => (part.type === 'text' ? mcpMentionsIn(part.text) : []));
  const known = mentions.flatMap(({ server, uri }) => {
    const found = find(server);
    return found ? [{ server: found, uri }] : [];
  });
  if (known.length > defaults.mcp.maxMentions) {
    throw failed(
      `@${known[0]?.server.name}`,
      `A message may mention at most ${defaults.mcp.maxMentions} resources: remove some.`,
    );
  }
  return [...resolved, ...(await Promise.all(known.map(({ server, uri }) => resourceOf(server, uri))))];
}

async function promptOf(part: InputPart, find: FindServer): Promise<InputPart> {
  const line = part.type === 'text' ? part.text.trim() : part.type === 'commandRef' ? commandLine(part) : '';
  const [, serverName = '', name = '', argsText = ''] = promptLine.exec(line) ?? [];
  const server = name === '' ? undefined : find(serverName);
  if (!server) return part;
  const text = await expandPrompt(server, name, argsText);
  return { type: 'commandRef', name: `${serverName}:${name}`, argsText, rawText: line, text };
}

const commandLine = ({ name, argsText = '' }: InputPart & { type: 'commandRef' }): string =>
  `/${name} ${argsText}`.trim();

/** Text of a prompt. @throws AgentError `mcpReferenceFailed` */
export async function expandPrompt(server: ReferredServer, name: string, argsText: string): Promise<string> {
  return attempt(`/${server.name}:${name}`, server, async (connection) => {
    const prompt = (await connection.prompts()).find((each) => each.name === name);
    if (!prompt) throw new Error('the server has no prompt with this name');
    const { messages } = await connection.getPrompt(name, argumentsFor(prompt, argsText));
    const blocks = messages.map(({ content }): ContentBlock => content);
    return textOf(blocks, server);
  });
}

async function resourceOf(server: ReferredServer, uri: string): Promise<InputPart> {
  const text = await attempt(`@${server.name}:${uri}`, server, async (connection) => {
    const { contents } = await connection.readResource(uri);
    return textOf(
      contents.map((resource): ContentBlock => ({ type: 'resource', resource })),
      server,
    );
  });
  return { type: 'resourceRef', server: server.name, uri, text };
}

/** Content as text of limited length, without secrets and images. */
function textOf(content: ContentBlock[], { cleanResult }: ReferredServer): string {
  const shown = content.map((block): ContentBlock => {
    if (block.type !== 'image') return block;
    return { type: 'text', text: `[image, ${block.mimeType}: not shown]` };
  });
  return toToolResult({ content: shown }, cleanResult).text;
}

async function attempt(
  reference: string,
  server: ReferredServer,
  use: (connection: Connection) => Promise<string>,
): Promise<string> {
  const { settled, stateText, name, cleanResult } = server;
  // The message may have started the agent server, whose MCP servers are still starting.
  await Promise.race([settled(), wait(defaults.mcp.referenceMs, undefined, { ref: false })]);
  const connection = server.connection();
  if (!connection) throw failed(reference, `The MCP server ${name} is not ready: ${stateText()}`);
  try {
    return await use(connection);
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    const problem = typeof code === 'string' ? failureOf(error).message : messageOf(error);
    throw failed(reference, plainText(cleanResult(problem)).slice(0, defaults.mcp.errorChars));
  }
}

const failed = (reference: string, problem: string): AgentError =>
  new AgentError('mcpReferenceFailed', { reference, problem }, `${reference}: ${problem}`);

/** Arguments of a prompt: words `name=value`, then the other words in order; the last argument takes the rest. */
function argumentsFor({ arguments: declared = [] }: Prompt, argsText: string): Record<string, string> {
  const names = declared.map(({ name }) => name);
  const given = new Map<string, string>();
  const others = splitWords(argsText).filter((word) => {
    const [, name = '', value = ''] = /^([^=]+)=([\s\S]*)$/.exec(word) ?? [];
    if (!names.includes(name)) return true;
    given.set(name, value);
    return false;
  });
  const free = names.filter((name) => !given.has(name));
  free.forEach((name, index) => {
    const words = index === free.length - 1 ? others.slice(index) : others.slice(index, index + 1);
    if (words.length > 0) given.set(name, words.join(' '));
  });
  return Object.fromEntries(given);
}
