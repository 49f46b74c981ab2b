import * as v from 'valibot';
import { libraryAccess, type Wire } from './wire.ts';

const ModelList = v.object({
  models: v.array(
    v.object({
      name: v.string(),
      inputTokenLimit: v.nullish(v.number()),
      outputTokenLimit: v.nullish(v.number()),
      supportedGenerationMethods: v.nullish(v.array(v.string())),
    }),
  ),
});

/** Google Gemini (https://ai.google.dev/api/generate-content). */
export const googleWire: Wire = {
  usualEndPoint: 'https://generativelanguage.googleapis.com/v1beta',
  usualModel: 'gemini-3.5-pro',
  listPath: '/models?pageSize=1000',
  keyHeaders: (apiKey) => ({ 'x-goog-api-key': apiKey }),
  async load() {
    const { createGoogle } = await import('@ai-sdk/google');
    return (model, fetch) => createGoogle({ ...libraryAccess, fetch })(model);
  },
  options({ effort, maxOutputTokens }, { reasoning }) {
    return {
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(effort !== undefined && { reasoning: effort }),
      ...(reasoning && { providerOptions: { google: { thinkingConfig: { includeThoughts: true } } } }),
    };
  },
  modelsIn: (body) =>
    v
      .parse(ModelList, body)
      .models.filter(({ supportedGenerationMethods: methods }) => methods?.includes('generateContent') ?? true)
      .map(({ name, inputTokenLimit, outputTokenLimit }) => ({
        id: name.replace(/^models\//, ''),
        ownedBy: 'google',
        ...(typeof inputTokenLimit === 'number' && { contextWindow: inputTokenLimit }),
        ...(typeof outputTokenLimit === 'number' && { maxOutputTokens: outputTokenLimit }),
      })),
};
