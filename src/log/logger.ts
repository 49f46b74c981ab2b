import { randomBytes } from 'node:crypto';
import { fstatSync } from 'node:fs';
import { appendingTo, type LogStream } from './log-file.ts';
import { prettyLine } from './pretty.ts';
import { Secrets } from './redact.ts';

export const logLevels = ['silent', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof logLevels)[number];
export type Fields = Readonly<Record<string, unknown>>;

/** One written record, without secrets. */
export interface LogRecord {
  readonly at: string;
  readonly level: Exclude<LogLevel, 'silent'>;
  readonly name: string;
  readonly msg: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Logger {
  readonly level: LogLevel;
  error(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  debug(message: string, fields?: Fields): void;
  /** Logs something that should not have happened, with its stack, and returns the id under which it can be found. */
  bug(error: unknown, fields?: Fields): string;
  /** A logger that adds `fields` to every line and knows the same secrets. */
  child(fields: Fields): Logger;
  /** Passes every record of this logger, its parents and its children to `listener`. Returns a function that ends this. */
  tap(listener: (record: LogRecord) => void): () => void;
  /** `secret` is taken out of everything this logger, its parents and its children write from now on. */
  protect(secret: string): void;
}

export interface LoggerOptions {
  /** Source of the records: `hub`, `appserver`. */
  readonly name: string;
  /** Default: the environment variable ORATORIO_LOG, else `info`. */
  readonly level?: LogLevel;
  /** Default: standard error. */
  readonly stream?: LogStream;
  /** One readable line instead of JSON. Default: whether the stream is a terminal. */
  readonly pretty?: boolean;
}

/** The level that ORATORIO_LOG names, in any case; `info` when it names none. */
export function levelOf(env: Readonly<Record<string, string | undefined>>): LogLevel {
  const asked = env['ORATORIO_LOG']?.trim().toLowerCase();
  return logLevels.find((level) => level === asked) ?? 'info';
}

/**
 * A logger that writes one line per record: `{at, level, name, msg, …fields}` as JSON, or text for people on a terminal.
 * It never throws: a record that cannot be written is lost, never the work that it describes.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { name, level = levelOf(process.env), stream = standardError() } = options;
  const isPretty = options.pretty ?? stream.isTTY === true;
  return new LineLogger({ name, level, stream, isPretty, secrets: new Secrets(), taps: new Set() }, {});
}

const stderrDescriptor = 2;
let ignoresStderrErrors = false;

/**
 * Default target of lines. A stream reports a full disk by an event, which ends the process without a listener,
 * and takes nothing more afterwards; so a file is written directly, where a failure costs one line and no more.
 */
function standardError(): LogStream {
  if (isFile(stderrDescriptor)) return appendingTo(stderrDescriptor);
  if (!ignoresStderrErrors) process.stderr.on('error', () => undefined);
  ignoresStderrErrors = true;
  return process.stderr;
}

function isFile(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).isFile();
  } catch {
    // The descriptor is closed.
    return false;
  }
}

interface Output {
  readonly name: string;
  readonly level: LogLevel;
  readonly stream: LogStream;
  readonly isPretty: boolean;
  readonly secrets: Secrets;
  readonly taps: Set<(record: LogRecord) => void>;
}

type Spoken = Exclude<LogLevel, 'silent'>;

class LineLogger implements Logger {
  readonly #output: Output;
  readonly #fields: Fields;

  constructor(output: Output, fields: Fields) {
    this.#output = output;
    this.#fields = fields;
  }

  get level(): LogLevel {
    return this.#output.level;
  }

  error(message: string, fields?: Fields): void {
    this.#write('error', message, fields);
  }

  warn(message: string, fields?: Fields): void {
    this.#write('warn', message, fields);
  }

  info(message: string, fields?: Fields): void {
    this.#write('info', message, fields);
  }

  debug(message: string, fields?: Fields): void {
    this.#write('debug', message, fields);
  }

  bug(error: unknown, fields?: Fields): string {
    const errorId = randomBytes(6).toString('hex');
    this.#write('error', 'a bug', { errorId, error, ...fields });
    return errorId;
  }

  child(fields: Fields): Logger {
    return new LineLogger(this.#output, { ...this.#fields, ...fields });
  }

  tap(listener: (record: LogRecord) => void): () => void {
    const { taps } = this.#output;
    taps.add(listener);
    return () => {
      taps.delete(listener);
    };
  }

  protect(secret: string): void {
    this.#output.secrets.protect(secret);
  }

  #write(level: Spoken, message: string, fields: Fields = {}): void {
    const { name, stream, isPretty, secrets, taps } = this.#output;
    if (logLevels.indexOf(level) > logLevels.indexOf(this.#output.level)) return;
    try {
      const at = new Date().toISOString();
      const safe = secrets.redact({ ...this.#fields, ...fields }) as Fields;
      const record = { at, level, name, msg: secrets.clean(message) };
      for (const tap of taps) tap({ ...record, fields: safe });
      stream.write(`${isPretty ? prettyLine(record, safe) : JSON.stringify({ ...record, ...safe, ...record })}\n`);
    } catch {
      // A full disk, a closed pipe or a getter that throws must not end the caller.
    }
  }
}
