import { createHash } from 'node:crypto';
import * as v from 'valibot';
import type { ReasoningEffort } from '../../../protocol/index.ts';

/** Deviations of a service from OpenAI's chat completions, as far as they must be known before its first answer. */
export interface Dialect {
  /** Assistant messages with calls carry `reasoning_content`, even an empty one. */
  readonly needsReasoningContent?: true;
  /** The service refuses the reasoning that it sent. */
  readonly refusesReasoning?: true;
  /** Call ids are nine letters and digits, and no user message follows a tool message. */
  readonly isMistral?: true;
  /** Fields of an effort. Default: `reasoning_effort`. */
  readonly effortFields?: (effort: ReasoningEffort) => Readonly<Record<string, unknown>>;
  /** Name of the output limit. Default: `max_tokens`. */
  readonly limitField?: 'max_completion_tokens';
  /** The service does not know `stream_options`. */
  readonly refusesUsageOption?: true;
  /** The service takes `prompt_cache_key`. */
  readonly hasCacheKey?: true;
  /** Header that carries the key. Default: a bearer token. */
  readonly keyHeader?: 'api-key';
}

/**
 * Dialects by host. Sources: the services' references (https://api-docs.deepseek.com, https://platform.moonshot.ai/docs,
 * https://docs.mistral.ai/api, https://console.groq.com/docs, https://openrouter.ai/docs, https://learn.microsoft.com/azure).
 */
const hosts: readonly (readonly [RegExp, Dialect])[] = [
  [/^api\.openai\.com$/, { limitField: 'max_completion_tokens', hasCacheKey: true }],
  [/\.azure\.com$/, { limitField: 'max_completion_tokens', keyHeader: 'api-key' }],
  [/(^|\.)deepseek\.com$|(^|\.)moonshot\.(ai|cn)$/, { needsReasoningContent: true }],
  [/(^|\.)mistral\.ai$/, { isMistral: true, refusesReasoning: true }],
  [/(^|\.)(groq\.com|cerebras\.ai)$/, { refusesReasoning: true }],
  [/(^|\.)openrouter\.ai$/, { effortFields: (effort) => ({ reasoning: { effort } }) }],
];

/** Models whose dialect follows them to any host that serves them by an own name. */
const models: readonly (readonly [RegExp, Dialect])[] = [
  [/(^|\/)(deepseek|kimi)/i, { needsReasoningContent: true }],
  [/(^|\/)(mistral|ministral|magistral|codestral|devstral|pixtral)/i, { isMistral: true, refusesReasoning: true }],
];

/** Refusals that reveal the dialect of a service, for unknown hosts and models. */
const lessons: readonly (readonly [RegExp, Dialect])[] = [
  [/stream_options|include_usage/, { refusesUsageOption: true }],
  [/use 'max_completion_tokens'|'max_tokens' is not supported/i, { limitField: 'max_completion_tokens' }],
  [/reasoning_content.{0,80}(must be passed back|is missing|is required)/i, { needsReasoningContent: true }],
  [
    /reasoning(_content|_details)?\W.{0,40}(unsupported|not supported|not permitted|unknown|unrecognized|extra)/i,
    { refusesReasoning: true },
  ],
  [/(extra|unknown|unrecognized|unsupported).{0,80}reasoning(_content|_details)?\b/i, { refusesReasoning: true }],
  [/tool call id.{0,120}length of 9|role 'user' after role 'tool'/i, { isMistral: true }],
];

/** Deviation that a refusal shows and that was not known before; undefined: none. */
export function learnedFrom(refusal: string, dialect: Dialect): Dialect | undefined {
  for (const [pattern, lesson] of lessons) {
    const isNew = Object.entries(lesson).some(([name, value]) => dialect[name as keyof Dialect] !== value);
    if (isNew && pattern.test(refusal)) return lesson;
  }
  return undefined;
}

/** Finds the dialect of a model behind an end point. */
export function dialectsOf(endPoint: string): (model: string) => Dialect {
  const host = URL.canParse(endPoint) ? new URL(endPoint).hostname : '';
  const byHost = hosts.find(([pattern]) => pattern.test(host))?.[1];
  return (model) => byHost ?? models.find(([pattern]) => pattern.test(model))?.[1] ?? {};
}

const details = v.array(v.record(v.string(), v.unknown()));

/** Fields that an answer carried besides text and calls, by the names under which it goes back. */
export const ChatState = v.object({
  reasoning_content: v.optional(v.string()),
  reasoning: v.optional(v.string()),
  reasoning_details: v.optional(details),
  /** `extra_content` by call id. */
  extraContent: v.optional(v.record(v.string(), v.record(v.string(), v.unknown()))),
});
export type ChatState = v.InferOutput<typeof ChatState>;

/** Adds pieces of `reasoning_details`: texts of one index are one entry. */
export function mergeDetails(known: Record<string, unknown>[], pieces: readonly unknown[]): void {
  for (const piece of pieces) {
    if (typeof piece !== 'object' || piece === null) continue;
    const entry = piece as Record<string, unknown>;
    const before = entry['index'] === undefined ? undefined : known.find(({ index }) => index === entry['index']);
    if (!before) {
      known.push({ ...entry });
      continue;
    }
    for (const [name, value] of Object.entries(entry)) {
      const isText = name === 'text' || name === 'summary' || name === 'data';
      const old = before[name];
      before[name] = isText && typeof old === 'string' && typeof value === 'string' ? old + value : (value ?? old);
    }
  }
}

/** A call id as Mistral takes it; alike for a call and its result. */
export function mistralCallId(callId: string): string {
  if (/^[a-zA-Z0-9]{9}$/.test(callId)) return callId;
  return createHash('sha256').update(callId).digest('hex').slice(0, 9);
}

/** An id that every service stores unchanged. Gateways put signatures of thousands of characters into it. */
export const callIdShape = /^[\x21-\x7e]{1,16384}$/;
