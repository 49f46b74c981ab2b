/** Text of the report on a workspace that is down, shared by terminal, page, notices and doctor. */
import type { Incident, ServerExit } from './exits.ts';
import type { Problem } from './health.ts';
import { restRemediesOf, type SettingPlaces } from './remedies.ts';

/** Reason that a workspace is down, recorded when its server stopped for good. */
export interface RestFailure {
  /** Kind of the failure (`failureKinds`), or `gaveUp`. */
  readonly kind: string;
  readonly message: string;
  /** Decision of the Hub, in a sentence. */
  readonly note?: string | null | undefined;
}

/** Number of failures at which the Hub gives up on a workspace, and the window in which they count. */
export interface FailureLimit {
  readonly failures: number;
  readonly withinMs: number;
}

/** `1.6 s`, `77 s`, `14 min`, `3 h`, `2 d`. */
export function spanWords(ms: number): string {
  const seconds = ms / 1_000;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 600) return `${Math.round(seconds)} s`;
  if (seconds < 36_000) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** Completes “its process …”. */
function endClause({ signal, exitCode, cause, error, pid }: ServerExit): string {
  if (cause !== undefined) return cause;
  if (signal !== null) return `${signal === 'SIGKILL' ? 'was killed' : 'was ended'} (${signal})`;
  if (exitCode !== null) return `exited with code ${exitCode}`;
  return pid === null ? `could not be started (${withoutStop(error ?? 'no reason given')})` : 'ended unseen';
}

const withoutStop = (text: string): string => text.replace(/\.$/, '');

/** End of a process in a column: `SIGKILL`, `exit code 3`, `stop (restart)`. */
export function endWords(exit: ServerExit): string {
  const { stopReason, signal, exitCode, cause, pid, error } = exit;
  if (stopReason !== null) return `stop (${stopReason})`;
  if (cause !== undefined) return cause;
  if (signal !== null) return signal;
  if (exitCode !== null) return `exit code ${exitCode}`;
  return pid === null ? `no start: ${error ?? 'no reason given'}` : 'unseen';
}

/** Clause on the ends of processes: `its process was killed (SIGKILL) 6 times in 77 s`. */
function endsClause(exits: readonly ServerExit[]): string {
  const [first] = exits;
  const last = exits.at(-1);
  if (!first || !last) return 'its process ended';
  const clause = endClause(last);
  if (exits.length === 1) return `its process ${clause}`;
  const often = `${exits.length} times in ${spanWords(Date.parse(last.at) - Date.parse(first.at))}`;
  return exits.every((exit) => endClause(exit) === clause)
    ? `its process ${clause} ${often}`
    : `its process ended ${often}; the last one ${clause}`;
}

/** Sentence and limit for a workspace on which the Hub has given up. */
export function gaveUpWords(
  name: string,
  exits: readonly ServerExit[],
  { failures, withinMs }: FailureLimit,
): Pick<Incident, 'what' | 'note'> {
  return {
    what: `${name} is down: ${endsClause(exits)}.`,
    note: `The Hub gave up; the limit is ${failures} in ${spanWords(withinMs)}.`,
  };
}

/** Latest ends without a stop request, oldest first. */
export const latestCrashes = (exits: readonly ServerExit[], count: number): readonly ServerExit[] =>
  count === 0 ? [] : exits.filter(isCrash).slice(-count);

/** Facts that a report is derived from. */
export interface IncidentFacts {
  readonly name: string;
  readonly state: string;
  readonly phase: string;
  readonly nextAttemptAt: string | null;
  readonly problems: readonly Pick<Problem, 'code' | 'what' | 'remedy'>[];
  /** Places of settings; empty when they cannot be used. */
  readonly places: SettingPlaces;
  readonly rest: RestFailure | null;
  /** Failures that count for the restart policy. */
  readonly failures: number;
  /** All stored ends, oldest first. */
  readonly exits: readonly ServerExit[];
}

/** Sentence for a stopped workspace, by the reason of its last stop. */
const stops: Readonly<Record<string, string>> = {
  user: 'A user stopped it.',
  idle: 'It was idle too long.',
  hub: 'It was stopped with the Hub.',
};

/** Problems that keep a workspace from running. */
const isDownBy = ({ code }: Pick<Problem, 'code'>): boolean =>
  ['exited', 'invalidConfig', 'workspaceLocked', 'workspaceGone'].includes(code);

/** Report on a workspace that is down; null while its server runs, starts, ends or sleeps. */
export function incidentOf(facts: IncidentFacts): Incident | null {
  const { name, state, phase, problems, rest, failures, exits, places } = facts;
  if (state !== 'stopped' && state !== 'exited') return null;
  // The next request starts the workspace. Only a problem that prevents this start needs a report.
  if (phase === 'asleep' && !problems.some(isDownBy)) return null;
  if (phase === 'exited.backingOff') {
    const crashes = latestCrashes(exits, failures);
    const what = `${name} is down: ${endsClause(crashes)}.`;
    return { what, note: 'The Hub starts it again.', exits: [...crashes], remedies: restRemediesOf(false, places) };
  }
  if (rest?.kind === 'gaveUp') {
    const crashes = [...latestCrashes(exits, failures)];
    const remedies = restRemediesOf(true, places);
    return { what: rest.message, note: rest.note ?? null, exits: crashes, remedies };
  }
  const reason = problems.find(isDownBy);
  const last = exits.at(-1);
  const remedies = restRemediesOf(false, places);
  if (!reason) return { what: `${name} is stopped.`, note: stops[last?.stopReason ?? ''] ?? null, exits: [], remedies };
  const { what: cause } = reason;
  const isCrashed = reason.code === 'exited' && last !== undefined && isCrash(last);
  return {
    what: `${name} is down: ${cause}`,
    note: null,
    exits: isCrashed ? [last] : [],
    remedies: reason.remedy && reason.remedy.act !== 'start' ? [reason.remedy, ...remedies] : remedies,
  };
}

/** The whole report in one line. */
export const incidentLine = ({ what, note }: Pick<Incident, 'what' | 'note'>): string =>
  note === null ? what : `${what} ${note}`;

export const exitColumns = ['When', 'Lived', 'Ended by', 'Last line', 'Log'] as const;

/** Cells of an end, in the order of `exitColumns`; times in local time. */
export function exitCells(exit: ServerExit): readonly string[] {
  const { at, livedMs, lastLine, log } = exit;
  return [
    new Date(at).toTimeString().slice(0, 8),
    livedMs === null ? '–' : spanWords(livedMs),
    endWords(exit),
    lastLine ?? '–',
    log === null ? '–' : `${log.file}, byte ${log.offset}`,
  ];
}

/** True for an end without a stop request. */
export const isCrash = ({ stopReason }: ServerExit): boolean => stopReason === null || stopReason === 'unhealthy';
