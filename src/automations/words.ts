import type { Schedule } from '../protocol/index.ts';

/**
 * A schedule for people: "At 07:30, Monday through Friday (Europe/Berlin)". Loads the library that reads expressions when there is
 * one to read.
 */
export async function scheduleText(schedule: Schedule | undefined): Promise<string> {
  switch (schedule?.kind) {
    case undefined:
      return 'Once, as soon as possible';
    case 'at':
      return `Once, at ${schedule.at.slice(0, 16).replace('T', ' ')} UTC`;
    case 'every':
      return `Every ${intervalText(schedule.everyMs)}`;
    case 'daily':
      return `Every day at ${schedule.time}${inZone(schedule.timeZone)}`;
    case 'cron':
      return `${await expressionText(schedule.expression)}${inZone(schedule.timeZone)}`;
  }
}

const inZone = (timeZone: string | undefined): string => (timeZone === undefined ? '' : ` (${timeZone})`);

async function expressionText(expression: string): Promise<string> {
  const { default: cronstrue } = await import('cronstrue');
  try {
    return cronstrue.toString(expression, { use24HourTimeFormat: true });
  } catch {
    // cronstrue knows fewer expressions than can be run: any other is shown unchanged.
    return expression;
  }
}

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const;

/** `90_000` is "1 minute 30 seconds", `3_600_000` is "hour". Milliseconds below a second are left out. */
export function intervalText(ms: number): string {
  let rest = ms;
  const parts = units.flatMap(([unit, length]) => {
    const count = Math.floor(rest / length);
    rest -= count * length;
    return count === 0 ? [] : [`${count} ${unit}${count === 1 ? '' : 's'}`];
  });
  if (parts.length === 1 && parts[0]?.startsWith('1 ')) return parts[0].slice(2);
  return parts.join(' ') || '0 seconds';
}
