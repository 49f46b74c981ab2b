import type { TransitionRecord } from '../../../protocol/index.ts';
import { duration } from '../../parts/format.ts';
import { fullState } from '../../parts/tone.ts';
import type { Actor } from './model.ts';
import type { Reason } from './why.ts';

/** Events as clauses that complete “because …”. */
const clauses: Readonly<Record<string, string>> = {
  ENSURE: 'it was asked to run',
  RESTART: 'a restart was asked for',
  STOP: 'it was asked to stop',
  SHUTDOWN: 'a shutdown was asked for',
  ADOPT: 'a running server was to be taken over',
  INTERRUPT: 'it was interrupted',
  CANCEL: 'it was cancelled',
  ENABLE: 'it was switched on',
  DISABLE: 'it was switched off',
  REMOVE: 'it was removed',
  RUN: 'a run was asked for',
  DUE: 'a run was due',
  STALLED: 'the agent fell silent',
  DEADLINE: 'it took too long',
  DECIDED: 'a call was decided',
  'BUDGET.DECIDED': 'the budget was decided',
  'STORAGE.FAILED': 'it could not be saved',
  'LEASE.LOST': 'another process took the run over',
  'PROCESS.EXITED': 'the process ended',
  'PROCESS.REFUSED': 'the process could not start',
  'PROCESS.SPAWNED': 'the process started',
  'COMMAND.EXITED': 'the command ended',
  'COMMAND.REFUSED': 'the command could not start',
  'PROBE.FAILED': 'it did not answer',
  'PROBE.PASSED': 'it answered',
  'PROXY.RUNNING': 'the sidecar runs',
  'PROXY.UNHEALTHY': 'the sidecar does not answer',
  'PROXY.EXITED': 'the sidecar ended',
  'PROXY.STOPPED': 'the sidecar is stopped',
  'PROXY.START': 'the sidecar was asked to run',
  'PROXY.STOP': 'the sidecar was asked to stop',
  'SERVER.START': 'the server was asked to run',
  'SERVER.STOP': 'the server was asked to stop',
  'CONNECTION.CLOSED': 'the connection ended',
  'CONNECTION.LOST': 'the connection was lost',
  'CONNECTION.READY': 'the server answered',
  'after(backoff)': 'the pause before the restart was over',
  'after(startDeadline)': 'the start took too long',
  'after(startupTimeout)': 'the start took too long',
  'after(approvalTimeout)': 'no answer came in time',
  'done(readiness)': 'it answered for the first time',
  always: 'it decided by itself',
};

/** Beginnings of the sentence by state. */
const leads: Readonly<Record<string, string>> = {
  backingOff: 'Restarting',
  givenUp: 'Gave up',
  unhealthy: 'Not answering',
  awaitingApproval: 'Waiting for approval',
};

/** Events that count as failures of a process. */
const countsFailures = new Set(['PROCESS.EXITED', 'PROCESS.REFUSED', 'CONNECTION.CLOSED', 'CONNECTION.LOST']);

const ordinals = ['', '', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth'];
const ordinal = (count: number): string => ordinals[count] ?? `${count}th`;

/**
 * The cause of a state in one sentence: `Restarting because the process ended with SIGKILL, the second time in 120 s.`
 * Undefined if no cause is known.
 */
export function whySentence(actor: Actor, reasons: readonly Reason[]): string | undefined {
  const cause = reasons.findLast(({ entry }) => entry.record.event !== 'always') ?? reasons[0];
  if (!cause) return undefined;
  const { record } = cause.entry;
  const state = fullState(actor.states);
  const lead =
    leads[actor.states.at(-1)?.split('.').at(-1) ?? ''] ?? `${state.charAt(0).toUpperCase()}${state.slice(1)}`;
  return `${lead} because ${eventClause(record)}${countOf(cause, actor)}.`;
}

/** An event as a clause: `the process ended with SIGKILL`. Names an event without words. */
export function eventClause({ event, projection }: Pick<TransitionRecord, 'event' | 'projection'>): string {
  const known = Object.hasOwn(clauses, event) ? clauses[event] : undefined;
  if (known === undefined) {
    const [, kind, name] = /^(done|error|after)\((.*)\)$/.exec(event) ?? [];
    if (kind === 'done') return `“${name}” was done`;
    if (kind === 'error') return `“${name}” failed`;
    return kind === 'after' ? `the time “${name}” was over` : passive(event);
  }
  const { signal, exitCode } = projection;
  if (event !== 'PROCESS.EXITED' && event !== 'COMMAND.EXITED') return known;
  if (typeof signal === 'string') return `${known} with ${signal}`;
  return typeof exitCode === 'number' ? `${known} with code ${exitCode}` : known;
}

/** Verbs that need no “was”. */
const intransitive: ReadonlySet<string> = new Set(['changed', 'ended', 'exited', 'failed', 'resumed', 'started']);

/** `END.STORED` as `the end was stored`; another event is named. */
function passive(event: string): string {
  const words = event.toLowerCase().split(/[._]/);
  const verb = words.pop() ?? '';
  if (words.length === 0 || !/ed$/.test(verb)) return `“${event.toLowerCase().replaceAll(/[._]/g, ' ')}” came`;
  const thing = `the ${words.join(' ')}`;
  if (intransitive.has(verb)) return `${thing} ${verb}`;
  return `${thing} ${thing.endsWith('s') ? 'were' : 'was'} ${verb}`;
}

function countOf({ entry: { record }, nth }: Reason, actor: Actor): string {
  const { failures, failureWindowMs } = { ...record.projection, ...actor.projection };
  if (countsFailures.has(record.event) && typeof failures === 'number' && failures > 1) {
    const within = typeof failureWindowMs === 'number' ? ` in ${seconds(failureWindowMs)}` : '';
    return `, the ${ordinal(failures)} time${within}`;
  }
  return nth > 1 ? `, the ${ordinal(nth)} time in a row` : '';
}

/** Windows are compared with settings, which are in seconds. */
const seconds = (milliseconds: number): string =>
  milliseconds % 1_000 === 0 ? `${milliseconds / 1_000} s` : duration(milliseconds);
