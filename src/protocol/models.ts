/** Models: lists of the providers, prices, and lengths of reasoning. */
import * as v from 'valibot';

/** Reasoning efforts, the least first. */
export const reasoningEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const;
export type ReasoningEffort = (typeof reasoningEfforts)[number];

const usd = v.pipe(v.number(), v.minValue(0), v.maxValue(1_000_000));

const prices = {
  input: usd,
  output: usd,
  /** Input that the provider reads from its cache. Default: `input`. */
  cachedInput: v.optional(usd),
  /** Input that the provider writes to its cache. Default: `input`. */
  cacheWrite: v.optional(usd),
};

/** In US dollars per million tokens. */
export const ModelPrice = v.object({
  ...prices,
  /** Prices of a request whose input exceeds so many tokens; the highest threshold that it exceeds counts. */
  tiers: v.optional(v.array(v.object({ aboveInput: v.pipe(v.number(), v.minValue(0)), ...prices }))),
});
export type ModelPrice = v.InferOutput<typeof ModelPrice>;
