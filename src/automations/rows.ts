import { randomBytes } from 'node:crypto';
import type * as v from 'valibot';
import { AgentError, type StoredAutomation } from '../agent/index.ts';
import type { AutomationInput, Schedule } from '../protocol/index.ts';
import { type Calculator, calculatorOf, type Scheduled } from './calculator.ts';
import { scheduleText } from './words.ts';

export type NewAutomation = v.InferOutput<typeof AutomationInput>;
/** Absent fields stay unchanged. */
export type AutomationChange = { readonly [K in keyof NewAutomation]?: NewAutomation[K] | undefined };

const nameChars = 60;

/** Reason why a requested automation is invalid: for programs. */
export type Invalid =
  | 'scheduleRequired'
  | 'expression'
  | 'never'
  | 'passed'
  | 'tooMany'
  | 'running'
  | 'notRunning'
  | 'stopping';

export const invalid = (why: Invalid, message: string, more: Readonly<Record<string, unknown>> = {}): AgentError =>
  new AgentError('automationInvalid', { why, ...more }, message);

export const notFound = (automationId: string): AgentError => new AgentError('automationNotFound', { automationId });

/**
 * A new row, with everything that has to be decided once: its time zone, its first due time, its words.
 *
 * @param now milliseconds since the epoch
 * @throws AgentError automationInvalid
 */
export async function newRow(
  kind: StoredAutomation['kind'],
  input: NewAutomation,
  now: number,
): Promise<StoredAutomation> {
  if (kind === 'cron' && !input.schedule) throw invalid('scheduleRequired', 'a job needs a schedule');
  const { schedule, calculator } = settle(input.schedule, now);
  return {
    id: `${kind === 'cron' ? 'job' : 'task'}_${randomBytes(6).toString('hex')}`,
    kind,
    name: input.name ?? nameOf(input.prompt),
    prompt: input.prompt,
    ...(schedule && { schedule }),
    scheduleText: await scheduleText(schedule),
    enabled: input.enabled,
    binding: input.binding,
    ...(input.approvalPolicy !== undefined && { approvalPolicy: input.approvalPolicy }),
    ...(input.model !== undefined && { model: input.model }),
    deleteAfterRun: input.deleteAfterRun,
    nextAt: firstDue(calculator, schedule, now),
    version: 1,
    createdAt: now,
    updatedAt: now,
    anchorAt: now,
    progress: { failures: 0, lastDueAt: null, retry: null, threadId: null },
  };
}

/**
 * The row after a change. A changed schedule begins again: intervals count from now.
 *
 * @throws AgentError automationInvalid
 */
export async function changedRow(row: StoredAutomation, change: AutomationChange, now: number) {
  const { schedule: wanted, enabled = row.enabled, ...rest } = change;
  const decided = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  const next: StoredAutomation = { ...row, ...decided, enabled, version: row.version + 1, updatedAt: now };
  if (wanted === undefined) return enabled && !row.enabled ? { ...next, nextAt: dueOnceEnabled(row, now) } : next;
  const { schedule, calculator } = settle(wanted, now);
  return {
    ...next,
    ...(schedule && { schedule }),
    scheduleText: await scheduleText(schedule),
    nextAt: firstDue(calculator, schedule, now),
    anchorAt: now,
  };
}

/**
 * Next due time of an automation that is switched on again. Due times that passed while it was off are skipped.
 *
 * @throws AgentError automationInvalid, for a one-off whose time has passed
 */
export function dueOnceEnabled(row: StoredAutomation, now: number): number | null {
  const { nextAt } = row;
  if (nextAt !== null && nextAt > now) return nextAt;
  // An automation that is to run as soon as possible has waited for this.
  if (!row.schedule) return nextAt;
  const next = calculatorOf(row).next(now);
  if (next === null && nextAt !== null) {
    throw invalid('passed', 'its time has passed: give it another one, or run it now');
  }
  return next;
}

/** A one-off that has had its due time. */
export const isSpent = (row: StoredAutomation): boolean => row.nextAt === null && !isRecurring(row.schedule);

export const isRecurring = (schedule: Schedule | undefined): boolean =>
  schedule !== undefined && schedule.kind !== 'at';

/** Checks rules beyond the schema, and fills in values that must not change later. */
function settle(schedule: Schedule | undefined, now: number) {
  const settled = schedule && withZone(schedule);
  const calculator = readable({ schedule: settled, anchorAt: now });
  return { schedule: settled, calculator };
}

function readable(scheduled: Scheduled): Calculator {
  try {
    return calculatorOf(scheduled);
  } catch (error) {
    const message = (error as Error).message.replace(/^(Cron\w*|Invalid \w+): ?/, '');
    throw invalid(
      'expression',
      `the expression cannot be read: ${message}. Its fields are minute hour day month weekday, e.g. 30 7 * * 1-5`,
    );
  }
}

const wordsOf = (schedule: Schedule): string =>
  schedule.kind === 'cron' ? `“${schedule.expression}”` : 'the schedule';

function firstDue(calculator: Calculator, schedule: Schedule | undefined, now: number): number | null {
  if (!schedule) return now;
  const next = calculator.next(now);
  if (next !== null) return next;
  throw schedule.kind === 'at'
    ? invalid('passed', `${schedule.at} has passed`)
    : invalid(
        'never',
        `${wordsOf(schedule)} is never due: no year has such a day. Correct day and month (fields 3 and 4 of minute hour day month weekday), e.g. 0 9 28 2 *`,
      );
}

function withZone(schedule: Schedule): Schedule {
  switch (schedule.kind) {
    case 'every':
      return schedule;
    case 'at':
      return { ...schedule, at: new Date(schedule.at).toISOString() };
    default:
      return { ...schedule, timeZone: schedule.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone };
  }
}

function nameOf(prompt: string): string {
  const line = prompt.split('\n', 1)[0]?.trim() ?? '';
  return line.length > nameChars ? `${line.slice(0, nameChars - 1).trimEnd()}…` : line || 'Untitled';
}
