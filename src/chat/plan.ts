import { createHash } from 'node:crypto';
import type { ModelTool, Sampling, ToolChoice, TurnOptions } from '../agent/index.ts';
import { defaults } from '../protocol/index.ts';
import { chatError, invalidParameter } from './errors.ts';
import { type Conversation, conversationOf } from './messages.ts';
import { type ChatRequest, samplingNames } from './request.ts';
import type { ResponseLog } from './responses/log.ts';

/** Result of reading a request, before anything has happened. */
export interface Plan {
  readonly conversation: Conversation;
  readonly options: Pick<
    TurnOptions,
    'tools' | 'clientTools' | 'toolChoice' | 'responseFormat' | 'sampling' | 'sender'
  >;
  /** Model that the caller asked for. */
  readonly model: string | undefined;
  /** Undefined: this request belongs to no session. */
  readonly sessionId: string | undefined;
  readonly isStream: boolean;
  readonly includesUsage: boolean;
  /** Undefined: the configured one. */
  readonly showsActivity: boolean | undefined;
  /** The answer has a form: words before a tool call do not belong to it. */
  readonly onlyFinalText: boolean;
  /** Undefined: the answer is a chat completion. */
  readonly response?: PlannedResponse;
}

/** Response that records the turn. */
export interface PlannedResponse {
  readonly log: ResponseLog;
  /** Thread of the conversation; undefined: the turn gets a new thread, which is deleted afterwards. */
  readonly threadId: string | undefined;
  /** Id of the new thread of a request without stored responses, so that its conversation has one trace. Undefined: any id. */
  readonly tracedAs: string | undefined;
}

const choiceOf = (choice: ChatRequest['tool_choice']): ToolChoice | undefined =>
  typeof choice === 'object' && choice !== null ? { name: choice.function.name } : (choice ?? undefined);

/** Extensions may stand in `metadata`, whose values are strings, for clients that cannot add fields of their own. */
function extension(
  request: ChatRequest,
  name: 'serverTools' | 'showToolActivity',
  metadataName: string,
): boolean | undefined {
  const given = request.x_agent?.[name];
  if (typeof given === 'boolean') return given;
  const written = request.metadata?.[metadataName];
  return written === 'true' || written === true ? true : written === 'false' || written === false ? false : undefined;
}

const clientToolsOf = (tools: NonNullable<ChatRequest['tools']>): ModelTool[] =>
  tools.map(({ function: { name, description, parameters } }) => ({
    name,
    description: description ?? '',
    inputSchema: parameters ?? { type: 'object', properties: {} },
  }));

/**
 * Which tools are offered. No `tools`: those of the server. An empty list, or `tool_choice: "none"`: none. A list: those of
 * the caller, who runs them; with `x_agent.serverTools` those of the server beside them.
 */
function toolsOf(request: ChatRequest): Pick<TurnOptions, 'tools' | 'clientTools' | 'toolChoice'> {
  const { tools } = request;
  const toolChoice = choiceOf(request.tool_choice);
  if (toolChoice === 'none') return { tools: 'none', toolChoice };
  if (!tools) return { tools: 'standard', toolChoice };
  if (tools.length === 0) {
    if (toolChoice && toolChoice !== 'auto') {
      throw invalidParameter('tool_choice', 'No tool can be chosen: tools is empty.');
    }
    return { tools: 'none' };
  }
  const clientTools = clientToolsOf(tools);
  const isMerged = extension(request, 'serverTools', 'server_tools') === true;
  if (typeof toolChoice === 'object' && !isMerged && !clientTools.some(({ name }) => name === toolChoice.name)) {
    throw invalidParameter('tool_choice.function.name', `There is no tool ${toolChoice.name} in tools.`);
  }
  return { tools: isMerged ? 'standard' : 'none', clientTools, toolChoice };
}

function samplingOf(request: ChatRequest): Sampling | undefined {
  const given = samplingNames.flatMap((name) => {
    const value = request[name];
    return value === null || value === undefined ? [] : [[name, value] as const];
  });
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

/** Printable ASCII: it goes back in a header. */
const sessionName = /^[\x21-\x7e]+$/;

function namedSession(value: unknown, param: string): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string' && sessionName.test(value) && value.length <= defaults.chat.sessionIdChars)
    return value;
  throw chatError(
    'invalidParameter',
    `${param} must be 1 to ${defaults.chat.sessionIdChars} printable ASCII characters without spaces.`,
    { param },
  );
}

/** Any name of a user as a session, distinct from the names that callers give to sessions. */
function userSession(user: string): string {
  const name = user.toWellFormed().replace(/[^\x21-\x24\x26-\x7e]/gu, (character) => encodeURIComponent(character));
  return `user:${name.length > 200 ? createHash('sha256').update(user).digest('hex') : name}`;
}

/** Facts outside of the body that decide the session. */
export interface SessionSource {
  /** `X-Session-Id`. */
  readonly header: string | undefined;
  /** `Api.SessionFromUser`. */
  readonly fromUser: boolean;
}

/**
 * Session of a request: by its header or its metadata, in this order, else none. Clients send `user` to name a person over many
 * conversations, so it names a session only where the settings say so.
 */
export function sessionIdOf(request: Pick<ChatRequest, 'metadata' | 'user'>, { header, fromUser }: SessionSource) {
  const { metadata, user } = request;
  return (
    namedSession(header, 'X-Session-Id') ??
    namedSession(metadata?.['session_id'], 'metadata.session_id') ??
    namedSession(metadata?.['conversation_id'], 'metadata.conversation_id') ??
    (user && fromUser ? userSession(user) : undefined)
  );
}

/**
 * @param nameOf the field of the request that has this message
 * @throws HttpError 400 for contradicting or unsupported parameters
 */
export function planOf(request: ChatRequest, source: SessionSource, nameOf?: (index: number) => string): Plan {
  const { response_format: format, user } = request;
  const responseFormat = format && format.type !== 'text' ? format : undefined;
  const tools = toolsOf(request);
  return {
    conversation: conversationOf(request.messages, nameOf),
    options: { ...tools, responseFormat, sampling: samplingOf(request), sender: user ?? undefined },
    model: request.model ?? undefined,
    sessionId: sessionIdOf(request, source),
    isStream: request.stream === true,
    includesUsage: request.stream_options?.include_usage === true,
    showsActivity: extension(request, 'showToolActivity', 'show_tool_activity'),
    onlyFinalText: responseFormat !== undefined && tools.tools === 'standard',
  };
}
