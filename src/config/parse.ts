import { ConfigError } from './error.ts';

export type JsonObject = { readonly [key: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Parses strict JSON (RFC 8259: no comments, no trailing commas) whose top is an object. A leading byte order mark, which
 * some editors write, is skipped.
 *
 * @throws ConfigError with line and column of the first problem, never quoting the text, which may hold a secret
 */
export function parseConfig(file: string, source: string): JsonObject {
  const text = source.charCodeAt(0) === 0xfeff ? source.slice(1) : source;
  const document = parseJson(file, text);
  if (isJsonObject(document)) return document;
  throw new ConfigError({ file, keyPath: '', expected: 'a JSON object', received: kindOf(document) });
}

function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const at = firstProblem(text);
    const where = `line ${at.line}, column ${at.column}`;
    const hint = text.startsWith('//', at.offset) || text.startsWith('/*', at.offset) ? ' (comments are not JSON)' : '';
    throw new ConfigError({ file, keyPath: '', expected: 'valid JSON', received: `malformed at ${where}${hint}` });
  }
}

/** Word for the kind of a JSON value. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  return typeof value === 'undefined' ? 'missing' : `a ${typeof value}`;
}

/**
 * Finds the first place that is not strict JSON: the parser's own message names it in some cases only, and quotes the text. A pushdown automaton
 * over tokens; called for text that `JSON.parse` has refused.
 */
export function firstProblem(text: string): { offset: number; line: number; column: number } {
  const offset = brokenOffset(text);
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  return { offset, line, column: offset - (before.lastIndexOf('\n') + 1) + 1 };
}

const whitespace = /[ \t\n\r]*/y;
const scalar =
  /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const keyText = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

type Expected = 'value' | 'firstValue' | 'key' | 'firstKey' | 'colon' | 'next' | 'end';

function brokenOffset(text: string): number {
  const open: ('{' | '[')[] = [];
  let expected: Expected = 'value';
  let at = 0;

  /** The end of `pattern` at `at`, or undefined when it does not match there. */
  function end(pattern: RegExp): number | undefined {
    pattern.lastIndex = at;
    return pattern.test(text) ? pattern.lastIndex : undefined;
  }
  function closed(): Expected {
    open.pop();
    return open.length === 0 ? 'end' : 'next';
  }

  for (;;) {
    at = end(whitespace) ?? at;
    if (at >= text.length) return text.length;
    const character = text[at];
    const inside = open.at(-1);
    if (expected === 'colon' && character === ':') expected = 'value';
    else if (expected === 'next' && character === ',') expected = inside === '{' ? 'key' : 'value';
    else if ((expected === 'next' || expected === 'firstKey') && inside === '{' && character === '}')
      expected = closed();
    else if ((expected === 'next' || expected === 'firstValue') && inside === '[' && character === ']')
      expected = closed();
    else if ((expected === 'value' || expected === 'firstValue') && (character === '{' || character === '[')) {
      open.push(character);
      expected = character === '{' ? 'firstKey' : 'firstValue';
    } else {
      const isKey: boolean = expected === 'key' || expected === 'firstKey';
      const isValue = expected === 'value' || expected === 'firstValue';
      const after = isKey ? end(keyText) : isValue ? end(scalar) : undefined;
      if (after === undefined) return at;
      at = after;
      expected = isKey ? 'colon' : open.length === 0 ? 'end' : 'next';
      continue;
    }
    at += 1;
  }
}
