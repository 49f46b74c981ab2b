/** The grammar of `.env` as Compose reads it (compose-go). */

/** Faults of a line; the text completes `Line 3 of .env (NAME): …`. */
export const envFaults = {
  malformed: 'is not NAME=value',
  unterminated: 'has a quote that is never closed',
  noValue: 'has no value',
  expansion: "has a $ that Compose replaces: write NAME='value'",
  ambiguous: "has quotes or backslashes that Compose changes: write NAME='value'",
  duplicate: 'is set a second time; this one holds',
} as const satisfies Record<string, string>;
export type EnvFault = keyof typeof envFaults;

export interface EnvProblem {
  readonly code: EnvFault;
  /** From 1. */
  readonly line: number;
  readonly key: string | null;
  /** For people, without any value. */
  readonly message: string;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Statement on one line, or on several when a quoted value spans them. Offsets are into the text; `end` is before the line's end. */
export interface EnvStatement extends Span {
  readonly line: number;
  readonly key: string | null;
  readonly value: string | null;
  /** Where the value is written, its quotes included; null: there is no place for one. */
  readonly place: Span | null;
  readonly fault: EnvFault | null;
}

export const problemOf = (code: EnvFault, key: string | null, line: number): EnvProblem => ({
  code,
  line,
  key,
  message: `Line ${line} of .env${key === null ? '' : ` (${key})`} ${envFaults[code]}.`,
});

const skipped = /[ \t]*(?:#[^\n]*)?(?=\r?\n|$)/y;
const head = /[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*/y;
const bare = /[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*(?=\r?\n|$)/y;
const single = /'((?:[^'\\]|\\[\s\S])*)'/y;
const double = /"((?:[^"\\]|\\[\s\S])*)"/y;
const restOfLine = /[^\n]*?(?=\r?\n|$)/y;
const afterValue = /[ \t]*(?:[ \t]#[^\n]*?)?(?=\r?\n|$)/y;

/** Every line of the text that is neither empty nor a comment. */
export function statementsOf(text: string): EnvStatement[] {
  const found: EnvStatement[] = [];
  let at = text.startsWith('\ufeff') ? 1 : 0;
  let line = 1;
  while (at < text.length) {
    const blank = match(skipped, text, at);
    const statement = blank === null ? statementAt(text, at, line) : null;
    if (statement !== null) found.push(statement);
    const end = statement?.end ?? at + (blank?.[0].length ?? 0);
    const next = text.indexOf('\n', end);
    const until = next === -1 ? text.length : next + 1;
    line += text.slice(at, until).split('\n').length - 1;
    at = until;
  }
  return found;
}

function statementAt(text: string, start: number, line: number): EnvStatement {
  const named = match(head, text, start);
  if (named === null) {
    const key = match(bare, text, start)?.[1] ?? null;
    const fault = key === null ? 'malformed' : 'noValue';
    return { start, end: lineEnd(text, start), line, key, value: null, place: null, fault };
  }
  const key = named[1] ?? null;
  const from = start + named[0].length;
  const written = valueAt(text, from);
  const until = from + (written?.length ?? 0);
  const after = written === null ? null : match(afterValue, text, until);
  if (written === null || after === null) {
    // A new value replaces the rest of the line.
    const end = lineEnd(text, until);
    const fault = written === null ? 'unterminated' : 'malformed';
    return { start, end, line, key, value: null, place: { start: from, end }, fault };
  }
  const place = { start: from, end: until };
  return { start, end: until + after[0].length, line, key, value: written.value, place, fault: written.fault };
}

const lineEnd = (text: string, at: number): number => at + (match(restOfLine, text, at)?.[0].length ?? 0);

interface Written {
  readonly value: string;
  /** Length of the written text, quotes included. */
  readonly length: number;
  readonly fault: EnvFault | null;
}

/** The value that begins at `at`; null when its quote is never closed. */
function valueAt(text: string, at: number): Written | null {
  if (text[at] === "'") return quoted(match(single, text, at), singleFault, (inner) => inner);
  if (text[at] === '"')
    return quoted(match(double, text, at), doubleFault, (inner) => inner.replace(/\\(["\\])/g, '$1'));
  const line = match(restOfLine, text, at)?.[0] ?? '';
  const value = line.replace(/[ \t]+#.*$/, '').trimEnd();
  return { value, length: value.length, fault: plainFault(value) };
}

function quoted(
  found: RegExpExecArray | null,
  faultOf: (inner: string) => EnvFault | null,
  read: (inner: string) => string,
): Written | null {
  if (found === null) return null;
  const [whole, inner = ''] = found;
  return { value: read(inner), length: whole.length, fault: faultOf(inner) };
}

const singleFault = (inner: string): EnvFault | null => (/\\[\\']/.test(inner) ? 'ambiguous' : null);

function doubleFault(inner: string): EnvFault | null {
  if (inner.includes('$')) return 'expansion';
  return /\\[^"]/.test(inner) ? 'ambiguous' : null;
}

function plainFault(value: string): EnvFault | null {
  if (value.includes('$')) return 'expansion';
  return /["'\\]|^#/.test(value) ? 'ambiguous' : null;
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
