import { isSecretVariable, parseEnv, secretsInEnv } from '../files/index.ts';
import type { RunResult } from './types.ts';

/** Shortest run of characters of a secret by which a line is recognised as a quote of `.env`. */
const pieceLength = 8;

/** Messages of both versions of Compose about a line of `.env`. Each may quote it, or the rest of the file. */
const ofParser =
  /unterminated quoted|unexpected (?:character|end) .*variable name|key cannot contain|separate key from value|zero length string|could not parse statement|failed to read .*\.env|invalid interpolation|invalid template|variable is not set/i;

/**
 * Replaces output of the composition tool that quotes a line of `.env`, whole or in part: its words by the lines and variables that
 * it can be about. A redactor knows whole secrets only, and a parser that failed quotes any part of one.
 * @param text `.env` as the tool has read it
 */
export function withoutEnvQuotes(result: RunResult, text: string): RunResult {
  const isQuote = quoteDetector(text);
  return { ...result, stdout: cleaned(result.stdout, text, isQuote), stderr: cleaned(result.stderr, text, isQuote) };
}

/** Makes a function that is true for a line which holds a part of a secret of `.env`, or is a message about a line of it. */
export function quoteDetector(text: string): (line: string) => boolean {
  const secrets = secretsInEnv(text);
  const isOpen = (name: string, value: string): boolean =>
    !isSecretVariable(name) && !secrets.some((secret) => value.includes(secret));
  const harmless = [...parseEnv(text).values].flatMap(([name, value]) => [name, isOpen(name, value) ? value : '']);
  const isHarmless = (piece: string): boolean => harmless.some((each) => each.includes(piece));
  const pieces = new Set(secrets.flatMap(piecesOf).filter((piece) => !isHarmless(piece)));
  return (line) => ofParser.test(line) || piecesOf(line).some((piece) => pieces.has(piece));
}

function piecesOf(text: string): readonly string[] {
  const count = Math.max(0, text.length - pieceLength + 1);
  return Array.from({ length: count }, (_, at) => text.slice(at, at + pieceLength));
}

function cleaned(output: string, text: string, isQuote: (line: string) => boolean): string {
  const lines = output.split('\n');
  const kept = lines.filter((line) => !isQuote(line));
  return kept.length === lines.length ? output : [...kept, insteadOf(text)].join('\n');
}

function insteadOf(text: string): string {
  const { problems } = parseEnv(text);
  if (problems.length === 0) return 'a line of .env cannot be used; its text is not shown because it may hold a secret';
  return problems.map(({ message }) => message).join(' ');
}
