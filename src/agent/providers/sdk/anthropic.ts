import * as v from 'valibot';
import type { ReasoningEffort } from '../../../protocol/index.ts';
import { isRecord } from '../upstream/json.ts';
import type { EventRules } from './event-filter.ts';
import { thinkingStyle } from './thinking-style.ts';
import { libraryAccess, type Wire } from './wire.ts';

const ModelList = v.object({
  data: v.array(v.object({ id: v.string(), display_name: v.nullish(v.string()), created_at: v.nullish(v.string()) })),
});

/** The service requires a limit; this one serves a model whose own is unknown. */
const usualOutputTokens = 16_384;
/** Least thinking budget that the service accepts. */
const minBudget = 1_024;
/** Share of the output limit that thinking may take, by effort. */
const budgetShare: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  minimal: 0.05,
  low: 0.2,
  medium: 0.4,
  high: 0.6,
  xhigh: 0.8,
};

/** Events of a stream, and where a client must skip unknown ones: https://platform.claude.com/docs/en/build-with-claude/streaming. */
const known: ReadonlySet<string> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'ping',
  'error',
]);

/** Fields of a piece with its text, by the type of the piece. */
const textFields: Readonly<Record<string, string>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  input_json_delta: 'partial_json',
};

const events: EventRules = {
  known,
  pieces: new Set(['content_block_delta']),
  pieceIn({ index, delta }) {
    if (!isRecord(delta)) return undefined;
    const text = delta[textFields[String(delta['type'])] ?? ''];
    return typeof text === 'string' ? { of: `${String(index)} ${String(delta['type'])}`, text } : undefined;
  },
  withText(data, text) {
    const delta = isRecord(data['delta']) ? data['delta'] : {};
    return { ...data, delta: { ...delta, [textFields[String(delta['type'])] ?? '']: text } };
  },
};

/** Anthropic Messages (https://platform.claude.com/docs/en/api/messages). */
export const anthropicWire: Wire = {
  usualEndPoint: 'https://api.anthropic.com/v1',
  usualModel: 'claude-sonnet-5',
  listPath: '/models?limit=1000',
  events,
  keyHeaders: (apiKey) => ({ 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }),
  async load() {
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    return (model, fetch) => createAnthropic({ ...libraryAccess, fetch })(model);
  },
  options({ effort, maxOutputTokens, toolChoice }, { model, maxOutputTokens: limit }) {
    const output = Math.min(maxOutputTokens ?? limit ?? usualOutputTokens, limit ?? Number.POSITIVE_INFINITY);
    // The service refuses thinking beside a forced tool.
    const isForced = toolChoice === 'required' || typeof toolChoice === 'object';
    const style = isForced || effort === 'none' ? 'none' : thinkingStyle(model);
    if (style === 'adaptive') {
      return {
        maxOutputTokens: output,
        ...(effort !== undefined && effort !== 'none' && { reasoning: effort }),
        ...(effort === undefined && {
          providerOptions: { anthropic: { thinking: { type: 'adaptive', display: 'summarized' } } },
        }),
      };
    }
    const budgetTokens =
      style === 'budget' && effort !== undefined && effort !== 'none' ? Math.floor(output * budgetShare[effort]) : 0;
    if (budgetTokens < minBudget) return { maxOutputTokens: output, ...(effort === 'none' && { reasoning: 'none' }) };
    return {
      // The library adds the budget to the limit.
      maxOutputTokens: output - budgetTokens,
      providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens } } },
    };
  },
  modelsIn: (body) =>
    v.parse(ModelList, body).data.map(({ id, created_at: createdAt }) => ({
      id,
      ownedBy: 'anthropic',
      ...(typeof createdAt === 'string' && { createdAt }),
    })),
};
