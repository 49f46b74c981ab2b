import * as v from 'valibot';
import type { EventRules } from './event-filter.ts';
import { libraryAccess, type Wire } from './wire.ts';

const ModelList = v.object({
  data: v.array(v.object({ id: v.string(), owned_by: v.nullish(v.string()), created: v.nullish(v.number()) })),
});

const events: EventRules = {
  pieces: new Set([
    'response.output_text.delta',
    'response.reasoning_summary_text.delta',
    'response.function_call_arguments.delta',
  ]),
  pieceIn({ delta, output_index, content_index, summary_index, item_id }) {
    if (typeof delta !== 'string') return undefined;
    return { of: [output_index, content_index, summary_index, item_id].join(' '), text: delta };
  },
  withText: (data, delta) => ({ ...data, delta }),
};

/** Least output that the service accepts. */
const minOutputTokens = 16;

/**
 * OpenAI Responses (https://platform.openai.com/docs/api-reference/responses). Nothing is stored at the service: encrypted
 * reasoning travels with the conversation.
 */
export const responsesWire: Wire = {
  usualEndPoint: 'https://api.openai.com/v1',
  usualModel: 'gpt-5.6',
  events,
  listPath: '/models',
  keyHeaders: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  async load() {
    const { createOpenAI } = await import('@ai-sdk/openai');
    return (model, fetch) => createOpenAI({ ...libraryAccess, fetch }).responses(model);
  },
  options({ effort, maxOutputTokens, cacheKey, sampling = {} }, { reasoning }) {
    const reasons = reasoning || (effort !== undefined && effort !== 'none');
    const parallelToolCalls = sampling['parallel_tool_calls'];
    return {
      ...(maxOutputTokens !== undefined && { maxOutputTokens: Math.max(minOutputTokens, maxOutputTokens) }),
      providerOptions: {
        openai: {
          store: false,
          // The library knows reasoning models by their names only.
          ...(reasons && { forceReasoning: true, include: ['reasoning.encrypted_content'], reasoningSummary: 'auto' }),
          ...(effort !== undefined && { reasoningEffort: effort }),
          ...(cacheKey !== undefined && { promptCacheKey: cacheKey }),
          ...(typeof parallelToolCalls === 'boolean' && { parallelToolCalls }),
          strictJsonSchema: false,
        },
      },
    };
  },
  modelsIn: (body) =>
    v.parse(ModelList, body).data.map(({ id, owned_by: owner, created }) => ({
      id,
      ownedBy: owner ?? '',
      ...(typeof created === 'number' && { createdAt: new Date(created * 1_000).toISOString() }),
    })),
};
