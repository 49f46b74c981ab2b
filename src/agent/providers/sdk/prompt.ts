import { createHash } from 'node:crypto';
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';
import * as v from 'valibot';
import { strictValue } from '../../../lib/index.ts';
import { type ContentPart, type ModelMessage, type ModelToolCall, stateFor } from '../../model.ts';
import { withPictures } from '../../pictures.ts';
import { wireToolName } from '../../tool-schema.ts';

/** Content of one answer as a library takes it back. */
export type AnswerPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];

/** State is read from a database: everything but its opaque fields is checked. */
const opaque = { providerOptions: v.optional(v.record(v.string(), v.record(v.string(), v.any()))) };
const AnswerState = v.array(
  v.variant('type', [
    v.object({ type: v.literal('text'), text: v.string(), ...opaque }),
    v.object({ type: v.literal('reasoning'), text: v.string(), ...opaque }),
    v.object({ type: v.literal('tool-call'), toolCallId: v.string(), toolName: v.string(), input: v.any(), ...opaque }),
  ]),
);

/** Stands for an empty text, which services refuse. */
const emptyText = '(empty)';

/** Builds the prompt of a library. State of another provider or model is left out. @param owner of the request */
export function promptOf(messages: readonly ModelMessage[], owner: string): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = [];
  let results: LanguageModelV4ToolResultPart[] | undefined;
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!results) {
        results = [];
        prompt.push({ role: 'tool', content: results });
      }
      results.push(resultOf(message));
      continue;
    }
    results = undefined;
    prompt.push(wireMessage(message, owner));
  }
  return prompt;
}

function wireMessage(message: Exclude<ModelMessage, { role: 'tool' }>, owner: string): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.text };
    case 'user':
      return { role: 'user', content: userContent(message.content) };
    case 'assistant': {
      const state = v.safeParse(AnswerState, stateFor(owner, message.state));
      if (state.success)
        return { role: 'assistant', content: (strictValue(state.output) as AnswerPart[]).map(withWireName) };
      const calls = message.toolCalls.map(callOf);
      const text = message.text === '' && calls.length > 0 ? [] : [textPart(message.text)];
      return { role: 'assistant', content: [...text, ...calls] };
    }
  }
}

const withWireName = (part: AnswerPart): AnswerPart =>
  part.type === 'tool-call' ? { ...part, toolName: wireToolName(part.toolName) } : part;

const textPart = (text: string): LanguageModelV4TextPart => ({
  type: 'text',
  text: text.trim() === '' ? emptyText : text,
});

function callOf({ callId, name, arguments: args }: ModelToolCall): AnswerPart {
  return { type: 'tool-call', toolCallId: safeCallId(callId), toolName: wireToolName(name), input: inputOf(args) };
}

/** Arguments as an object, as every service wants them; the model still sees its own text. */
export function inputOf(args: string): unknown {
  if (args.trim() === '') return {};
  // A library may write them as JSON within JSON, where the repair of a whole request does not reach.
  return strictValue(objectIn(args) ?? { invalid_json: args });
}

function objectIn(args: string): object | undefined {
  try {
    const value: unknown = JSON.parse(args);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Longest call id that a service takes (OpenAI Responses). */
const maxCallId = 64;

/** Call ids of other services, in the characters and the length that every service takes; alike for a call and its result. */
export function safeCallId(callId: string): string {
  const safe = callId.replace(/[^a-zA-Z0-9_-]/g, '_');
  if (safe === callId && safe.length <= maxCallId) return callId;
  return `call_${createHash('sha256').update(callId).digest('hex').slice(0, 40)}`;
}

function userContent(content: readonly ContentPart[]): (LanguageModelV4TextPart | LanguageModelV4FilePart)[] {
  const parts = withPictures(content).flatMap((part): (LanguageModelV4TextPart | LanguageModelV4FilePart)[] => {
    if (part.type === 'image') return [{ type: 'file', ...fileOf(part.url) }];
    return part.text.trim() === '' ? [] : [textPart(part.text)];
  });
  return parts.length > 0 ? parts : [textPart('')];
}

function resultOf(result: Extract<ModelMessage, { role: 'tool' }>): LanguageModelV4ToolResultPart {
  const { callId, name } = result;
  const content = withPictures(result.content);
  const words = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  const pictures = content.flatMap((part) => (part.type === 'image' ? [fileOf(part.url)] : []));
  const text = words.trim() === '' ? emptyText : words;
  return {
    type: 'tool-result',
    toolCallId: safeCallId(callId),
    toolName: wireToolName(name),
    output:
      pictures.length === 0
        ? { type: 'text', value: text }
        : {
            type: 'content',
            value: [{ type: 'text', text }, ...pictures.map((picture) => ({ type: 'file' as const, ...picture }))],
          },
  };
}

/** A picture from its data URL or address, both in order. */
function fileOf(url: string): Pick<LanguageModelV4FilePart, 'data' | 'mediaType'> {
  const inline = /^data:([^;,]+);base64,(.*)$/s.exec(url);
  if (!inline) return { data: { type: 'url', url: new URL(url) }, mediaType: 'image/*' };
  const [, mediaType = 'image/*', data = ''] = inline;
  return { data: { type: 'data', data }, mediaType };
}
