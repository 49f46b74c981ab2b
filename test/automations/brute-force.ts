/**
 * Due times of an expression, found by a check of every minute on the wall clock of the zone, which `Intl` computes.
 * Supports `*`, lists, ranges and steps in all five fields.
 */
const minuteMs = 60_000;

interface Wall {
  readonly minute: number;
  readonly hour: number;
  readonly day: number;
  readonly month: number;
  readonly weekday: number;
  /** Minutes since the epoch, if the wall clock were UTC. */
  readonly count: number;
}

export function wallOf(at: number, timeZone: string): Wall {
  return read(formatOf(timeZone), at);
}

const formats = new Map<string, Intl.DateTimeFormat>();
function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  });
  formats.set(timeZone, format);
  return format;
}

/** Walls that were read before: `Intl` takes most of the time, and the moments of the tests come again. */
const walls = new Map<Intl.DateTimeFormat, Map<number, Wall>>();

function read(format: Intl.DateTimeFormat, at: number): Wall {
  const known = walls.get(format) ?? new Map<number, Wall>();
  walls.set(format, known);
  const wall = known.get(at) ?? readAnew(format, at);
  known.set(at, wall);
  return wall;
}

function readAnew(format: Intl.DateTimeFormat, at: number): Wall {
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = parts;
  return wallAt(Date.UTC(year, month - 1, day, hour, minute) / minuteMs);
}

function wallAt(count: number): Wall {
  const date = new Date(count * minuteMs);
  return {
    minute: date.getUTCMinutes(),
    hour: date.getUTCHours(),
    day: date.getUTCDate(),
    month: date.getUTCMonth() + 1,
    weekday: date.getUTCDay(),
    count,
  };
}

type Field = (value: number) => boolean;

function fieldOf(text: string, [low, high]: readonly [number, number]): Field {
  const parts = text.split(',').map((part) => {
    const [range = '', step = '1'] = part.split('/');
    const [from, to] = range === '*' ? [low, high] : range.split('-').map(Number);
    const end = to ?? (part.includes('/') ? high : from);
    return (value: number) =>
      from !== undefined && end !== undefined && value >= from && value <= end && (value - from) % Number(step) === 0;
  });
  return (value) => parts.some((part) => part(value));
}

/** Due times of `expression` in the zone, from `from` (a whole minute) up to but without `to`. */
export function dueByBruteForce(expression: string, timeZone: string, from: number, to: number): number[] {
  const [minutes = '*', hours = '*', days = '*', months = '*', weekdays = '*'] = expression.split(' ');
  const minute = fieldOf(minutes, [0, 59]);
  const hour = fieldOf(hours, [0, 23]);
  const day = fieldOf(days, [1, 31]);
  const month = fieldOf(months, [1, 12]);
  const weekday = fieldOf(weekdays, [0, 7]);
  const isDay = (wall: Wall): boolean => {
    const [byDay, byWeekday] = [day(wall.day), weekday(wall.weekday) || (wall.weekday === 0 && weekday(7))];
    // Restricted both ways, either of them will do: as cron has it.
    return month(wall.month) && (days !== '*' && weekdays !== '*' ? byDay || byWeekday : byDay && byWeekday);
  };
  const fits = (wall: Wall): boolean => minute(wall.minute) && hour(wall.hour) && isDay(wall);
  const isOfTheDay = !minutes.includes('*') && !hours.includes('*') && !minutes.includes('/') && !hours.includes('/');
  const format = formatOf(timeZone);
  const seen = new Set<number>();
  const due = new Set<number>();
  // A day before, so that the first overlap is seen as one.
  let before = read(format, from - 1_440 * minuteMs - minuteMs).count;
  for (let at = from - 1_440 * minuteMs; at < to; at += minuteMs) {
    const wall = read(format, at);
    if (fits(wall) && !(isOfTheDay && seen.has(wall.count))) due.add(at);
    seen.add(wall.count);
    if (isOfTheDay) {
      for (let skipped = before + 1; skipped < wall.count; skipped += 1) {
        // A date that does not exist at all has no times of the day.
        const exists = [before, wall.count].some((edge) => Math.floor(edge / 1_440) === Math.floor(skipped / 1_440));
        if (exists && fits(wallAt(skipped))) due.add(at);
      }
    }
    before = wall.count;
  }
  return [...due].filter((at) => at >= from).sort((one, other) => one - other);
}
