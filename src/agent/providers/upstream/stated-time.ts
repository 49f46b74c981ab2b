/** Times and durations in the messages of providers: "try again in 20s", "resets at 6pm (Europe/Berlin)". */

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const dayMs = 86_400_000;
/** Longest message to search, in characters. */
const maxChars = 2_000;
/** How far a time of day may be in the past and still mean today: a clock may be slightly wrong, or the answer late. */
const justPassedMs = 300_000;

const lead = '(?:try|retry|again|resets?|wait|available|renews?|until|after)';
const part = String.raw`\d{1,9}(?:\.\d{1,9})?\s?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])`;
const durationPattern = new RegExp(String.raw`\b${lead}\b[^.\d]{0,40}(${part}(?:(?:,|\s|and){0,6}${part}){0,4})`, 'i');

/** Units of a duration, by their first letters. */
function unitOf(word: string): number {
  const unit = word.toLowerCase();
  if (unit === 'ms' || unit.startsWith('mil')) return 1;
  return unitMs[unit.charAt(0)] ?? 0;
}

/** Duration after which a message asks to try again, in milliseconds. */
export function durationIn(message: string): number | undefined {
  const [, text] = durationPattern.exec(message.slice(0, maxChars)) ?? [];
  if (text === undefined) return undefined;
  let sum = 0;
  for (const [, number, unit = ''] of text.matchAll(/(\d{1,9}(?:\.\d{1,9})?)\s?([a-z]{1,12})/gi))
    sum += Number(number) * unitOf(unit);
  return sum;
}

const clock = String.raw`(\d{1,2})(?::(\d\d))?(?::\d\d)?\s?([ap]\.?m\b)?`;
const zone = String.raw`(?:\s?\(?((?:UTC|GMT|Z)\b|[A-Z][A-Za-z_]{2,20}/[A-Za-z_/]{2,30})\)?)?`;
const isoPattern = new RegExp(
  String.raw`\b${lead}\b[^\d]{0,40}(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)\s?(Z|UTC|[+-]\d\d:?\d\d)?`,
  'i',
);
const epochPattern = /\blimit reached\|(\d{10})\b/i;
const months = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
const datePattern = new RegExp(
  String.raw`\b${lead}\b[^\d]{0,40}\b(${months})[a-z]{0,6}\.? (\d{1,2})(?:st|nd|rd|th)?(?:, (\d{4}))?(?:,| at)? ${clock}${zone}`,
  'i',
);
const timePattern = new RegExp(String.raw`\b${lead}\b[^\d]{0,30}?\b${clock}${zone}(?![\d/%-])`, 'i');

/** Time at which a message asks to try again, in milliseconds since the epoch. A time without a zone is in this machine's zone. */
export function clockTimeIn(message: string, now: number): number | undefined {
  const text = message.slice(0, maxChars);
  const [, epoch] = epochPattern.exec(text) ?? [];
  if (epoch !== undefined) return Number(epoch) * 1_000;
  const [, iso, offset = ''] = isoPattern.exec(text) ?? [];
  if (iso !== undefined)
    return valid(Date.parse(`${iso.replace(' ', 'T')}${offset.toUpperCase() === 'UTC' ? 'Z' : offset}`));
  return dateIn(text, now) ?? timeIn(text, now);
}

/** Reads "Dec 1st, 2026 6:40 PM", the form that codex uses. */
function dateIn(text: string, now: number): number | undefined {
  const [, month, day, year, hour, minute, half, place] = datePattern.exec(text) ?? [];
  const time = timeOfDay(hour, minute, half);
  if (month === undefined || time === undefined) return undefined;
  const of = (inYear: number) =>
    atIn(place, inYear, months.toLowerCase().split('|').indexOf(month.slice(0, 3).toLowerCase()), Number(day), time);
  const thisYear = new Date(now).getFullYear();
  const at = of(year === undefined ? thisYear : Number(year));
  // A January date without a year, read in December.
  return at !== undefined && year === undefined && at < now - dayMs ? of(thisYear + 1) : at;
}

/** Reads "18:40" or "6pm", with or without a zone, as the next such time. */
function timeIn(text: string, now: number): number | undefined {
  const [, hour, minute, half, place] = timePattern.exec(text) ?? [];
  // A number alone is not a time.
  if (minute === undefined && half === undefined) return undefined;
  const time = timeOfDay(hour, minute, half);
  if (time === undefined) return undefined;
  const there = localDate(now, place);
  const of = (days: number) => there && atIn(place, there.year, there.month, there.day + days, time);
  const today = of(0);
  return today === undefined || today >= now - justPassedMs ? today : of(1);
}

interface TimeOfDay {
  readonly hour: number;
  readonly minute: number;
}

function timeOfDay(hours: string | undefined, minutes = '0', half: string | undefined): TimeOfDay | undefined {
  const hour = Number(hours);
  const minute = Number(minutes);
  if (hours === undefined || minute > 59 || hour > (half === undefined ? 23 : 12)) return undefined;
  if (half === undefined) return { hour, minute };
  return { hour: (hour % 12) + (half.toLowerCase().startsWith('p') ? 12 : 0), minute };
}

const isUtc = (place: string): boolean => /^(?:utc|gmt|z)$/i.test(place);

/** Calendar day in a zone; undefined: the zone is unknown. */
function localDate(now: number, place: string | undefined) {
  if (place === undefined) {
    const date = new Date(now);
    return { year: date.getFullYear(), month: date.getMonth(), day: date.getDate() };
  }
  const shift = isUtc(place) ? 0 : offsetOf(now, place);
  if (shift === undefined) return undefined;
  const date = new Date(now + shift);
  return { year: date.getUTCFullYear(), month: date.getUTCMonth(), day: date.getUTCDate() };
}

function atIn(
  place: string | undefined,
  year: number,
  month: number,
  day: number,
  { hour, minute }: TimeOfDay,
): number | undefined {
  if (place === undefined) return valid(new Date(year, month, day, hour, minute).getTime());
  const asUtc = Date.UTC(year, month, day, hour, minute);
  const shift = isUtc(place) ? 0 : offsetOf(asUtc, place);
  if (shift === undefined) return undefined;
  // Near a clock change, the offset at the result applies.
  const at = asUtc - shift;
  return valid(isUtc(place) ? at : asUtc - (offsetOf(at, place) ?? shift));
}

/** Next midnight in a zone, in milliseconds since the epoch. */
export function dayStart(now: number, place: string): number {
  const there = localDate(now, place);
  return (there && atIn(place, there.year, there.month, there.day + 1, { hour: 0, minute: 0 })) ?? now + dayMs;
}

/** Offset of a zone from UTC at a time, in milliseconds; undefined: the zone is unknown. */
function offsetOf(at: number, timeZone: string): number | undefined {
  try {
    const parts = new Intl.DateTimeFormat('en-US', {
      ...{ timeZone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric' },
      ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
    }).formatToParts(at);
    const of = (type: string) => Number(parts.find((each) => each.type === type)?.value);
    const there = Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'));
    return there - Math.floor(at / 1_000) * 1_000;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

const valid = (at: number): number | undefined => (Number.isNaN(at) ? undefined : at);
