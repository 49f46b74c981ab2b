import { inspect } from 'node:util';
import { visible } from '../lib/index.ts';

/** Escape codes of the terminal (ECMA-48 SGR), one per level. */
const colours: Readonly<Record<string, string>> = { error: '31', warn: '33', info: '36', debug: '90' };

export interface RecordHead {
  readonly at: string;
  readonly level: string;
  readonly name: string;
  readonly msg: string;
}

/**
 * One record for people: time of day, level, name, message, fields. Colourless where NO_COLOR is set. Text of others is made
 * visible: it may quote a peer.
 */
export function prettyLine(record: RecordHead, fields: Readonly<Record<string, unknown>>): string {
  const isPlain = (process.env['NO_COLOR'] ?? '') !== '';
  const paint = (code: string, text: string) => (isPlain ? text : `\u001b[${code}m${text}\u001b[0m`);
  const level = paint(colours[record.level] ?? '0', record.level.padEnd(5));
  const shown = Object.entries(fields).map(
    ([key, value]) => `${paint('90', `${inLine(key)}=`)}${visible(show(value))}`,
  );
  return [record.at.slice(11, 23), level, record.name, inLine(record.msg), ...shown].join(' ');
}

const inLine = (text: string): string => visible(text, { multiline: false });

function show(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  const stack = (value as { stack?: unknown } | null)?.stack;
  if (typeof stack === 'string') return `\n  ${stack.replaceAll('\n', '\n  ')}`;
  return inspect(value, { breakLength: Number.POSITIVE_INFINITY, depth: 4 });
}
