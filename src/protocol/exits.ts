/** Process ends of a workspace, as the Hub stores and serves them, and the report on a workspace that is down. */
import * as v from 'valibot';
import { Remedy } from './health.ts';

const text = (description: string, most: number) => v.pipe(v.string(), v.maxLength(most), v.description(description));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Number of stored ends for each workspace. */
export const maxExits = 20;
/** Characters of the last line, and of a reason. */
export const maxExitText = 500;

/** End of a process of a workspace, or a start that failed. */
export const ServerExit = v.object({
  at: v.pipe(v.string(), v.isoTimestamp(), v.description('Time when it ended, or was found to have ended.')),
  pid: v.pipe(v.nullable(count), v.description('Process id; null: there was no process.')),
  livedMs: v.pipe(v.nullable(count), v.description('Life span; null: unknown, or there was no process.')),
  exitCode: v.pipe(
    v.nullable(v.number()),
    v.description('Exit code; null: a signal ended it, or its end was not observed.'),
  ),
  signal: v.nullable(text('Name of the signal that ended it.', 20)),
  cause: v.optional(
    text('Cause outside of the process, e.g. the memory limit of its container; absent: none is known.', maxExitText),
  ),
  stopReason: v.nullable(
    text('Reason of the stop: user, idle, hub, restart or unhealthy; null: it was not stopped.', 20),
  ),
  error: v.nullable(text('Reason in a sentence.', maxExitText)),
  lastLine: v.nullable(text('Last line of its standard error, secrets removed.', maxExitText)),
  log: v.pipe(
    v.nullable(v.object({ file: text('Path of the log.', 4_000), offset: count })),
    v.description('Position of its end in the log, in bytes from the beginning. A log that grows too long is cut.'),
  ),
});
export type ServerExit = v.InferOutput<typeof ServerExit>;

/** Report on a workspace that is down. */
export const Incident = v.object({
  what: text('Sentence that names the workspace and the cause.', 5_000),
  note: v.nullable(text('Decision of the Hub, or the state of a restart.', 1_000)),
  exits: v.pipe(v.array(ServerExit), v.description('Process ends that led to it, oldest first.')),
  remedies: v.pipe(v.array(Remedy), v.description('Remedies, most useful first.')),
});
export type Incident = v.InferOutput<typeof Incident>;
