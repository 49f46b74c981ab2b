/**
 * Fields of the input of an AG-UI client (`RunAgentInput` of protocol 1.0) that are read. Unknown fields are tolerated, and
 * so is null where a field may be absent: clients older than 1.0 send it.
 */
import * as v from 'valibot';
import { defaults } from '../protocol/index.ts';

const id = v.pipe(v.string('a string'), v.nonEmpty('a string'), v.maxLength(defaults.agui.idChars, 'a shorter id'));
const text = v.string('a string');

// Loose: a client gets its own further fields back when its messages are restated.
const Source = v.variant('type', [
  v.looseObject({ type: v.literal('data'), value: text, mimeType: text }),
  v.looseObject({ type: v.literal('url'), value: text, mimeType: v.nullish(text) }),
  v.looseObject({ type: v.literal('file'), value: text, mimeType: v.nullish(text) }),
]);
const media = <T extends string>(type: T) => v.looseObject({ type: v.literal(type), source: Source });

const Part = v.variant('type', [
  v.looseObject({ type: v.literal('text'), text }),
  media('image'),
  media('audio'),
  media('video'),
  media('document'),
  /** Before 1.0. */
  v.looseObject({ type: v.literal('binary'), mimeType: text, url: v.nullish(text), data: v.nullish(text) }),
]);
export type Part = v.InferOutput<typeof Part>;

const Content = v.union([text, v.array(Part)], 'a string or a list of parts');
export type Content = v.InferOutput<typeof Content>;

const ToolCall = v.looseObject({ id, function: v.looseObject({ name: text, arguments: text }) });

export const Message = v.variant('role', [
  v.looseObject({ role: v.literal('system'), id: text, content: text }),
  v.looseObject({ role: v.literal('developer'), id: text, content: text }),
  v.looseObject({ role: v.literal('user'), id: text, content: Content }),
  v.looseObject({
    role: v.literal('assistant'),
    id: text,
    content: v.nullish(text),
    toolCalls: v.nullish(v.array(ToolCall)),
  }),
  v.looseObject({ role: v.literal('tool'), id: text, toolCallId: id, content: Content, error: v.nullish(text) }),
  v.looseObject({ role: v.literal('reasoning'), id: text }),
  v.looseObject({ role: v.literal('activity'), id: text }),
]);
export type Message = v.InferOutput<typeof Message>;

const Tool = v.object({
  name: v.pipe(text, v.regex(/^[a-zA-Z0-9_-]{1,64}$/, '1 to 64 letters, digits, _ or -')),
  description: v.nullish(text),
  /** JSON Schema of the arguments; absent: none. */
  parameters: v.nullish(v.record(v.string(), v.unknown())),
});

const Resume = v.object({
  interruptId: text,
  status: v.picklist(['resolved', 'cancelled'], '"resolved" or "cancelled"'),
  payload: v.optional(v.unknown()),
});
export type Resume = v.InferOutput<typeof Resume>;

const distinct = (names: readonly string[]) => new Set(names).size === names.length;

export const RunInput = v.object({
  threadId: id,
  runId: id,
  protocolVersion: v.nullish(text),
  parentRunId: v.nullish(text),
  state: v.optional(v.unknown()),
  messages: v.pipe(v.array(Message), v.maxLength(defaults.chat.maxMessages, 'fewer messages')),
  tools: v.nullish(
    v.pipe(
      v.array(Tool),
      v.maxLength(defaults.agui.maxTools, 'fewer tools'),
      v.check((tools) => distinct(tools.map(({ name }) => name)), 'tools of different names'),
    ),
    [],
  ),
  context: v.nullish(
    v.pipe(
      v.array(v.object({ description: text, value: text })),
      v.maxLength(defaults.agui.maxContextEntries, 'fewer entries'),
    ),
    [],
  ),
  resume: v.nullish(v.array(Resume), []),
});
export type RunInput = v.InferOutput<typeof RunInput>;
