const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const whole = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
});
const dayOnly = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  year: 'numeric',
  month: 'short',
  day: 'numeric',
});
const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** Texts of other machines may hold no time. */
const shown = (format: Intl.DateTimeFormat, at: number): string => (Number.isFinite(at) ? format.format(at) : '–');

/** `14:02:07`, in the time zone of the browser. @param at milliseconds since the epoch; NaN: `–` */
export const clockTime = (at: number): string => shown(clock, at);

/** Day and time to the minute, in the time zone of the browser. */
export const dayTime = (at: number): string => whole.format(at);

/** Day in the time zone of the browser. */
export const dayOf = (at: number): string => dayOnly.format(at);

/** A moment in the time zone of the browser and in UTC: the title of a relative time. */
export const bothTimes = (at: number): string =>
  Number.isFinite(at) ? `${whole.format(at)} (${zone()})\n${new Date(at).toISOString()}` : '–';

/** Name of the time zone of the browser. */
const zoneOfThisClock = Intl.DateTimeFormat().resolvedOptions().timeZone;
export const zone = (): string => zoneOfThisClock;

/** Distance of a moment from now, in its largest unit: `in 3 h`, `12 s ago`, `now`. */
export function distance(at: number, now: number): string {
  const away = Math.abs(at - now);
  const [name, ms] = units.find(([, unit]) => away >= unit) ?? ['', 0];
  if (ms === 0) return 'now';
  const text = `${Math.floor(away / ms)} ${name}`;
  return at > now ? `in ${text}` : `${text} ago`;
}
