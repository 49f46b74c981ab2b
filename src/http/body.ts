import { safeParse } from 'valibot';
import { wellFormedJson } from '../lib/index.ts';
import { HttpError } from './http-error.ts';
import type { Schema } from './types.ts';

const decoder = new TextDecoder('utf-8', { fatal: true });
const nothing = new Uint8Array(0);
const ignore = () => {};

/** The body of one request while it arrives: cumulative limit, pace, one promise for its reader. */
export class Body {
  readonly #limit: number;
  #chunks: Uint8Array[] = [];
  #length = 0;
  #error: unknown;
  #promise: Promise<Uint8Array> | undefined;
  #resolve: (body: Uint8Array) => void = ignore;
  #reject: (error: unknown) => void = ignore;
  complete = false;
  failed = false;
  /** Pace: when the present window began, and how many bytes came in it. */
  windowStart = 0;
  windowBytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** No byte has been received. */
  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Appends `chunk` (the caller gives it away). False when the body has become too long: it then stores nothing. */
  push(chunk: Uint8Array): boolean {
    this.#length += chunk.byteLength;
    this.windowBytes += chunk.byteLength;
    if (this.#length > this.#limit) return false;
    if (chunk.byteLength > 0) this.#chunks.push(chunk);
    return true;
  }

  finish(): void {
    if (this.complete || this.failed) return;
    this.complete = true;
    if (this.#promise !== undefined) this.#resolve(this.#joined());
  }

  fail(error: unknown): void {
    if (this.complete || this.failed) return;
    this.failed = true;
    this.#error = error;
    this.#chunks = [];
    // A handler that asked for the body and did not wait must not bring the process down.
    this.#promise?.catch(ignore);
    this.#reject(error);
  }

  bytes(): Promise<Uint8Array> {
    if (this.#promise !== undefined) return this.#promise;
    if (this.complete) this.#promise = Promise.resolve(this.#joined());
    else if (this.failed) this.#promise = Promise.reject(this.#error);
    else {
      this.#promise = new Promise((resolve, reject) => {
        this.#resolve = resolve;
        this.#reject = reject;
      });
    }
    return this.#promise;
  }

  #joined(): Uint8Array {
    const [only] = this.#chunks;
    if (this.#chunks.length < 2) return only ?? nothing;
    return Buffer.concat(this.#chunks);
  }
}

// Any spelling of the key "__proto__", as JSON allows each character to be escaped.
const protoKey =
  /"(?:_|\\u005[Ff]){2}(?:p|\\u0070)(?:r|\\u0072)(?:o|\\u006[Ff])(?:t|\\u0074)(?:o|\\u006[Ff])(?:_|\\u005[Ff]){2}"\s*:/;

/** JSON.parse without own `__proto__` keys: one of them would become a prototype in the first `{...copy}[key] = value` it meets. */
function parseText(given: string): unknown {
  const text = wellFormedJson(given);
  const value: unknown = JSON.parse(text);
  if (!protoKey.test(text)) return value;
  return JSON.parse(text, (key, inner) => (key === '__proto__' ? undefined : inner));
}

/** Expected shape, never the received value: bodies contain keys and tokens. */
function withoutReceived(message: string): string {
  return message.replace(/ but received .*$/s, '');
}

/**
 * A body as the value `schema` describes. UTF-8 is required (RFC 8259, section 8.1), the content type is ignored.
 * Throws HttpError 400 `invalidRequest`; `details.issues` lists path and expectation.
 */
export function parseJson<T>(body: Uint8Array, schema: Schema<T>): T {
  let value: unknown;
  try {
    value = parseText(decoder.decode(body));
  } catch {
    throw new HttpError(
      400,
      'invalidRequest',
      body.byteLength === 0 ? 'A JSON body is required.' : 'The body is not JSON.',
    );
  }
  const result = safeParse(schema, value);
  if (result.success) return result.output;
  const issues = result.issues.map((issue) => ({
    path: (issue.path ?? []).map((item) => String(item.key)).join('.'),
    message: withoutReceived(issue.message),
  }));
  const [first] = issues;
  const where = first?.path ? `${first.path}: ` : '';
  throw new HttpError(400, 'invalidRequest', `${where}${first?.message ?? 'Invalid body'}`, { issues });
}
