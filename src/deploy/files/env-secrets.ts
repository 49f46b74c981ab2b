import { shortestUncertainSecret } from '../../lib/index.ts';
import { parseEnv } from './env-file.ts';
import { allVariables, isSecretVariable } from './variables.ts';

/** Shortest word of a line without `NAME=` that may be a piece of a secret. */
const shortestWord = 8;

/** Line that sets a variable, also one that is commented out. */
const assignment = /^[ \t]*(#[#\t ]*)?(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*([=:])(.*)$/;

/** Assignment of one of our secrets at any place of a line: two lines may have been joined. */
const known = new RegExp(
  `\\b(?:${allVariables()
    .flatMap(([name, { isSecret }]) => (isSecret ? [name] : []))
    .join('|')})[ \\t]*[=:]?`,
);

/**
 * Values of `.env` that nothing may show. Each line is read alone besides the file as a whole, so an unclosed quote, a comment or
 * a second line of the same name hides no secret.
 */
export function secretsInEnv(text: string): readonly string[] {
  const whole = new Set(
    [...parseEnv(text).values].flatMap(([name, value]) => (isSecretValue(name, value) ? [value] : [])),
  );
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\r|\n/);
  // A line that the whole file shows in the same way adds nothing, neither its quotes nor its words.
  const added = lines.flatMap((line) => secretsInLine(line, whole)).filter((value) => !whole.has(unquoted(value)));
  return [...new Set([...whole, ...added])];
}

/** Every longer value of a name that is not ours may be a secret. */
const isSecretValue = (name: string, value: string): boolean =>
  isSecretVariable(name) && (name.startsWith('ORATORIO_') || value.length >= shortestUncertainSecret);

function secretsInLine(line: string, whole: ReadonlySet<string>): readonly string[] {
  const found = [...line.split(known).slice(1).flatMap(readingsOf), ...wordsOf(commentOf(line)).filter(isRandom)];
  const [, comment, name = '', , rest = ''] = assignment.exec(line) ?? [];
  if (name === '') return [...found, ...(line.trimStart().startsWith('#') ? [] : wordsOf(line))];
  // Behind the value nothing but a comment belongs on the line.
  if (!isSecretVariable(name)) return [...found, ...wordsOf(rest.replace(firstValue, '')).filter(isRandom)];
  const readings = readingsOf(rest).filter((value) => isSecretValue(name, value));
  // A comment is prose unless it is a line that was taken out.
  const isProse = !allVariables().some(([each]) => each === name) && /\S\s+\S/.test(rest.trim());
  if (comment !== undefined) return [...found, ...(isProse ? [] : readings)];
  const isAlone = /^\s*(?:#.*)?$/.test(rest.replace(firstValue, ''));
  const isWhole = isAlone && readings.some((value) => whole.has(value));
  return [...found, ...readings, ...(isWhole ? [] : wordsOf(rest))];
}

const commentOf = (line: string): string => /(?:^|\s)#(.*)$/.exec(line)?.[1] ?? '';

const firstValue = /^\s*(?:"[^"]*"|'[^']*'|\S+)/;

/** Letters and digits mixed, and not an address: prose has no such word. */
const isRandom = (word: string): boolean => /[A-Za-z]/.test(word) && /\d/.test(word) && !word.includes('://');

/** A written value as each reader may understand it: with and without its quotes, its comment and its escapes. */
function readingsOf(written: string): readonly string[] {
  const bare = written.trim();
  const [, quoted] = /^(?:"((?:[^"\\]|\\.)*)|'([^']*))/.exec(bare)?.filter((part) => part !== undefined) ?? [];
  const cut = [bare, bare.replace(/[ \t]+#.*$/, ''), ...(quoted === undefined ? [] : [quoted])];
  const plain = cut.flatMap((text) => [text, unquoted(text)]);
  const all = plain.flatMap((text) => [text, text.replace(/\\(.)/g, '$1'), text.replaceAll('$$', '$')]);
  return [...new Set(all)].filter((text) => text !== '');
}

const unquoted = (text: string): string => text.trim().replace(/^["'\\]+|["'\\]+$/g, '');

const wordsOf = (text: string): readonly string[] =>
  text.split(/[\s"'=\\]+/).filter((word) => word.length >= shortestWord && !/^[A-Z][A-Z_]*$/.test(word));
