import { redacted as hidden, redactorFor } from '../lib/index.ts';

/** Keys whose values are never written: compared without case, `-` and `_`. */
const secretKeys = new Set([
  'token',
  'apikey',
  'authorization',
  'secret',
  'password',
  'notificationtoken',
  'adoptionproof',
]);

const deepest = 8;

/** The secrets of one process: shared by a logger and all its children. */
export class Secrets {
  readonly #known = new Set<string>();
  #redact: ((text: string) => string) | undefined;

  /** From now on every spelling of `secret` is replaced. */
  protect(secret: string): void {
    if (this.#known.has(secret)) return;
    this.#known.add(secret);
    this.#redact = undefined;
  }

  clean(text: string): string {
    this.#redact ??= redactorFor([...this.#known]);
    return this.#redact(text);
  }

  /** A plain-JSON copy of `value` that holds no secret: errors become objects, cycles and great depths a word. */
  redact(value: unknown): unknown {
    return this.#copy(value, [], false);
  }

  #copy(value: unknown, path: readonly object[], isSecret: boolean): unknown {
    if (isSecret && value !== undefined && value !== null) return hidden;
    if (typeof value === 'string') return this.clean(value);
    if (typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'function') return String(value);
    if (typeof value !== 'object' || value === null) return value;
    if (path.includes(value)) return '[circular]';
    if (path.length >= deepest) return '[deep]';
    const inside = [...path, value];
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
    if (Array.isArray(value)) return value.map((entry) => this.#copy(entry, inside, false));
    const entries = value instanceof Error ? errorEntries(value) : Object.entries(value);
    return Object.fromEntries(
      entries.map(([key, entry]) => [this.clean(key), this.#copy(entry, inside, isSecretKey(key))]),
    );
  }
}

function isSecretKey(key: string): boolean {
  return secretKeys.has(key.toLowerCase().replaceAll(/[-_]/g, ''));
}

/** Fields of an error that `JSON.stringify` would leave out. */
function errorEntries(error: Error): [string, unknown][] {
  const { name, message, stack, cause } = error;
  const own = Object.entries(error).filter(([key]) => !['name', 'message', 'stack', 'cause'].includes(key));
  return [
    ['name', name],
    ['message', message],
    ...own,
    ['stack', stack],
    ...(cause === undefined ? [] : [['cause', cause] as [string, unknown]]),
  ];
}
