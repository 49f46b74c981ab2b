/** Turns the options of `cron add` and `task add` into a request to the agent server. */
import * as v from 'valibot';
import { type RpcParams, TimeZone } from '../../protocol/index.ts';
import type { CommandContext, OptionValues } from '../command.ts';
import { usageError } from '../errors.ts';

type Wanted = RpcParams<'cron/add'>;
type Schedule = NonNullable<Wanted['schedule']>;

const minuteMs = 60_000;
const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** `90s`, `15m`, `1h30m`, `2d` in milliseconds; undefined for anything else. */
export function durationMs(text: string): number | undefined {
  if (!/^(\d+[smhdw])+$/.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+)([smhdw])/g)];
  return parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (units[unit] ?? 0), 0);
}

/**
 * A moment: ISO 8601, in the zone of this machine when it names none; or from now, as in `+30m`. Undefined for anything else.
 *
 * @param now milliseconds since the epoch
 */
export function momentOf(text: string, now: number): string | undefined {
  if (text.startsWith('+')) {
    const ms = durationMs(text.slice(1));
    return ms === undefined ? undefined : new Date(now + ms).toISOString();
  }
  if (!/^\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?$/.test(text)) return undefined;
  const at = new Date(text.replace(' ', 'T'));
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}

/** Value of an option that takes one. */
function given(options: OptionValues, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

/**
 * @param command name of the command, whose help an error names
 * @throws CliError usage
 */
export function scheduleOf(options: OptionValues, command: string, now: number): Schedule | undefined {
  const kinds = ['every', 'at', 'daily', 'cron'] as const;
  const chosen = kinds.filter((kind) => given(options, kind) !== undefined);
  if (chosen.length > 1) {
    const both = chosen.map((kind) => `--${kind}`).join(' and ');
    throw usageError(`Give one schedule, not ${both}.`, command);
  }
  const [kind] = chosen;
  const text = kind && given(options, kind);
  const timeZone = given(options, 'tz');
  if (timeZone !== undefined && !v.is(TimeZone, timeZone))
    throw usageError(`--tz is an IANA time zone such as Europe/Berlin, not ${timeZone}.`, command);
  if (kind === undefined || text === undefined) {
    if (timeZone !== undefined) throw usageError('--tz goes with --daily or --cron.', command);
    return undefined;
  }
  switch (kind) {
    case 'every': {
      const everyMs = durationMs(text);
      if (everyMs === undefined) throw usageError(`--every is a duration such as 15m, 2h or 1d, not ${text}.`, command);
      if (everyMs < minuteMs) throw usageError('--every is a minute at least.', command);
      if (timeZone !== undefined) throw usageError('--tz goes with --daily or --cron.', command);
      return { kind, everyMs };
    }
    case 'at': {
      const at = momentOf(text, now);
      if (at === undefined) {
        throw usageError(`--at is a moment such as 2026-12-24T18:00 or +30m, not ${text}.`, command);
      }
      if (timeZone !== undefined) throw usageError('--tz goes with --daily or --cron.', command);
      return { kind, at };
    }
    case 'daily': {
      const time = text.padStart(5, '0');
      if (!/^([01]\d|2[0-3]):[0-5]\d$/.test(time)) {
        throw usageError(`--daily is a time of the day such as 07:30, not ${text}.`, command);
      }
      return { kind, time, timeZone };
    }
    case 'cron':
      return { kind, expression: text, timeZone };
  }
}

function bindingOf(options: OptionValues): Wanted['binding'] {
  const thread = given(options, 'thread');
  if (thread === undefined) return undefined;
  return thread === 'own' ? { mode: 'own' } : { mode: 'thread', threadId: thread };
}

/** @throws CliError usage */
export function inputOf({ options }: CommandContext, prompt: string, command: string, now: number): Wanted {
  if (options['yes'] === true && options['ask'] === true) throw usageError('Give --yes or --ask, not both.', command);
  return {
    prompt,
    name: given(options, 'name'),
    schedule: scheduleOf(options, command, now),
    binding: bindingOf(options),
    model: given(options, 'model'),
    enabled: options['disabled'] !== true,
    deleteAfterRun: options['once'] === true,
    ...(options['yes'] === true && { approvalPolicy: 'autoApprove' }),
    ...(options['ask'] === true && { approvalPolicy: 'default' }),
  };
}
