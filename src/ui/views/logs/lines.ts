import type { LogLine } from '../../../protocol/index.ts';

export const levels = ['debug', 'info', 'warn', 'error'] as const;
export type Level = (typeof levels)[number];

/** Shown line of a log. */
export interface Row {
  /** Key of the line, stable while the log grows. */
  readonly key: number;
  /** ISO 8601; absent where the line has no time. */
  readonly at?: string;
  /** Absent: the line has no level, and is shown at every level. */
  readonly level?: Level;
  /** Component that wrote it. */
  readonly name?: string;
  readonly text: string;
}

/** A line of an agent server's own log. */
export function rowOfLine({ seq, at, level, name, msg, fields }: LogLine): Row {
  const more = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : '';
  return { key: seq, at, ...levelOf(level), name, text: `${msg}${more}` };
}

/** Lines of a process's output: our own are JSON, others are any text that a library prints. */
export function rowsOfText(text: string): Row[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line, key) => rowOfText(line.replace(/\r$/, ''), key));
}

function rowOfText(line: string, key: number): Row {
  const record = line.startsWith('{') ? recordOf(line) : null;
  if (!record) return { key, text: line };
  const { at, time, ts, level, name, msg, ...fields } = record;
  const when = [at, time, ts].find((each) => typeof each === 'string');
  const more = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : '';
  return {
    key,
    ...(typeof when === 'string' && { at: when }),
    ...levelOf(level),
    ...(typeof name === 'string' && { name }),
    text: typeof msg === 'string' ? `${msg}${more}` : line,
  };
}

function recordOf(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && 'msg' in value ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function levelOf(level: unknown): { level?: Level } {
  const known = levels.find((each) => each === level);
  return known === undefined ? {} : { level: known };
}

/** Rows of level `from` or higher that contain `text`, in any case. A row without a level passes every level. */
export function search(rows: readonly Row[], from: Level, text: string): readonly Row[] {
  const least = levels.indexOf(from);
  const wanted = text.toLowerCase();
  if (least === 0 && wanted === '') return rows;
  return rows.filter(
    ({ level, name = '', text: line }) =>
      (level === undefined || levels.indexOf(level) >= least) &&
      (wanted === '' || line.toLowerCase().includes(wanted) || name.toLowerCase().includes(wanted)),
  );
}

/** Text of a row for the clipboard and for files. */
export const textOf = ({ at, level, name, text }: Row): string =>
  [at, level?.toUpperCase(), name, text].filter((part) => part !== undefined).join(' ');
