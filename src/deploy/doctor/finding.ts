import type { CheckResult, CheckStatus, Finding } from './types.ts';

export const ok = (saw: string): Finding => ({ status: 'ok', saw, hint: null });
export const warn = (saw: string, hint: string | null): Finding => ({ status: 'warn', saw, hint });
export const fail = (saw: string, hint: string | null): Finding => ({ status: 'fail', saw, hint });
export const skip = (saw: string): Finding => ({ status: 'skip', saw, hint: null });

const worseness = { skip: 0, ok: 1, warn: 2, fail: 3 } as const;

/** One finding out of many: as bad as the worst, in the words of those that are not well; `well` when all are. */
export function worst(findings: readonly Finding[], well: string): Finding {
  const bad = findings.filter(({ status }) => status === 'warn' || status === 'fail');
  const [first] = bad.toSorted((one, other) => worseness[other.status] - worseness[one.status]);
  if (!first) return ok(well);
  const hints = new Set(bad.flatMap(({ hint }) => (hint === null ? [] : [hint])));
  return {
    status: first.status,
    saw: bad.map(({ saw }) => saw).join('; '),
    hint: hints.size === 0 ? null : [...hints].join(' '),
  };
}

/** Summary of all results. */
export interface DoctorSummary {
  readonly counts: Readonly<Record<CheckStatus, number>>;
  /** No check failed. */
  readonly isWell: boolean;
}

export function verdictOf(results: readonly CheckResult[]): DoctorSummary {
  const count = (wanted: CheckStatus): number => results.filter(({ status }) => status === wanted).length;
  const counts = { ok: count('ok'), warn: count('warn'), fail: count('fail'), skip: count('skip') };
  return { counts, isWell: counts.fail === 0 };
}
