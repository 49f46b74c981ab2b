/**
 * Parts of the messages of an agent that are read (Agent Client Protocol, version 1). An agent is not trusted: messages of
 * another shape and unknown messages are ignored, and text is bounded where it is used.
 */
import * as v from 'valibot';
import { JsonRpcError, rpcCodes } from '../rpc/index.ts';

/** @throws JsonRpcError for parameters of another shape */
export function shapedAs<T extends v.GenericSchema>(schema: T, params: unknown): v.InferOutput<T> {
  const parsed = v.safeParse(schema, params);
  if (parsed.success) return parsed.output;
  throw invalidParams('The parameters have another shape.');
}

export const invalidParams = (message: string): JsonRpcError =>
  new JsonRpcError({ code: rpcCodes.invalidParams, message });

/** A value of another shape counts as absent. */
const loose = <T extends v.GenericSchema>(schema: T) => v.fallback(v.optional(schema), undefined);
const text = loose(v.string());
const words = loose(v.record(v.string(), v.unknown()));

/** Login method. Without a type, the agent logs its user in on `authenticate`. */
const AuthMethod = v.object({
  id: text,
  name: text,
  type: text,
  /** Arguments of the agent's program for a login in a terminal. */
  args: loose(v.pipe(v.array(v.string()), v.maxLength(100))),
  env: loose(v.record(v.string(), v.string())),
});
export type AuthMethod = v.InferOutput<typeof AuthMethod>;

export const InitializeResult = v.object({
  protocolVersion: v.number(),
  agentInfo: loose(v.object({ name: text, version: text })),
  authMethods: loose(v.array(v.fallback(AuthMethod, {}))),
  agentCapabilities: v.fallback(
    v.object({
      loadSession: loose(v.boolean()),
      promptCapabilities: loose(v.object({ image: loose(v.boolean()) })),
      mcpCapabilities: loose(v.object({ http: loose(v.boolean()) })),
      sessionCapabilities: loose(
        v.object({ resume: v.optional(v.unknown()), additionalDirectories: v.optional(v.unknown()) }),
      ),
    }),
    {},
  ),
});
export type InitializeResult = v.InferOutput<typeof InitializeResult>;

const Choice = v.object({ value: text, name: text });
const ConfigOption = v.object({
  id: text,
  name: text,
  description: text,
  category: text,
  type: text,
  /** A boolean for a switch. */
  currentValue: loose(v.union([v.string(), v.boolean()])),
  /** Choices, or groups of them. */
  options: loose(
    v.array(v.fallback(v.object({ ...Choice.entries, options: loose(v.array(v.fallback(Choice, {}))) }), {})),
  ),
});
export type ConfigOption = v.InferOutput<typeof ConfigOption>;

/** Part of the answer to a request that opens a session. */
export const SessionState = v.object({
  configOptions: loose(v.array(v.fallback(ConfigOption, {}))),
  /** Modes of agents that have no option for the mode. */
  modes: loose(
    v.object({ currentModeId: text, availableModes: v.array(v.fallback(v.object({ id: text, name: text }), {})) }),
  ),
});
export type SessionState = v.InferOutput<typeof SessionState>;

export const NewSessionResult = v.object({
  sessionId: v.pipe(v.string(), v.nonEmpty(), v.maxLength(1_000)),
  ...SessionState.entries,
});

/** Place of an elicitation. `elicitationId` names a link. */
export const ElicitationScope = v.object({ sessionId: text, toolCallId: text, elicitationId: text });

const Usage = v.object({
  inputTokens: v.number(),
  outputTokens: v.number(),
  cachedReadTokens: loose(v.number()),
  thoughtTokens: loose(v.number()),
});
export type Usage = v.InferOutput<typeof Usage>;

const Count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1e9));

/** Result of a prompt. `_meta.quota` is of this prompt only, as gemini sends it. */
export const PromptResult = v.object({
  stopReason: v.string(),
  usage: loose(Usage),
  _meta: loose(
    v.object({ quota: loose(v.object({ token_count: v.object({ input_tokens: Count, output_tokens: Count }) })) }),
  ),
});
export type PromptResult = v.InferOutput<typeof PromptResult>;

/** A piece of an answer with the usage of one request, as qwen sends it. */
export const RequestUsage = v.object({
  _meta: v.object({
    usage: v.object({
      inputTokens: Count,
      outputTokens: Count,
      cachedReadTokens: loose(Count),
      thoughtTokens: loose(Count),
    }),
  }),
});

export const ToolContent = v.object({
  type: v.string(),
  content: loose(v.object({ type: text, text: text })),
  path: text,
  oldText: text,
  newText: text,
});
export type ToolContent = v.InferOutput<typeof ToolContent>;

/** A new call, or the changed fields of a known one. */
export const ToolCallUpdate = v.object({
  toolCallId: v.pipe(v.string(), v.nonEmpty(), v.maxLength(500)),
  title: text,
  kind: text,
  status: text,
  rawInput: v.optional(v.unknown()),
  rawOutput: v.optional(v.unknown()),
  content: loose(v.array(v.fallback(ToolContent, { type: 'unknown' }))),
  locations: loose(v.array(v.fallback(v.object({ path: text }), {}))),
  _meta: words,
});
export type ToolCallUpdate = v.InferOutput<typeof ToolCallUpdate>;

export const PlanEntries = v.object({
  entries: v.array(v.object({ content: v.string(), status: v.fallback(v.string(), 'pending') })),
});

export const CurrentMode = v.object({ currentModeId: text });

export const AvailableCommands = v.object({
  availableCommands: v.array(
    v.fallback(v.object({ name: text, description: text, input: loose(v.nullable(v.object({ hint: text }))) }), {}),
  ),
});

export const MessageChunk = v.object({ content: v.object({ type: v.string(), text }), messageId: text });

export const UsageUpdate = v.object({ cost: loose(v.object({ amount: v.number(), currency: text })) });

export const SessionUpdate = v.object({
  sessionId: v.string(),
  update: v.looseObject({ sessionUpdate: v.string() }),
});

/** A whole number from 0. */
const whole = v.nullish(v.pipe(v.number(), v.safeInteger(), v.minValue(0)));
const path = v.pipe(v.string(), v.nonEmpty(), v.maxLength(10_000));

export const ReadTextFile = v.object({ sessionId: v.string(), path, line: whole, limit: whole });
export const WriteTextFile = v.object({ sessionId: v.string(), path, content: v.string() });

const word = v.pipe(
  v.string(),
  v.maxLength(131_071),
  v.check((text) => !text.includes('\0')),
);
const variable = v.object({ name: v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,200}$/)), value: word });

export const CreateTerminal = v.object({
  sessionId: v.string(),
  command: v.pipe(
    word,
    v.check((text) => text.trim() !== ''),
  ),
  args: v.nullish(v.pipe(v.array(word), v.maxLength(1_000)), []),
  env: v.nullish(v.pipe(v.array(variable), v.maxLength(100)), []),
  cwd: v.nullish(path),
  outputByteLimit: whole,
});
export const AboutTerminal = v.object({ terminalId: v.string() });

/** Any request about a session. */
export const AboutSession = v.object({ sessionId: v.string() });

export const PermissionOption = v.object({ optionId: v.string(), name: text, kind: text });
export type PermissionOption = v.InferOutput<typeof PermissionOption>;

export const PermissionRequest = v.object({
  sessionId: v.string(),
  toolCall: ToolCallUpdate,
  options: v.array(PermissionOption),
});
