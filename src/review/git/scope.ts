import { ancestry, type FetchContext } from './fetch.ts';
import { mergeBaseOf } from './merge-base.ts';
import type { FullReason } from './types.ts';

export interface ScopeQuestion {
  readonly sinceSha: string | null;
  readonly headSha: string;
  readonly baseSha: string;
  readonly mergeBaseSha: string;
  readonly signal: AbortSignal | undefined;
}

/**
 * Checks whether a review may continue an earlier one: its head is an ancestor of the new head, and both left the base at the same
 * commit, so that the commits between them are the author's own.
 *
 * @returns why not, or null
 */
export async function whyFull(
  context: Pick<FetchContext, 'git' | 'store'>,
  { sinceSha, headSha, baseSha, mergeBaseSha, signal }: ScopeQuestion,
): Promise<FullReason | null> {
  if (sinceSha === null) return 'notAsked';
  if (sinceSha === headSha) return 'sameHead';
  const relation = await ancestry(context, sinceSha, headSha, signal);
  if (relation === 'unknown') return 'objectsMissing';
  if (relation === 'other') return 'forcePushed';
  const earlier = await mergeBaseOf(context, sinceSha, baseSha, signal);
  return earlier === mergeBaseSha ? null : 'baseChanged';
}
