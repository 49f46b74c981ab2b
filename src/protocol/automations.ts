/**
 * Automations: cron jobs, and local tasks (specification §4.3 names both, their shapes are ours). A job says
 * something to the agent again and again; a task is one piece of work with a name, done once or on a schedule. Both are
 * *automations*: one table, one machine, one history. Times are ISO 8601 in UTC.
 */
import * as v from 'valibot';
import { approvalPolicies } from './tools.ts';

const id = v.pipe(v.string(), v.nonEmpty());
const time = v.pipe(v.string(), v.isoTimestamp('an ISO 8601 time in UTC, such as 2026-12-24T18:00:00Z'));
const minuteMs = 60_000;
/** Ten years. */
const longestMs = 315_360_000_000;
const duration = (min: number) =>
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(min, `at least ${min} milliseconds`),
    v.maxValue(longestMs, 'at most ten years'),
  );

/** An IANA time zone; absent: the zone of the machine when the automation was made, which is then kept. */
export const TimeZone = v.pipe(v.string(), v.check(isTimeZone, 'an IANA time zone, such as Europe/Berlin'));

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** When something runs. A minute is the shortest interval: faster work is not a job for an agent. */
export const Schedule = v.variant('kind', [
  v.object({
    kind: v.literal('every'),
    everyMs: duration(minuteMs),
    /** Until the first run; absent: `everyMs`. */
    initialDelayMs: v.optional(duration(0)),
  }),
  v.object({ kind: v.literal('at'), at: time }),
  v.object({
    kind: v.literal('daily'),
    /** On the wall clock of `timeZone`: in a gap (spring) it runs when the gap ends, in an overlap (autumn) once, the first time. */
    time: v.pipe(v.string(), v.regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time of day, such as 07:30')),
    timeZone: v.optional(TimeZone),
  }),
  v.object({
    kind: v.literal('cron'),
    /** Five fields: minute, hour, day of month, month, day of week. That it can be read is checked by the scheduler. */
    expression: v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(200)),
    timeZone: v.optional(TimeZone),
  }),
]);
export type Schedule = v.InferOutput<typeof Schedule>;

export const automationKinds = ['cron', 'task'] as const;
/** The public states of `machines/automation.ts`. */
export const automationStates = ['paused', 'waiting', 'queued', 'running', 'backingOff', 'finished'] as const;
export const runStatuses = ['running', 'completed', 'failed', 'cancelled', 'missed'] as const;
export const runTriggers = ['schedule', 'manual'] as const;

/** One run of one due time. `missed`: due without a running server, or together with others that count as one. */
export const AutomationRun = v.object({
  runId: id,
  automationId: id,
  scheduledFor: v.string(),
  status: v.picklist(runStatuses),
  trigger: v.picklist(runTriggers),
  /** How often it was tried so far, from 1. */
  attempt: v.number(),
  /** How many due times this run stands for; 1 when none was missed. */
  coalesced: v.number(),
  startedAt: v.optional(v.string()),
  finishedAt: v.optional(v.string()),
  durationMs: v.optional(v.number()),
  /** Where to read on: the session of its trace, and the turn. */
  threadId: v.optional(v.string()),
  turnId: v.optional(v.string()),
  /** Last words of the agent, shortened. */
  result: v.optional(v.string()),
  error: v.optional(v.object({ code: v.string(), message: v.string() })),
});
export type AutomationRun = v.InferOutput<typeof AutomationRun>;

/** In which conversation it runs: a new one every time, always the same of its own, or one that a user has. */
export const ThreadBinding = v.variant('mode', [
  v.object({ mode: v.literal('new') }),
  v.object({ mode: v.literal('own') }),
  v.object({ mode: v.literal('thread'), threadId: id }),
]);
export type ThreadBinding = v.InferOutput<typeof ThreadBinding>;

const named = v.pipe(v.string(), v.trim(), v.nonEmpty('not empty'), v.maxLength(200));
const prompt = v.pipe(v.string(), v.trim(), v.nonEmpty('not empty'), v.maxLength(100_000));

/** Choices of a user about an automation. */
export const AutomationInput = v.object({
  /** Absent: the beginning of the prompt. */
  name: v.optional(named),
  /** Prompt for the agent. */
  prompt,
  /** Absent (tasks only): once, as soon as there is room. */
  schedule: v.optional(Schedule),
  enabled: v.optional(v.boolean(), true),
  binding: v.optional(ThreadBinding, { mode: 'new' }),
  approvalPolicy: v.optional(v.picklist(approvalPolicies)),
  model: v.optional(named),
  /** A one-off that has completed is removed, history and all. */
  deleteAfterRun: v.optional(v.boolean(), false),
});
export type AutomationInput = v.InferOutput<typeof AutomationInput>;

export const Automation = v.object({
  id,
  kind: v.picklist(automationKinds),
  name: v.string(),
  prompt: v.string(),
  schedule: v.optional(Schedule),
  /** The schedule in words, e.g. "At 07:30, Monday through Friday". */
  scheduleText: v.string(),
  enabled: v.boolean(),
  binding: ThreadBinding,
  approvalPolicy: v.optional(v.picklist(approvalPolicies)),
  model: v.optional(v.string()),
  deleteAfterRun: v.boolean(),
  state: v.picklist(automationStates),
  /** Absent: never, or only on request. */
  nextRunAt: v.optional(v.string()),
  /** The next five due times, `nextRunAt` first. */
  upcoming: v.array(v.string()),
  /** Consecutive failures. */
  failures: v.number(),
  /** Newest first, at most 20. */
  recentRuns: v.array(AutomationRun),
  createdAt: v.string(),
  updatedAt: v.string(),
  /** Counts up with every change of a user's setting. */
  version: v.number(),
});
export type Automation = v.InferOutput<typeof Automation>;

/** `GET /dashboard/api/orchestrators/automations/state`. */
export const AutomationsState = v.object({
  /** Counts up with every change of anything below. */
  revision: v.number(),
  generatedAt: v.string(),
  /** False: automations are switched off, or have no server (a read-only viewer). */
  isRunning: v.boolean(),
  /** Local tasks. */
  tasks: v.array(Automation),
  /** Cron summaries. */
  cron: v.array(Automation),
  countsByState: v.record(v.string(), v.number()),
});
export type AutomationsState = v.InferOutput<typeof AutomationsState>;
