/**
 * OpenTelemetry's semantic conventions for generative AI, the only file that knows them: they are still in development and
 * will change (names as of semantic conventions 1.45).
 */
import type { Attributes } from '@opentelemetry/api';
import type { ModelCall, OpenTurn } from './turn-follower.ts';

/** Provider and default model. */
export interface Described {
  readonly provider: string;
  readonly model: string;
}

/** Longest text of an attribute, in UTF-16 units. */
const textChars = 4_096;

/** Content is cut as a text, before it becomes JSON that could not be parsed again. */
export const short = (text: string): string => (text.length > textChars ? `${text.slice(0, textChars)}…` : text);

export const turnAttributes = ({ sessionKey }: Pick<OpenTurn, 'sessionKey'>): Attributes => ({
  'gen_ai.operation.name': 'invoke_agent',
  'gen_ai.agent.name': 'oratorio',
  'gen_ai.conversation.id': sessionKey,
});

export const usageAttributes = (inputTokens: number, outputTokens: number): Attributes => ({
  'gen_ai.usage.input_tokens': inputTokens,
  'gen_ai.usage.output_tokens': outputTokens,
});

export const chatName = (model: string | undefined): string => (model ? `chat ${model}` : 'chat');

export function chatAttributes(
  { sessionKey }: Pick<OpenTurn, 'sessionKey'>,
  call: ModelCall,
  provider: string | undefined,
  model: string | undefined,
): Attributes {
  const { tokens, firstAt, startedAt, finishReason, requestId, costUsd, retries } = call;
  const optional = {
    'gen_ai.usage.cache_read.input_tokens': tokens?.cached,
    'gen_ai.usage.cache_creation.input_tokens': tokens?.cacheWrite,
    'gen_ai.usage.reasoning.output_tokens': tokens?.reasoning,
    'oratorio.model.cost_usd': costUsd,
    'oratorio.model.retries': retries,
  };
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.conversation.id': sessionKey,
    ...(provider !== undefined && { 'gen_ai.provider.name': provider }),
    ...(model !== undefined && { 'gen_ai.request.model': model }),
    ...(tokens && usageAttributes(tokens.input, tokens.output)),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined && value > 0)),
    ...(requestId !== undefined && { 'oratorio.model.request_id': requestId }),
    ...(finishReason !== undefined && { 'gen_ai.response.finish_reasons': [finishReason] }),
    ...(firstAt !== undefined && { 'gen_ai.response.time_to_first_chunk': (firstAt - startedAt) / 1_000 }),
  };
}

/** Input of a turn: content. */
export const inputContent = (text: string): Attributes => ({
  'gen_ai.input.messages': JSON.stringify([{ role: 'user', parts: [{ type: 'text', content: short(text) }] }]),
});

const partTypes = { thinking: 'reasoning', response: 'text' } as const;

/** Output of the model: content. */
export function chatContent({ segments }: ModelCall): Attributes {
  if (segments.length === 0) return {};
  const parts = segments.map(({ type, text }) => ({ type: partTypes[type], content: short(text) }));
  return { 'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts }]) };
}

export const toolSpanName = (tool: string): string => `execute_tool ${tool}`;

export const toolAttributes = (tool: string, callId: string | undefined): Attributes => ({
  'gen_ai.operation.name': 'execute_tool',
  'gen_ai.tool.name': tool,
  'gen_ai.tool.type': 'function',
  ...(callId !== undefined && { 'gen_ai.tool.call.id': callId }),
});

/** Arguments of a tool: content. */
export const argumentsContent = (text: string): Attributes => ({ 'gen_ai.tool.call.arguments': short(text) });
/** Result of a tool: content. */
export const resultContent = (text: string): Attributes => ({ 'gen_ai.tool.call.result': short(text) });
