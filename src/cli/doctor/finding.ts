import type { Config } from '../../config/index.ts';
import type { CommandContext } from '../command.ts';

/** Result of one check. `skip`: something it needs is missing. */
export const findingStatuses = ['ok', 'warn', 'fail', 'skip'] as const;
export type FindingStatus = (typeof findingStatuses)[number];

export interface Finding {
  /** Subject, e.g. `hub.port`. */
  readonly id: string;
  readonly status: FindingStatus;
  /** Canonical path of the workspace; null for findings about the machine or the home. */
  readonly workspace: string | null;
  readonly saw: string;
  /** File and setting, or process, that the finding is about; null for none. */
  readonly where: string | null;
  /** Next command; null for none. */
  readonly next: string | null;
}

/** Finding of a check; the caller adds `workspace`. */
export type Seen = Omit<Finding, 'workspace'>;

export type DoctorContext = Pick<CommandContext, 'home' | 'env' | 'signal'> & {
  /** Skips checks that send a request to a model provider. */
  readonly isOffline: boolean;
};

/** Configuration of the user or of a workspace that could be read, with the command's surroundings. */
export interface WithConfig {
  readonly config: Config;
  readonly layers: readonly { readonly file: string; readonly settings: Readonly<Record<string, unknown>> }[];
}

type Detail = Partial<Pick<Finding, 'where' | 'next'>>;

const seen =
  (status: FindingStatus) =>
  (id: string, saw: string, { where = null, next = null }: Detail = {}): Seen => ({ id, status, saw, where, next });

export const ok = seen('ok');
export const warn = seen('warn');
export const fail = seen('fail');
export const skip = seen('skip');

export interface DoctorSummary {
  readonly counts: Readonly<Record<FindingStatus, number>>;
  readonly isWell: boolean;
}

export function verdictOf(findings: readonly Finding[]): DoctorSummary {
  const count = (wanted: FindingStatus) => findings.filter(({ status }) => status === wanted).length;
  const counts = { ok: count('ok'), warn: count('warn'), fail: count('fail'), skip: count('skip') };
  return { counts, isWell: counts.fail === 0 };
}
