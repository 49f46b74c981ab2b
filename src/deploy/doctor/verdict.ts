import type { CheckResult, CheckStatus } from './types.ts';

/** All results in a few numbers. */
export interface Verdict {
  readonly counts: Readonly<Record<CheckStatus, number>>;
  /** No check failed. */
  readonly isWell: boolean;
}

export function verdictOf(results: readonly CheckResult[]): Verdict {
  const count = (wanted: CheckStatus): number => results.filter(({ status }) => status === wanted).length;
  const counts = { ok: count('ok'), warn: count('warn'), fail: count('fail'), skip: count('skip') };
  return { counts, isWell: counts.fail === 0 };
}
