import { DeployError } from '../errors.ts';
import { type EnvFault, type EnvProblem, type EnvStatement, problemOf, statementsOf } from './env-statements.ts';
import { allVariables, isSecretVariable } from './variables.ts';

export interface EnvFile {
  /** Values by name; the later of two lines with one name holds, as for Compose. Nothing is expanded. */
  readonly values: ReadonlyMap<string, string>;
  /** Lines whose value Compose changes or does not read. Never with a value. */
  readonly problems: readonly EnvProblem[];
}

const isOurs = (key: string): boolean => allVariables().some(([name]) => name === key);

/** Reads `.env` as Compose does. */
export function parseEnv(text: string): EnvFile {
  const values = new Map<string, string>();
  const problems: EnvProblem[] = [];
  const report = (fault: EnvFault, key: string | null, line: number) => {
    // After an unclosed quote, an apparent name may be a piece of the value.
    if (problems.at(-1)?.code !== 'unterminated') problems.push(problemOf(fault, key, line));
  };
  for (const statement of statementsOf(text)) {
    const { key, value, line, fault, place } = statement;
    if (key !== null && isOurs(key) && place !== null && text.slice(place.start, place.end).includes('\n')) {
      // None of ours has two lines: its quote is closed by that of another line, whose value it would hold.
      report('unterminated', key, line);
      continue;
    }
    if (fault !== null) report(fault, fault === 'noValue' ? null : key, line);
    if (key === null || value === null) continue;
    if (values.has(key)) report('duplicate', key, line);
    values.set(key, value);
  }
  return { values, problems };
}

/**
 * Sets and removes (null) variables and does not change any other character. For a name that occurs twice, the later line
 * is set; a missing name is added at the end.
 *
 * @throws DeployError (secretRefused, invalidInput) for a value that Compose does not read literally; the error names the
 * variable and the kind of character, never the value
 */
export function changeEnv(text: string, changes: Readonly<Record<string, string | null>>): string {
  for (const [key, value] of Object.entries(changes)) requireWritable(key, value);
  return Object.entries(changes).reduce(
    (edited, [key, value]) => (value === null ? without(edited, key) : withValue(edited, key, value)),
    text,
  );
}

/** One line of `.env`, without its end. */
export function envLine(key: string, value: string): string {
  requireWritable(key, value);
  return `${key}='${value}'`;
}

const unwritable: readonly (readonly [RegExp, string])[] = [
  [/'/, 'a single quote'],
  // Before the closing quote it is an escape.
  [/\\/, 'a backslash'],
  [/[\r\n]/, 'a line break'],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for them
  [/[\x00-\x1f\x7f]/, 'a control character'],
  [/[^\x20-\x7e]/, 'a character outside of ASCII'],
];

function requireWritable(key: string, value: string | null): void {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key))
    throw new DeployError('invalidInput', 'A name in .env is letters, digits and _.');
  if (value === null) return;
  const found = unwritable.find(([pattern]) => pattern.test(value));
  if (found === undefined) return;
  throw new DeployError(
    isSecretVariable(key) ? 'secretRefused' : 'invalidInput',
    `The value of ${key} contains ${found[1]}, which .env cannot hold.`,
    `Use printable ASCII without ' and \\.`,
  );
}

function withValue(text: string, key: string, value: string): string {
  const statement = statementsFor(text, key).at(-1);
  if (statement === undefined) return appended(text, envLine(key, value));
  const { start, end, place } = statement;
  if (place === null) return splice(text, start, end, envLine(key, value));
  return splice(text, place.start, place.end, `'${value}'`);
}

function without(text: string, key: string): string {
  return statementsFor(text, key).reduceRight(
    (rest, { start, end }) => splice(rest, start, end + (/^\r?\n/.exec(rest.slice(end))?.[0].length ?? 0), ''),
    text,
  );
}

const statementsFor = (text: string, key: string): EnvStatement[] =>
  statementsOf(text).filter((statement) => statement.key === key);

const splice = (text: string, start: number, end: number, put: string): string =>
  text.slice(0, start) + put + text.slice(end);

function appended(text: string, line: string): string {
  const newline = text.includes('\r\n') ? '\r\n' : '\n';
  const isOpen = text !== '' && text !== '\ufeff' && !text.endsWith('\n');
  return `${text}${isOpen ? newline : ''}${line}${newline}`;
}
