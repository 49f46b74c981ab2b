/** Log lines of an agent server for people: `12:03:04 warn  appserver  a turn has failed  code=upstreamUnauthorized`. */
import * as v from 'valibot';
import { type LogLevel, logLevels } from './log-levels.ts';
import type { Output } from './output.ts';
import { inLine } from './render.ts';

type Colors = Output['colors'];

const Line = v.looseObject({ at: v.string(), level: v.string(), name: v.string(), msg: v.string() });

/** Conditions on lines; an absent one accepts all. */
export interface LogFilter {
  /** This level and more urgent ones. */
  readonly level?: LogLevel | undefined;
  /** Milliseconds since the epoch. */
  readonly since?: number | undefined;
  readonly grep?: RegExp | undefined;
}

function parsed(line: string): v.InferOutput<typeof Line> | undefined {
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(), Line), line);
  return result.success ? result.output : undefined;
}

/** Whether a line passes the filter. A line that is not a record has neither level nor time: a filter by them hides it. */
export function isWanted(line: string, { level, since, grep }: LogFilter): boolean {
  if (line === '' || (grep !== undefined && !grep.test(line))) return false;
  if (level === undefined && since === undefined) return true;
  const record = parsed(line);
  if (record === undefined) return false;
  const rank = logLevels.indexOf(record.level as LogLevel);
  if (level !== undefined && (rank < 0 || rank > logLevels.indexOf(level))) return false;
  return since === undefined || Date.parse(record.at) >= since;
}

/** One line for a person. @param line unchanged line of the server */
export function logLine(line: string, colors: Colors): string {
  const record = parsed(line);
  if (record === undefined) return inLine(line);
  const { at, level, name, msg, ...fields } = record;
  const time = new Date(at);
  const clock = Number.isNaN(time.getTime()) ? at : time.toTimeString().slice(0, 8);
  const shown = Object.entries(fields).map(([key, value]) => colors.dim(`${inLine(key)}=${inLine(textOf(value))}`));
  return [colors.dim(inLine(clock)), paint(level, colors), inLine(name), inLine(msg), ...shown].join('  ').trimEnd();
}

function paint(level: string, { red, yellow, dim }: Colors): string {
  const word = inLine(level).padEnd(5);
  if (level === 'error') return red(word);
  if (level === 'warn') return yellow(word);
  return level === 'debug' ? dim(word) : word;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  const message = (value as { message?: unknown } | null)?.message;
  return typeof message === 'string' ? JSON.stringify(message) : (JSON.stringify(value) ?? String(value));
}

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `10m`, `2h`, `90s`, `1d` before now, or a point in time; undefined: neither. In milliseconds since the epoch. */
export function sinceTime(text: string, now: number): number | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const length = units[unit];
  if (count !== undefined && length !== undefined) return now - Number(count) * length;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}
