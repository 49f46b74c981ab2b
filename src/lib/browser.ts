/** The part of this room that needs no Node: for the page in the browser, for `machines`, which must stay pure, and for `rpc`. */
export { type Backoff, exponentialBackoffMs, type Jitter, jitters } from './backoff.ts';
export { count, plural } from './count.ts';
export { foldBlankLines } from './fold-blank-lines.ts';
export { fit, rankOf, scattered } from './fuzzy.ts';
export { messageOf } from './message-of.ts';
export { dollars, price } from './money.ts';
export { shellWord } from './shell.ts';
export { visible } from './visible.ts';
export { wellFormedJson } from './well-formed.ts';
export { withoutTokens } from './without-tokens.ts';
