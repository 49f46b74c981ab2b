import type { LanguageModelV4Prompt } from '@ai-sdk/provider';

/** A mark costs nothing where it is not known: the options are Anthropic's. */
const mark = { anthropic: { cacheControl: { type: 'ephemeral' } } } as const;

/**
 * Marks the parts that later requests repeat: the system prompt and the last two messages that are not the model's own, because
 * a mark finds only content at most 20 blocks before it. At most four marks are allowed; a thought takes none.
 */
export function markCached(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const marked = new Set<number>();
  const lastSystem = prompt.findLastIndex(({ role }) => role === 'system');
  if (lastSystem >= 0) marked.add(lastSystem);
  const others = prompt.flatMap(({ role }, index) => (role === 'user' || role === 'tool' ? [index] : []));
  for (const index of others.slice(-2)) marked.add(index);
  return prompt.map((message, index) => (marked.has(index) ? { ...message, providerOptions: mark } : message));
}
