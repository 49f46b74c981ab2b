/** The context window: counts the tokens of a conversation and makes it fit. */
export { conversationOf } from './conversation.ts';
export { reserveOf, TokenCount } from './count.ts';
export { cutOf, sizeOfItems } from './cut.ts';
export { compactionLimits } from './limits.ts';
export { pruned } from './prune.ts';
export { requestsOf, type SummaryOptions, summarise } from './summary.ts';
