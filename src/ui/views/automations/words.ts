import type { Automation, AutomationRun } from '../../../protocol/index.ts';
import type { Look } from '../../parts/tone.ts';

/** Word, shape and colour of each state of an automation. */
export const stateLooks: Readonly<Record<Automation['state'], Look & { readonly word: string }>> = {
  paused: { word: 'Off', tone: 'neutral', shape: 'ring' },
  waiting: { word: 'Waiting', tone: 'ok', shape: 'disc' },
  queued: { word: 'Queued', tone: 'progress', shape: 'arc' },
  running: { word: 'Running', tone: 'progress', shape: 'arc' },
  backingOff: { word: 'Retrying', tone: 'warn', shape: 'triangle' },
  finished: { word: 'Finished', tone: 'neutral', shape: 'square' },
};

export const runLooks: Readonly<Record<AutomationRun['status'], Look & { readonly word: string }>> = {
  running: { word: 'Running', tone: 'progress', shape: 'arc' },
  completed: { word: 'Completed', tone: 'ok', shape: 'disc' },
  failed: { word: 'Failed', tone: 'danger', shape: 'cross' },
  cancelled: { word: 'Cancelled', tone: 'neutral', shape: 'square' },
  missed: { word: 'Missed', tone: 'warn', shape: 'triangle' },
};

/** Time zone of a schedule; undefined where it has none. */
export function zoneOf({ schedule }: Automation): string | undefined {
  return schedule && 'timeZone' in schedule ? schedule.timeZone : undefined;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** A moment on the wall clock of a zone, with the zone's name: `Fri, Dec 24, 07:30 GMT+1`. */
export function wallClock(at: number, timeZone: string | undefined): string {
  const key = timeZone ?? '';
  let format = formats.get(key);
  if (!format) {
    format = new Intl.DateTimeFormat(undefined, {
      weekday: 'short',
      month: 'short',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
      timeZoneName: 'short',
      ...(timeZone !== undefined && { timeZone }),
    });
    formats.set(key, format);
  }
  return format.format(at);
}

/** A strip of runs in words: `12 runs: 10 completed, 2 failed`. */
export function runsInWords(runs: readonly AutomationRun[]): string {
  if (runs.length === 0) return 'No runs yet';
  const counts = new Map<string, number>();
  for (const { status } of runs) counts.set(status, (counts.get(status) ?? 0) + 1);
  const parts = [...counts].map(([status, count]) => `${count} ${status}`);
  return `${runs.length} ${runs.length === 1 ? 'run' : 'runs'}: ${parts.join(', ')}`;
}

/** Error of the last finished run, if this run failed. */
export function lastFault({ recentRuns }: Automation): string | undefined {
  const last = recentRuns.find(({ status }) => status !== 'running');
  return last?.status === 'failed' ? (last.error?.message ?? 'It failed.') : undefined;
}
